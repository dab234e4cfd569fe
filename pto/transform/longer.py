"""Longer loads: one load brings the operands of several iterations along k.

Rows that are shorter than a burst of global memory waste its rate. The loop is unrolled; the loads
of its iterations become one load of a tile as long as all of theirs, from which each iteration
extracts its part. The products stay as they are, and so do their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pto.ir.builder import INDEX, Builder
from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.handle.view import PARTITION_VIEW
from pto.isa.row.traits import Control
from pto.isa.row.types import TileBuf, View
from pto.isa.tile.extract import TEXTRACT
from pto.isa.tile.move import TLOAD, TMOV
from pto.transform.cores import is_work
from pto.transform.index_math import IndexMath, known
from pto.transform.pass_result import PassResult
from pto.transform.strides import (
    counted_loops,
    innermost,
    is_countable,
    is_inside,
    stride,
    trip_count,
)
from pto.transform.unroll import unrolled

_L0 = ("left", "right")


@dataclass(frozen=True, slots=True)
class _Load:
    """A load into L1 with a window that moves along one axis by its own size in every iteration."""

    op: Operation
    window: Operation
    tile: Value
    axis: int
    size: int  # along the axis


def longer(function: Operation, count: int) -> list[PassResult]:
    """Load for `count` iterations at once in every innermost loop."""
    loops = [(loop, _loads(loop)) for loop in innermost(counted_loops(function))]
    return [_result(loop, loads, count, Builder(function)) for loop, loads in loops if loads]


def _loads(loop: Operation) -> list[_Load]:
    """The loads of a loop that can be joined; none if the loop writes global memory."""
    if not is_countable(loop) or any(_writes_memory(op) for op in loop.walk()):
        return []
    loads = (_load(op, loop) for op in loop.regions[0].block.ops)
    return [load for load in loads if load is not None]


def _writes_memory(op: Operation) -> bool:
    """True for an effect that a later load might see."""
    outside = [v for v in op.given("out", "inout") if not isinstance(v.type, TileBuf)]
    return bool(is_work(op) and outside) or op.control is Control.CALL or op.order is not None


def _load(op: Operation, loop: Operation) -> _Load | None:
    if op.row is not TLOAD or len(op.operands) != 2 or op.attrs:
        return None
    tile, window = op.group("dst")[0], op.group("src")[0].maker
    step, alloc = known(loop.operands[2]), tile.maker
    if window is None or window.row is not PARTITION_VIEW or window.results[0].uses != [op]:
        return None
    if alloc is None or alloc.row is not ALLOC_TILE or alloc.parent is not op.parent:
        return None
    if alloc.group("addr") or not isinstance(step, int) or not isinstance(tile.type, TileBuf):
        return None
    axis = _moving_axis(window, loop, step, tile.type)
    if axis is None:
        return None
    fixed = [*alloc.operands, window.group("source")[0], window.group("sizes")[1 - axis]]
    users = [use for use in tile.uses if use is not op]
    if any(is_inside(v, loop) for v in fixed) or not all(_is_extract(u, tile) for u in users):
        return None
    return _Load(op, window, tile, axis, tile.type.tile.shape[axis])


def _moving_axis(window: Operation, loop: Operation, step: int, type: TileBuf) -> int | None:
    """The only axis along which a window moves, if by its size, which is that of the tile."""
    strides = [stride(v, loop) for v in window.group("offsets")]
    moving = [axis for axis, factor in enumerate(strides) if factor != 0]
    if len(strides) != 2 or len(moving) != 1:
        return None
    axis = moving[0]
    factor, size = strides[axis], known(window.group("sizes")[axis])
    extents = (type.tile.shape[axis], type.tile.valid[axis], factor and factor * step)
    return axis if all(size == extent for extent in extents) else None


def _is_extract(op: Operation, tile: Value) -> bool:
    """True for a plain copy of a part of a tile in L1 to L0."""
    if op.row not in (TMOV, TEXTRACT) or op.attrs or op.group("src") != [tile]:
        return False
    target = op.group("dst")
    plain = len(op.operands) == (2 if op.row is TMOV else 4) and len(target) == 1
    type = target[0].type if target else None
    return plain and isinstance(type, TileBuf) and type.tile.role.value in _L0


def _result(loop: Operation, loads: Sequence[_Load], count: int, builder: Builder) -> PassResult:
    trips = trip_count(loop)
    count = count if trips is None else min(count, trips)
    if count < 2:
        return PassResult("loads stay: the loop has no second iteration", loop.loc, is_done=False)
    body = loop.regions[0].block
    places = [body.ops.index(load.op) for load in loads]
    groups = unrolled(loop, count, builder)
    for load, position in zip(loads, places, strict=True):
        _join(load, [_copy_of(group, groups[0], position) for group in groups], builder)
    sizes = ", ".join(f"{load.size} to {load.size * count}" for load in loads)
    return PassResult(f"loads for {count} iterations at once: from {sizes} along k", loop.loc)


def _copy_of(group: Sequence[Operation], first: Sequence[Operation], position: int) -> Operation:
    """The copy of an operation of the first iteration in another one, which begins with the
    arithmetic of its counter."""
    return group[position + len(group) - len(first)]


def _join(load: _Load, copies: Sequence[Operation], builder: Builder) -> None:
    """Let the load of the first iteration bring what all of them need."""
    count = len(copies)
    axis = load.axis
    window = load.window
    tiles = [op.group("dst")[0] for op in copies]
    extracts = [[use for use in dict.fromkeys(tile.uses) if use.row is not TLOAD] for tile in tiles]
    view = window.results[0].type
    assert isinstance(view, View)
    length = IndexMath(builder, load.op).value(load.size * count)
    shape = tuple(length.number if n == axis else size for n, size in enumerate(view.shape))
    window.set_group(
        "sizes", [length if n == axis else v for n, v in enumerate(window.group("sizes"))]
    )
    window.results[0].type = replace(view, shape=shape)
    _lengthen(load.tile, axis, count)
    for number, users in enumerate(extracts):
        for use in users:
            _extract(use, load.tile, axis, number * load.size, builder)
    for op in copies[1:]:
        alloc = op.group("dst")[0].maker
        op.erase()
        if alloc is not None:
            alloc.erase()


def _lengthen(tile: Value, axis: int, count: int) -> None:
    """Make a tile `count` times as long along an axis; the operands of its allocation stay."""
    assert isinstance(tile.type, TileBuf)
    old = tile.type.tile
    rows, cols = (n * count if a == axis else n for a, n in enumerate(old.shape))
    valid = tuple(n * count if a == axis and n else n for a, n in enumerate(old.valid))
    tile.type = TileBuf(tile.type.elem, replace(old, rows=rows, cols=cols, valid=valid))


def _extract(use: Operation, tile: Value, axis: int, start: int, builder: Builder) -> None:
    """Let a copy to L0 take its part, which begins at `start` of the long tile."""
    numbers = IndexMath(builder, use)
    at = [*use.group("indexRow"), *use.group("indexCol")] or [builder.constant(0, INDEX)] * 2
    row, col = (
        numbers.value(numbers.add(known(v), start)) if n == axis else v for n, v in enumerate(at)
    )
    operands = {"src": tile, "indexRow": row, "indexCol": col, "dst": use.group("dst")[0]}
    extract = builder.make(TEXTRACT, operands, where=use.loc)
    use.home.insert(use.home.ops.index(use), extract)
    use.erase()
