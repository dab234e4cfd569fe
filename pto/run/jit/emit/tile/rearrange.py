"""Tile to tile in compiled code: moves, windows cut out and pasted in, transposes, pads, fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import BF16, F16, F32, I64
from pto.core.tile import Role
from pto.isa.meaning.tile import extract, move, rearrange
from pto.isa.meaning.tile.fill import FILL
from pto.isa.meaning.tile.transfer import Delivery
from pto.run.jit.border.values import Native, TilePlace, Word
from pto.run.jit.emit.cube.accumulator import with_outlet
from pto.run.jit.emit.handle.view import number
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes, copies, planes
from pto.run.jit.emit.tile.boxes import Axis
from pto.run.jit.emit.tile.move import (
    Side,
    fill,
    guarded,
    pad_item,
    require_same_width,
    tile_side,
    transfer,
)
from pto.run.jit.llvm.text import NotNative, Val

_WIDER = {(F16, F32), (BF16, F32)}


def _changed(
    s: Spot, src: TilePlace, dst: TilePlace, then: Callable[[copies.Work | None, str], None]
) -> None:
    """What becomes of elements: `carry.change`."""
    a, b = src.type.dtype, dst.type.dtype
    if src.type.role is Role.ACC:
        with_outlet(s, a, b, then)
    elif (a, b) in _WIDER:
        then(copies.Work(_wider), "wider")
    else:
        then(None, "")


def _require_plain(s: Spot, src: TilePlace, dst: TilePlace) -> None:
    if any(s.op.operand(name) is not None for name in ("fp", "preQuantScalar")):
        raise NotNative("a scale")
    a, b = src.type.dtype, dst.type.dtype
    if src.type.role is not Role.ACC and (a, b) not in _WIDER:
        require_same_width(a, b)


def _wider(values: Any) -> Any:
    """As `convert` does: exact, and any NaN becomes the one NaN."""
    wide = values.astype(np.float32)
    return np.where(wide != wide, np.float32(np.nan), wide)


def _require_home(s: Spot) -> None:
    """Values stay with this agent: `patch.landing`."""
    deliver = Delivery(s.case)
    alone = s.e.compiler.side == "both" and deliver.axis is None and not deliver.sub
    if not deliver.stays and not alone:
        raise NotNative("a tile of another agent")


def _safe(s: Spot, dst: TilePlace, src: TilePlace) -> str:
    """Copying part by part is as good as reading all first."""
    separate = boxes.apart(s, dst, src)
    if dst.memory != src.memory or boxes.field(dst) != boxes.field(src):
        return separate
    return s.x.either(separate, s.x.compare("eq", dst.address, src.address))


# ---- whole tiles


@emits(move.MOVE)
def _move(s: Spot) -> Sequence[Native]:
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    _require_plain(s, src, dst)
    _require_home(s)
    rows, cols = (s.x.smaller(a, b) for a, b in zip(src.valid, dst.valid, strict=True))
    sides = tile_side(s, dst), tile_side(s, src)

    def move_all() -> None:
        _changed(s, src, dst, lambda work, key: transfer(s, rows, cols, *sides, work, key))

    planes.either_way(s, _safe(s, dst, src), move_all)
    return []


@emits(rearrange.TRANSPOSE)
def _transpose(s: Spot) -> Sequence[Native]:
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    require_same_width(src.type.dtype, dst.type.dtype)
    rows, cols = src.valid
    fits = planes.enough(s, dst, cols, rows)
    target, source = tile_side(s, dst), tile_side(s, src)
    turned = Side(source.field.swapped, source.pointer)

    def transpose() -> None:
        s.fault_unless(fits)
        transfer(s, cols, rows, target, turned)

    planes.either_way(s, boxes.apart(s, dst, src), transpose)
    return []


# ---- windows


def _part(s: Spot, tile: TilePlace, row: Val, col: Val) -> tuple[Side, str]:
    """A tile from (row, col) on, and when its boxes begin there."""
    side, x = tile_side(s, tile), s.x
    places: list[Val] = []
    whole = "true"
    for along, first in ((side.field.rows, row), (side.field.cols, col)):
        whole = x.both(whole, _begins(s, along, first))
        places.append(boxes.position(x, along, first))
    skipped = x.mul(x.add(*places), tile.type.itemsize)
    return Side(side.field, x.at(side.pointer, skipped)), whole


def _begins(s: Spot, along: Axis, first: Val) -> str:
    if len(along) == 1:
        return "true"
    return s.x.compare("eq", s.x.rest(first, along[0].size), 0)


def _inside(s: Spot, tile: TilePlace, at: Sequence[Val], size: Sequence[Val]) -> str:
    """`patch.cut`: a window from (row, col) on lies inside a tile."""
    x, fine = s.x, "true"
    for first, count, limit in zip(at, size, tile.type.shape, strict=True):
        fine = x.both(fine, x.compare("sle", count, limit))
        fine = x.both(fine, x.compare("ule", first, x.sub(limit, count)))
    return fine


def _window(s: Spot, into: bool) -> Sequence[Native]:
    """One tile's valid region to, or from, a window of the other."""
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    if s.op.operand("dst1") is not None or any(extract.packings(s.case)):
        raise NotNative("packed elements, or two windows")
    _require_plain(s, src, dst)
    _require_home(s)
    at = [number(s.need(Word, name)) for name in ("indexRow", "indexCol")]
    whole, other = (src, dst) if into else (dst, src)
    rows, cols = whole.valid
    fits = _inside(s, other, at, (rows, cols))
    if fits == "false":
        raise NotNative("a window outside its tile")
    part, begins = _part(s, other, *at)
    full = tile_side(s, whole)
    target, source = (part, full) if into else (full, part)

    def cut() -> None:
        _changed(s, src, dst, lambda work, key: transfer(s, rows, cols, target, source, work, key))

    s.fault_unless(fits)
    planes.either_way(s, s.x.both(begins, boxes.apart(s, dst, src)), cut)
    return []


@emits(extract.EXTRACT)
def _extract(s: Spot) -> Sequence[Native]:
    return _window(s, into=False)


@emits(extract.INSERT)
def _insert(s: Spot) -> Sequence[Native]:
    return _window(s, into=True)


@emits(rearrange.CONCAT)
def _concat(s: Spot) -> Sequence[Native]:
    first, second, dst = (s.need(TilePlace, n) for n in ("src0", "src1", "dst"))
    for src in (first, second):
        require_same_width(src.type.dtype, dst.type.dtype)
    x, (rows, left), right = s.x, first.valid, second.valid[1]
    fits = planes.enough(s, dst, rows, x.add(left, right))
    for other in (second, dst):
        fits = x.both(fits, x.compare("eq", rows, other.valid[0]))
    if fits == "false":
        raise NotNative("tiles that do not fit together")
    part, begins = _part(s, dst, 0, left)
    target, a, b = (tile_side(s, tile) for tile in (dst, first, second))

    def join() -> None:
        transfer(s, rows, left, target, a)
        transfer(s, rows, right, part, b)

    s.fault_unless(fits)
    safe = x.both(boxes.apart(s, dst, first), boxes.apart(s, dst, second))
    planes.either_way(s, x.both(begins, safe), join)
    return []


# ---- pads and fills


@emits(rearrange.FILL_PAD)
def _fill_pad(s: Spot) -> Sequence[Native]:
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    require_same_width(src.type.dtype, dst.type.dtype)
    x, (height, width) = s.x, dst.type.shape
    rows, cols = x.smaller(src.valid[0], height), x.smaller(src.valid[1], width)
    value, target, source = (
        pad_item(dst.type.pad, dst.type.dtype),
        tile_side(s, dst),
        tile_side(s, src),
    )

    def pad() -> None:
        transfer(s, rows, cols, target, source)
        fill(s, target, value, (rows, height), (0, width))
        fill(s, target, value, (0, rows), (cols, width))

    some = x.both(*(x.compare("ne", n, 0) for n in dst.valid))
    planes.either_way(s, _safe(s, dst, src), lambda: guarded(x, some, pad))
    return []


@emits(FILL)
def _fill(s: Spot) -> Sequence[Native]:
    value, dst = s.need(Word, "scalar"), s.need(TilePlace, "dst")
    own, kind = value.type.dtype or I64, dst.type.dtype
    if own is not kind and (own.is_float or not kind.is_integer or own.bits != kind.bits):
        raise NotNative("a scalar of another type")
    size = tuple(map(str, dst.type.shape)) if dst.type.role is Role.MAT else dst.valid
    fill(s, tile_side(s, dst), value.name, (0, size[0]), (0, size[1]))
    return []
