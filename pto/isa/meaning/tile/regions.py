"""Parts of tiles as arrays: the sources and results of lane functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.convert import Round
from pto.core.dtypes import I64, DType, items_of
from pto.core.errors import PtoError, fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Axis
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.patch import cut, paste
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def region(tile: Tile, rows: int, cols: int) -> Lanes:
    """The first rows x cols elements, inside the valid region or not (manual, Tiles).

    This is often a view of the tile's memory: read it before writing.
    """
    plain = tile.part(rows, cols)
    if plain is not None and plain.shape == (rows, cols):
        return plain
    require_inside(tile, rows, cols, "read")
    return cut(tile, 0, 0, rows, cols)


def put(tile: Tile, rows: int, cols: int, values: Lanes) -> None:
    """Store values, broadcast to rows x cols, in the first elements.

    The rest of the tile is unchanged.
    """
    plain = tile.part(rows, cols)
    if plain is None:
        require_inside(tile, rows, cols, "written")
        is_full = values.shape == (rows, cols)
        paste(tile, 0, 0, values if is_full else np.broadcast_to(values, (rows, cols)))
        return
    if values.dtype != plain.dtype:
        values = items_of(tile.type.dtype, values).view(plain.dtype)
    if plain.shape != (rows, cols):
        require_inside(tile, rows, cols, "written")
    plain[...] = values


def gaps(tile: Tile) -> PtoError:
    """The error for a tile with gaps where items must be stored in one stream."""
    return fail(
        "PTO-L150",
        f"{tile.type} is a window with gaps between its lines, but the result is contiguous",
        help="write it to a separate tile",
    )


def stream(tile: Tile) -> Lanes:
    """The storage items of a tile in memory order, for writing in one stream."""
    if tile.nbytes != tile.type.nbytes:
        raise gaps(tile)
    return tile.items


def require_inside(tile: Tile, rows: int, cols: int, action: str) -> None:
    """Require that a tile has at least this number of rows and columns, valid or not."""
    height, width = tile.type.shape
    if rows > height or cols > width:
        raise outside(tile, rows, cols, action)


def outside(tile: Tile, rows: int, cols: int, action: str) -> PtoError:
    """The error for a tile with fewer rows or columns than an instruction accesses."""
    return fail(
        "PTO-S131",
        f"{tile.type} is {action} over {rows}x{cols}, more than it has",
        help="the destination's valid region is the domain of the instruction",
    )


def element(case: Case, name: str) -> DType:
    """The element type of a tile operand."""
    elem = case.elem(name)
    if elem is None or elem.dtype is None:
        raise fail("PTO-T151", f"{name} has no element type that a tile can hold")
    return elem.dtype


def scalar_as(type: t.Type | None, like: DType) -> DType:
    """The element type that a scalar operand counts as.

    Integers of the same width have the same bits: a signless i8 can be used with tiles of i8 and
    u8.
    """
    declared = type.dtype if isinstance(type, t.Scalar) and type.dtype is not None else I64
    same = not declared.is_float and like.is_integer and like.bits == declared.bits
    return like if same else declared


def scalar(type: t.Type | None, like: DType) -> Callable[[Any], Lanes]:
    """A function that makes a lane with the type of `like` from a scalar operand."""
    chosen = scalar_as(type, like)
    kind = chosen.numpy
    storage = chosen.storage
    mask = (1 << chosen.bits) - 1
    if chosen.is_float:
        return lambda value: np.asarray(value, kind)
    return lambda value: np.asarray(value & mask, storage).view(kind)


def taken(case: Case, name: str, like: DType) -> Callable[[Lanes], Lanes] | None:
    """The conversion of a scalar to the element type of a tile; None where both have one type.

    C++ converts it in the call (headers declare `typename TileData::DType`): toward zero into
    integers, else to nearest even. Floats beyond the range of an integer wrap, as unsaturated
    conversions do.
    """
    type = case.type(name)
    declared = scalar_as(type, like)
    if declared is like or not isinstance(type, t.Scalar):
        return None
    mode = Round.TRUNC if declared.is_float and like.is_integer else Round.RINT
    return lambda value: lanes.convert(value, declared, like, mode, False)


def require_line(src: Tile, dst: Tile, axis: Axis) -> None:
    """Require one result for each row, or column, of src, if extents are known only at run time."""
    at = 0 if axis == "row" else 1
    if src.get_valid()[at] != dst.get_valid()[at]:
        raise line_error(src, dst, axis)


def line_error(src: Tile, dst: Tile, axis: Axis) -> PtoError:
    at, word, code = (0, "rows", "PTO-S041") if axis == "row" else (1, "columns", "PTO-S050")
    have, want = src.get_valid()[at], dst.get_valid()[at]
    return fail(code, f"src has {have} valid {word}, dst has {want}: each needs one result")


def read_as(declared: DType, like: DType) -> DType:
    """The type in which a source is read: integers of the same width take the destination's sign.

    Programs often leave the sign open (`i32` beside `ui32`).
    """
    is_open = declared.is_integer and like.is_integer and declared.bits == like.bits
    return like if is_open and not declared.is_packed else declared


def require_arithmetic(case: Case) -> None:
    """Refuse element types without arithmetic, which NumPy holds as bytes."""
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
