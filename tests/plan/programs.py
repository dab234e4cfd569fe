"""Small programs for tests of the planner, and how to find their tiles again."""

from __future__ import annotations

from dataclasses import replace

from pto.core.errors import PtoError
from pto.ir.graph import Module, Operation
from pto.ir.text.parser import parse
from pto.plan.buffers import FunctionPlan, Placed, Placement
from pto.plan.memory import plan_memory
from pto.target.facts import Profile
from pto.target.profile import profile

# One f32 is 4 bytes: rows x columns x 4.
TILE = "!pto.tile_buf<vec, 16x64xf32>"  # 4,096 bytes
BIG = "!pto.tile_buf<vec, 256x128xf32>"  # 131,072 bytes, half of 256 KB
A5, A2A3 = profile("a5"), profile("a2a3")


def program(body: str, *, args: str = "%c0: index, %c1: index, %n: index, %cond: i1") -> Module:
    """One function @k around `body`; TILE and BIG stand for their types."""
    text = body.replace("TILE", TILE).replace("BIG", BIG)
    return parse(f"module {{\nfunc.func @k({args}) {{\n{text}\nreturn\n}}\n}}\n", "k.pto")


def tight(module: Module, chosen: Profile = A5) -> Placement:
    """A plan in buffers with little or no more bytes than are alive at once, so that tiles share
    bytes wherever their lifetimes allow it."""
    uses = [use for plan in plan_memory(module, chosen).functions for use in plan.uses]
    needs = {use.space.value: 0 for use in uses}
    for use in uses:
        needs[use.space.value] = max(needs[use.space.value], use.alive)
    for percent in range(100, 400, 10):
        sizes = {k: min(chosen.buffers[k], n * percent // 100) for k, n in needs.items()}
        try:
            return plan_memory(module, replace(chosen, buffers=replace(chosen.buffers, **sizes)))
        except PtoError as error:
            assert {d.code for d in error.diagnostics} <= {"PTO-M120", "PTO-M121"}
    return plan_memory(module, chosen)  # a tile at a high address, or one that is never used


def plan(body: str, chosen: Profile = A5) -> dict[str, Placed]:
    """The tight plan of `body`: placed buffers by name."""
    return by_name(tight(program(body), chosen), "k")


def by_name(placement: Placement, function: str) -> dict[str, Placed]:
    return {p.buffer.name: p for p in function_plan(placement, function).placed}


def function_plan(placement: Placement, name: str) -> FunctionPlan:
    return next(plan for plan in placement.functions if plan.name == name)


def overlap(a: Placed, b: Placed) -> bool:
    return a.buffer.space is b.buffer.space and a.start < b.end and b.start < a.end


def find(module: Module, name: str) -> Operation:
    """The operation that gives `%name`."""
    return next(op for op in module.walk() for r in op.results if r.name == name)


def use(*names: str) -> str:
    """An instruction that reads and writes each of these tiles."""
    return "\n".join(f"pto.tabs ins(%{n} : TILE) outs(%{n} : TILE)" for n in names)


def copy(source: str, target: str) -> str:
    return f"pto.tabs ins(%{source} : TILE) outs(%{target} : TILE)"


def alloc(*names: str) -> str:
    return "\n".join(f"%{n} = pto.alloc_tile : TILE" for n in names)
