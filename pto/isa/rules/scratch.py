"""Scratch tiles of calls of the header library: the type of a tile that the program leaves out.

A row states it at its operand, `scratch("tmp!", planned=like("dst"))`. Sizes are
those of the a2a3 headers; where they leave the size open, PTOAS decides
(PTOMaterializeImplicitTmp.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.dtypes import F32, I32, U8
from pto.core.tile import Role, TileType
from pto.isa.row import types as t
from pto.isa.row.instr import Operand, scratch
from pto.isa.rules.rule import Case

Planned = Callable[[Case], t.TileBuf | None]
P = ParamSpec("P")
MASK = t.Scalar("ui8", U8)
SUMS = t.Scalar("i32", I32)
FLOATS = t.Scalar("f32", F32)


def planned(case: Case, operand: Operand) -> t.TileBuf | None:
    """The scratch tile for an operand that is left out; None where the call needs none.

    A profile that accepts the operand and does not use it gets one block of 32 bytes.
    """
    if operand.planned is None or case.op.group(operand.name):
        return None
    planned_tile = operand.planned(case)
    if planned_tile is None or case.profile.name not in operand.idle:
        return planned_tile
    return _vector(planned_tile.elem, 1, BLOCK_BYTE_SIZE // planned_tile.tile.itemsize)


def _vector(elem: t.Scalar | None, rows: int, cols: int) -> t.TileBuf | None:
    if elem is None or elem.dtype is None:
        return None
    return t.TileBuf(elem, TileType.of(Role.VEC, elem.dtype, rows, cols))


def work_tile(planned: Planned, name: str = "tmp!") -> Operand:
    """A scratch tile in which a2a3 works; cpu and a5 accept it and leave it alone."""
    return scratch(name, idle="cpu a5", planned=planned)


def _with_arguments(
    plan: Callable[Concatenate[Case, P], t.TileBuf | None],
) -> Callable[P, Planned]:
    """A decorator: the function below it plans the tile of a case, with arguments from the row."""
    return lambda *args, **named: lambda case: plan(case, *args, **named)


@_with_arguments
def one_block(case: Case, name: str) -> t.TileBuf | None:
    """32 bytes, of the element type of an operand."""
    elem = case.elem(name)
    size = None if elem is None else elem.itemsize
    return _vector(elem, 1, BLOCK_BYTE_SIZE // (size or 1))


@_with_arguments
def like(case: Case, name: str, elem: t.Scalar | None = None) -> t.TileBuf | None:
    """A tile of the shape and region of an operand, with its element type or another one.

    A dynamic valid region becomes the whole tile.
    """
    tile, elem_type = case.tile(name), elem or case.elem(name)
    scratch = None if tile is None else _vector(elem_type, tile.rows, tile.cols)
    if scratch is None or tile is None or None in tile.valid:
        return scratch
    return t.TileBuf(scratch.elem, replace(scratch.tile, valid=tile.valid))


@_with_arguments
def rows_like(
    case: Case, name: str, count: int, extra: Callable[[int], int] | None = None
) -> t.TileBuf | None:
    """`count` rows as wide as an operand, or with `extra(columns)` columns."""
    tile = case.tile(name)
    if tile is None:
        return None
    block = BLOCK_BYTE_SIZE // tile.itemsize
    cols = tile.cols if extra is None else extra(tile.cols)
    return _vector(case.elem(name), count, -(-cols // block) * block)


@_with_arguments
def mask_of(case: Case, name: str) -> t.TileBuf | None:
    """A bit for each element of an operand, and one additional row."""
    tile = case.tile(name)
    if tile is None:
        return None
    return _vector(MASK, tile.rows + 1, -(-tile.cols // (8 * BLOCK_BYTE_SIZE)) * BLOCK_BYTE_SIZE)


@_with_arguments
def of_rows(case: Case, name: str) -> t.TileBuf | None:
    """The partial results of a fold of rows: a vector register a row (TRowReduceOps.hpp).

    One block is enough for rows of at most one register, and for integers. The header folds
    8 x 1024 elements of f32 by groups, which takes two registers a row.
    """
    tile, elem = case.tile(name), case.elem(name)
    if tile is None or elem is None:
        return None
    lane = VREG_BYTES // tile.itemsize
    if not elem.is_float or tile.cols <= lane:
        return one_block(name)(case)
    return _vector(elem, tile.rows, 2 * lane if tile.cols >= 16 * lane else lane)


@_with_arguments
def when(case: Case, needed: Callable[[Case], bool], inner: Planned) -> t.TileBuf | None:
    """The scratch tile of some forms of an instruction."""
    return inner(case) if needed(case) else None


@_with_arguments
def of_bytes(case: Case, elem: t.Scalar, needed: Callable[[Case], int | None]) -> t.TileBuf | None:
    """One row of the bytes that a call needs; None where it needs none."""
    size = needed(case)
    return _vector(elem, 1, -(-size // (elem.itemsize or 1))) if size else None
