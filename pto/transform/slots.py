"""Several slots for each tile of a loop: iteration i + 1 loads while iteration i computes.

The loop is unrolled, so that consecutive iterations have tiles of their own as far as the buffers
have room: the planner spreads the tiles, and `pto sync` gives each its own flags. A pipe works
through its queue in order, so that loads run ahead as soon as their slot is free.
"""

from __future__ import annotations

from pto.ir.builder import Builder
from pto.ir.graph import Operation
from pto.transform.pass_result import PassResult
from pto.transform.strides import counted_loops, innermost, is_countable, trip_count
from pto.transform.unroll import unrolled


def slots(function: Operation, count: int) -> list[PassResult]:
    """Give the tiles of every innermost loop `count` slots."""
    loops = innermost(counted_loops(function))
    return [_result(loop, count, Builder(function)) for loop in loops if _tiles(loop)]


def _tiles(loop: Operation) -> int:
    """The number of tiles that an iteration allocates."""
    return sum(bool(op.traits.allocates) for op in loop.walk())


def _result(loop: Operation, count: int, builder: Builder) -> PassResult:
    if not is_countable(loop):
        return PassResult("one slot a tile: the loop carries tiles", loop.loc, is_done=False)
    trips, tiles = trip_count(loop), _tiles(loop)
    count = count if trips is None else min(count, trips)
    if count < 2:
        return PassResult(
            "one slot a tile: the loop has no second iteration", loop.loc, is_done=False
        )
    unrolled(loop, count, builder)
    return PassResult(f"{count} slots for each of {tiles} tiles", loop.loc)
