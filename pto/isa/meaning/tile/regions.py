"""Parts of tiles as arrays: what lane functions read and where their results go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import I64, DType, items_of
from pto.core.errors import PtoError, fail
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Axis
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.patch import cut, paste
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def region(tile: Tile, rows: int, cols: int) -> Lanes:
    """The first rows x cols elements, inside the tile's own valid region or not (manual, Tiles).

    Often the tile's memory itself: read it before writing.
    """
    plain = tile.part(rows, cols)
    if plain is not None and plain.shape == (rows, cols):
        return plain
    require_inside(tile, rows, cols, "read")
    return cut(tile, 0, 0, rows, cols)


def put(tile: Tile, rows: int, cols: int, values: Lanes) -> None:
    """Store values, spread to rows x cols, over the first elements; the rest of the tile stays."""
    plain = tile.part(rows, cols)
    if plain is None:
        _put_boxed(tile, rows, cols, values)
        return
    if values.dtype != plain.dtype:
        values = items_of(tile.type.dtype, values).view(plain.dtype)
    if plain.shape != (rows, cols):
        require_inside(tile, rows, cols, "written")
    plain[...] = values


def _put_boxed(tile: Tile, rows: int, cols: int, values: Lanes) -> None:
    require_inside(tile, rows, cols, "written")
    items = items_of(tile.type.dtype, values).view(tile.type.dtype.numpy)
    if (rows, cols) == tile.get_valid():
        tile.write_valid(np.broadcast_to(items, (rows, cols)))
        return
    paste(tile, 0, 0, np.broadcast_to(items, (rows, cols)))


def gaps(tile: Tile) -> PtoError:
    """Storage items of a tile are to be written one after the other, and do not lie so."""
    return fail(
        "PTO-L150",
        f"{tile.type} is a window with gaps between its lines, and this result has none",
        help="write it to a tile of its own",
    )


def stream(tile: Tile) -> Lanes:
    """The storage items of a tile in memory order, to be written one after the other."""
    if tile.nbytes != tile.type.nbytes:
        raise gaps(tile)
    return tile.items


def require_inside(tile: Tile, rows: int, cols: int, what: str) -> None:
    """A tile has so many rows and columns, valid or not."""
    height, width = tile.type.shape
    if rows > height or cols > width:
        raise outside(tile, rows, cols, what)


def outside(tile: Tile, rows: int, cols: int, what: str) -> PtoError:
    """A tile has fewer rows or columns than an instruction reads or writes."""
    return fail(
        "PTO-S131",
        f"{tile.type} is {what} over {rows}x{cols}, more than it has",
        help="the destination's valid region is the domain of the instruction",
    )


def element(case: Case, name: str) -> DType:
    """What a tile operand holds."""
    elem = case.elem(name)
    if elem is None or elem.dtype is None:
        raise fail("PTO-T151", f"{name} has no element type a tile could hold")
    return elem.dtype


def scalar(type: t.Type | None, like: DType) -> Callable[[Any], Lanes]:
    """How a scalar operand becomes a lane beside lanes of `like`.

    Integers of one width are the same bits: a signless i8 serves tiles of i8 and of u8.
    """
    own = type.dtype if isinstance(type, t.Scalar) and type.dtype is not None else I64
    if own.is_float:
        kind = own.numpy
        return lambda value: np.asarray(value, kind)
    chosen = like if like.is_integer and like.bits == own.bits else own
    mask, storage, kind = (1 << own.bits) - 1, chosen.storage, chosen.numpy
    return lambda value: np.asarray(value & mask, storage).view(kind)


def require_line(src: Tile, dst: Tile, axis: Axis) -> None:
    """Known only now where extents are dynamic: one result for each row, or column, of src."""
    at = 0 if axis == "row" else 1
    if src.get_valid()[at] != dst.get_valid()[at]:
        raise line_error(src, dst, axis)


def line_error(src: Tile, dst: Tile, axis: Axis) -> PtoError:
    at, word, code = (0, "rows", "PTO-S041") if axis == "row" else (1, "columns", "PTO-S050")
    have, want = src.get_valid()[at], dst.get_valid()[at]
    return fail(code, f"src has {have} valid {word}, dst has {want}: each needs one result")


def read_as(own: DType, like: DType) -> DType:
    """How a source beside a destination counts: of integers of one width the destination says
    whether they have a sign, since programs leave it open (`i32` beside `ui32`)."""
    is_open = own.is_integer and like.is_integer and own.bits == like.bits
    return like if is_open and not own.is_packed else own


def require_arithmetic(case: Case) -> None:
    """NumPy sees bytes, not numbers, in some types; the ISA computes with none of them."""
    for name in case.row.operand_names:
        elem = case.elem(name)
        dtype = elem.dtype if elem else None
        if dtype is None:
            continue
        opaque = dtype.is_float and dtype.numpy == dtype.storage
        if opaque or dtype.is_packed or dtype.kind == "bool":
            raise fail(
                "PTO-T150",
                f"'{case.op.name}' op: {name} is of {dtype.name}, which has no arithmetic",
                help="convert it with pto.tcvt first",
            )
