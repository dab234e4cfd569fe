"""The Python signature of an instruction, from its row: destinations first for tile instructions.

Tile instructions have the order of the C++ interface, `tadd(dst, src0, src1)`; all other
instructions have the order of the row. Required attributes follow the operands, optional ones are
keywords.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache

from pto.isa.row.instr import Attr, Instr, Operand
from pto.isa.row.traits import Control
from pto.isa.table import rows

DESTINATION_FIRST = ("tile", "comm")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: an operand, an attribute, or the type of the result (`to`)."""

    name: str
    operand: Operand | None = None
    attr: Attr | None = None
    required: bool = True
    keyword_only: bool = False


def python_name(row: Instr) -> str:
    """`tmatmul.acc` is tmatmul_acc in Python."""
    return row.mnemonic.replace(".", "_")


@lru_cache(maxsize=1)
def instructions() -> dict[str, Instr]:
    """Every instruction that is a function, by its Python name; SIMT bodies are no kernels."""
    return {
        python_name(row): row
        for row in rows()
        if row.family.dialect == "pto." and row.family.section != "simt"
        if not row.traits.by_hand and not isinstance(row.body, Control)
    }


def can_be_left_out(row: Instr, operand: Operand) -> bool:
    """True for optional operands, and for scratch tiles and a final mask, which get defaults."""
    if operand.variadic:
        return row.family.section not in DESTINATION_FIRST or len(row.operands) == 1
    if operand.optional or operand.role == "tmp":
        return True
    governs = operand.kind == "mask" and operand.name == "mask" and operand is row.operands[-1]
    return governs and not row.traits.mask_selects


@lru_cache(maxsize=1024)
def parameters(row: Instr) -> tuple[Param, ...]:
    """The parameters in call order; required ones after the first optional one are keywords."""
    ordered = list(row.operands)
    if row.family.section in DESTINATION_FIRST:
        rank = {"out": 0, "inout": 0, "in": 1, "tmp": 2}
        ordered.sort(key=lambda o: rank[o.role])
    needed = [o for o in ordered if not can_be_left_out(row, o)]
    others = [o for o in ordered if can_be_left_out(row, o)]
    first = [Param(o.name, operand=o) for o in needed]
    first += [Param(a.name, attr=a) for a in row.attrs if a.required]
    rest = [Param(o.name, operand=o, required=False) for o in others]
    rest += [
        Param(a.name, attr=a, required=False, keyword_only=True)
        for a in row.attrs
        if not a.required and a.name not in row.operand_names
    ]
    if any(not r.type for r in row.results):
        rest.append(Param("to", required=False, keyword_only=True))
    return (*first, *rest)


def required_call(row: Instr) -> str:
    """`tadd(dst, src0, src1)`: the call without what may be left out."""
    return f"{python_name(row)}({', '.join(p.name for p in parameters(row) if p.required)})"


def takes_indices(row: Instr) -> bool:
    """True for `load_scalar(x, i, j)`: an element by its indices where its number is expected."""
    return row.places.get("ptr") == 0 and row.places.get("offset") == 1


def signature(row: Instr) -> inspect.Signature:
    """The signature that `help` shows for the function of an instruction."""
    one = inspect.Parameter
    params = [
        one(
            p.name,
            one.KEYWORD_ONLY if p.keyword_only else one.POSITIONAL_OR_KEYWORD,
            default=one.empty if p.required else None,
        )
        for p in parameters(row)
    ]
    if takes_indices(row):
        params.append(one("indices", one.VAR_POSITIONAL))
    return inspect.Signature(sorted(params, key=lambda p: p.kind))
