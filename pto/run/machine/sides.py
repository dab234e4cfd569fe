"""The agents that run a kernel: the cube, the vector sub-blocks, or one for the whole core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pto.ir.graph import Module, Operation
from pto.isa.order.queue_setup import IMPORT_BUFFER
from pto.isa.row.attributes import Int
from pto.plan.calls import FunctionNames, callees_first
from pto.target.facts import Profile

SUB_BLOCKS = 2  # vector sub-blocks of a core (PTO manual, Target Profiles)


class SideFunction(NamedTuple):
    """A function, the side of the core that runs it, and how many agents that side is."""

    function: Operation
    name: str
    agents: int


def sides(kernels: Sequence[Operation], profile: Profile) -> list[SideFunction]:
    """Vector code alone runs on one sub-block a block; beside a cube, on all that take part."""
    names = FunctionNames()
    found = [(f, side) for f in kernels for side in _sides_of(f, names)]
    mixed = {"cube", "vector"} <= {side for _, side in found}
    vectors = _vectors(kernels, names, profile) if mixed else 1
    return [SideFunction(f, side, vectors if side == "vector" else 1) for f, side in found]


def _sides_of(function: Operation, names: FunctionNames) -> list[str]:
    kind = function.side()
    if kind is not None:
        return [kind]
    has = {side for f in _reached([function], names) for side in _marks(f)}
    return sorted(has) or ["both"]


def _reached(functions: Sequence[Operation], names: FunctionNames) -> Iterator[Operation]:
    return (f for f, _ in callees_first(functions, names))


def _marks(function: Operation) -> Iterator[str]:
    kind = function.side()
    if kind is not None:
        yield kind
        return
    yield from (side for op in function.walk() if (side := op.own_side()))


def _vectors(kernels: Sequence[Operation], names: FunctionNames, profile: Profile) -> int:
    """The number of vector sub-blocks: both, unless every queue passes whole tiles to one."""
    splits = {
        split.value
        for f in _reached(kernels, names)
        for op in f.walk()
        if op.row is not None and op.row.attr("split")
        if isinstance(split := op.attrs.get("split"), Int)
    }
    return profile.sync.whole_tile_vectors if splits == {0} else SUB_BLOCKS


def peers(function: Operation, module: Module) -> list[Operation]:
    """The function and those at the other ends of its queues, in program order."""
    functions = list(module.functions())
    names, near = FunctionNames(), {id(function)}
    links = [
        (id(f), id(other))
        for f in functions
        for op in f.walk()
        if op.row is IMPORT_BUFFER
        if (other := names.find(op.attrs.get("peer_func"), f)) is not None
    ]
    while more := {b for a, b in (*links, *((b, a) for a, b in links)) if a in near} - near:
        near |= more
    return [f for f in functions if id(f) in near]
