"""Regions that say where their body runs: vector scopes, and the two sides of a core."""

from __future__ import annotations

from pto.isa.row.instr import Family, Instr, read
from pto.isa.row.traits import Control, Traits
from pto.isa.rules.rule import Case, rule

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_VTD = "PTOAS include/PTO/IR/VPTOOps.td"
_PAGE = "pto-isa docs/isa/scalar/ops/micro-instruction/vecscope.md"
_INTRINSICS = "- C++ kernels write intrinsics of the compiler there"

SCOPE = Family(
    "vector scopes",
    "one launch of the vector unit",
    "scalar",
    pipe="V",
    text="#body {}",
    cost="scope",
)
SECTION = Family("sections", "code for one side of a core", "support", text="#body {}", cost="free")


def _argument_types(case: Case) -> list[object]:
    regions = case.op.regions
    return [a.type for a in regions[0].blocks[0].args] if regions and regions[0].blocks else []


@rule("PTO-S071", "expects a body without arguments")
def no_arguments(case: Case) -> str | None:
    count = len(_argument_types(case))
    return f"it has {count}" if count else None


@rule("PTO-S071", "expects one argument of the body for each capture, of its type")
def _captured(case: Case) -> str | None:
    wanted, actual = [v.type for v in case.op.group("captures")], _argument_types(case)
    if len(wanted) != len(actual):
        return f"{len(wanted)} captures, {len(actual)} arguments"
    different = (n for n, (a, b) in enumerate(zip(wanted, actual, strict=True)) if a != b)
    first = next(different, None)
    return None if first is None else f"argument {first} has another type"


VECSCOPE = SCOPE.row(
    "vecscope",
    "run the body on the vector unit; it sees the values around it",
    body=Control.SCOPE,
    rules=no_arguments,
    notes="Vector registers, masks and alignment states live inside only. The body may be empty.",
    example="pto.vecscope { .. }",
    cxx=_INTRINSICS,
    cite=(_VTD, _PAGE),
)
SCOPE.row(
    "strict_vecscope",
    "run the body on the vector unit; it sees its captures only",
    body=Control.SCOPE,
    operands=read("captures*", "any"),
    text="=strict_vecscope",
    rules=_captured,
    cxx=_INTRINSICS,
    example="pto.strict_vecscope(%ub) { ^bb0(%p: !pto.ptr<f32, ub>): .. }"
    " : (!pto.ptr<f32, ub>) -> ()",
    cite=_VTD,
)
SECTIONS: dict[str, Instr] = {}  # by side
for _traits, _where in (
    (Traits(side="cube"), "the cube of a core"),
    (
        Traits(side="vector"),
        "both vector sub-blocks of a core; get_subblock_idx distinguishes them",
    ),
):
    SECTIONS[_traits.side] = SECTION.row(
        f"section.{_traits.side}",
        f"the body runs on {_where}",
        body=Control.SECTION,
        rules=no_arguments,
        example=f"pto.section.{_traits.side} {{ .. }}",
        traits=_traits,
        notes="Cube and vector sections of one function run at the same time.",
        cite=_TD,
    )
