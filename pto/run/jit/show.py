"""The stages of compiled code as text: fusion groups, nests, LLVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pto.ir.graph import Module, Operation
from pto.run.jit.emit.unit import Unit
from pto.run.jit.ir import nest
from pto.run.launch.prepared import PreparedKernel
from pto.target.facts import Profile


def _groups(unit: Unit) -> Iterator[str]:
    """The instructions that run as one loop, and those that do not run in compiled code."""
    groups = [ops for ops, _ in unit.nests if len(ops) > 1]
    for number, ops in enumerate(groups, 1):
        yield f"group {number}: {len(ops)} instructions in one loop"
        yield from (f"  {_named(op)}" for op in ops)
    for name in unit.forwarded:
        yield f"no copy: {name}, its readers use the source"
    for (name, why), count in unit.skipped.items():
        yield f"reference engine: {name} ({why}), {count} times in the program"


def _nests(unit: Unit) -> Iterator[str]:
    """The loops of elementwise instructions, folds and copies: those of groups, and single ones."""
    for ops, loop in unit.nests:
        yield f"// {', '.join(map(_named, ops))}"
        yield from nest.written(loop)


def _llvm(unit: Unit) -> Iterator[str]:
    """The LLVM module before LLVM's passes."""
    yield unit.text


def _named(op: Operation) -> str:
    line = "" if op.loc is None else f" (line {op.loc.line})"
    return f"{op.name}{line}"


STAGES: Final[dict[str, Callable[[Unit], Iterator[str]]]] = {
    "groups": _groups,
    "nests": _nests,
    "llvm": _llvm,
}


def show(stage: str, module: Module, functions: Sequence[Operation], profile: Profile) -> str:
    """One stage of these kernels, compiled together for a profile."""
    kernel = PreparedKernel(module, functions, profile, engine="jit")
    return "".join(f"{line}\n" for line in STAGES[stage](kernel.unit))
