"""Gives each of the two vector sub-blocks half of the rows of a function that is split.

A tile that comes out of a queue or goes into one has half of its rows in each sub-block, and so
have all tiles that it is computed with. That needs instructions that treat rows alone: row i of a
result follows from row i of the operands. A column of numbers, one for each row, may be seen as a
row: its halves lie along the other axis. Tiles that have nothing to do with a queue stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pto.core.dtypes import I64
from pto.core.tile import TileType
from pto.ir.builder import INDEX, Builder, scalar_type
from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, GET_VALIDSHAPE, SET_VALIDSHAPE
from pto.isa.handle.view import PARTITION_VIEW
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.order.queue import FREE_AT, POP_AT, PUSH_FROM
from pto.isa.row.attributes import Int
from pto.isa.row.types import TileBuf, View
from pto.isa.scalar.arith import ADDI, INDEX_CAST
from pto.isa.scalar.unit import GET_SUBBLOCK_IDX
from pto.isa.tile.elementwise_scalar import TEXPANDS
from pto.isa.tile.generate import TTRI
from pto.isa.tile.move import TLOAD, TMOV, TSTORE
from pto.transform.index_math import IndexMath

ROWS, COLUMNS = 0, 1  # the axis along which a tile is halved
_UPPER_LOWER = 1  # `split` of a queue
_BLOCK = 32  # bytes: a tile begins at a multiple of it
_BOX = 16  # rows of a box of the matrix unit
_QUEUE = {*PUSH_FROM.values(), *POP_AT.values(), *FREE_AT.values()}
_REGIONS = (ALLOC_TILE, GET_VALIDSHAPE, SET_VALIDSHAPE)
_LONG = scalar_type(I64)


class WholeTiles(Exception):
    """The reason why one vector sub-block has to have all rows."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(f"{f'line {op.loc.line}: ' if op.loc else ''}'{op.name}' {why}")


def halved_tiles(function: Operation, profile: str) -> dict[Value, int]:
    """The tiles of a vector function that each sub-block has half of, with the axis.

    Raises `WholeTiles` where an instruction needs the rows of both.
    """
    ops = list(function.walk())[1:]
    axes: dict[Value, int] = {}
    count = -1
    while count != len(axes):
        count = len(axes)
        for op in ops:
            _spread(op, axes, profile)
    for op in ops:
        _require_halves(op, axes)
    return axes


# ---- which tiles


def _spread(op: Operation, axes: dict[Value, int], profile: str) -> None:
    """Give the tiles of an instruction the axis that one of them has."""
    tiles = [v for v in (*op.given("in", "out", "inout"), *op.results) if _is_tile(v)]
    if op.row in _QUEUE:
        _join(op, tiles, {ROWS}, axes)
    split_axes = {axes[t] for t in tiles if t in axes}
    if not split_axes or op.row in _QUEUE or op.row in (*_REGIONS, TLOAD, TSTORE):
        return
    if op.body is RESHAPE:
        _spread_names(op, tiles[0], tiles[1], axes)
    elif _is_elementwise(op):
        _join(op, tiles, split_axes, axes)
    elif _treats_rows_alone(op, profile):
        shared = _row_for_all(op)
        if shared is not None and shared in axes:
            raise WholeTiles(op, "adds rows of both halves")
        _join(op, [t for t in tiles if t is not shared], split_axes | {ROWS}, axes)
    else:
        raise WholeTiles(op, "does not treat rows alone")


def _join(
    op: Operation, tiles: Iterable[Value], split_axes: set[int], axes: dict[Value, int]
) -> None:
    tiles = list(tiles)
    if len(split_axes | {axes[t] for t in tiles if t in axes}) > 1:
        raise WholeTiles(op, "does not treat rows alone")
    axes |= dict.fromkeys(tiles, *split_axes)


def _spread_names(op: Operation, source: Value, named: Value, axes: dict[Value, int]) -> None:
    """A tile under another type: the rows of a column are the columns of a row."""
    for one, other in ((source, named), (named, source)):
        if one not in axes:
            continue
        axis, shape = axes[one], _tile(one).shape
        if _tile(other).shape == shape:
            _join(op, [other], {axis}, axes)
        elif _tile(other).shape == shape[::-1] and shape[1 - axis] == 1:
            _join(op, [other], {1 - axis}, axes)
        else:
            raise WholeTiles(op, "sees the bytes of several rows as one")


def _is_elementwise(op: Operation) -> bool:
    lane = op.body.spread is None if isinstance(op.body, Lane) else False
    return lane or isinstance(op.body, Conversion) or op.row in (TEXPANDS, TMOV)


def _treats_rows_alone(op: Operation, profile: str) -> bool:
    folds = isinstance(op.body, Fold) and op.body.axis == "row"
    return folds or isinstance(op.body, Lane) or profile in op.traits.by_rows or op.row is TTRI


def _row_for_all(op: Operation) -> Value | None:
    """The row of numbers that an instruction combines with every row."""
    by_column = isinstance(op.body, Lane) and op.body.spread == "column"
    return [v for v in op.given("in") if _is_tile(v)][-1] if by_column else None


# ---- what the halves need


def _require_halves(op: Operation, axes: dict[Value, int]) -> None:
    """Raise if the two halves of an instruction cannot be stated."""
    for tile in (v for v in (*op.operands, *op.results) if v in axes):
        if op.control is not None:
            raise WholeTiles(op, "passes a tile on")
        if op.row in (TLOAD, TSTORE):
            _require_window(op, tile, axes[tile])
    for tile in (v for v in op.results if v in axes):
        type, axis = _tile(tile), axes[tile]
        half = type.shape[axis] // 2
        boxes = type.layout.is_boxed and half % _BOX
        ragged = type.layout.name != "ND" and half * type.itemsize % _BLOCK
        cut = axis == COLUMNS and half * type.itemsize % _BLOCK
        if type.shape[axis] % 2 or boxes or ragged or cut:
            raise WholeTiles(op, f"makes {type}, which cannot be halved")
    for tile, extent in _extents(op, axes):
        is_queried = extent.maker is not None and extent.maker.row is GET_VALIDSHAPE
        if not is_queried and extent.number != _tile(tile).shape[axes[tile]]:
            raise WholeTiles(op, "has rows that are counted when it runs")
    for tile in (v for v in op.results if v in axes):
        valid = _tile(tile).valid[axes[tile]]
        if valid is not None and valid != _tile(tile).shape[axes[tile]]:
            raise WholeTiles(op, f"has {valid} rows of {_tile(tile).shape[axes[tile]]}")
    if op.row is GET_VALIDSHAPE and op.operands[0] in axes:
        users = op.results[axes[op.operands[0]]].uses
        if any(u.row not in (*POP_AT.values(), ALLOC_TILE, SET_VALIDSHAPE) for u in users):
            raise WholeTiles(op, "counts the rows for other instructions")


def _extents(op: Operation, axes: dict[Value, int]) -> list[tuple[Value, Value]]:
    """The numbers that say how many rows a halved tile has, each with its tile."""
    described = op.operands[:1] if op.row is SET_VALIDSHAPE else op.results
    extents: list[tuple[Value, Value]] = []
    if op.row in (ALLOC_TILE, SET_VALIDSHAPE, *POP_AT.values()):
        for tile in (v for v in described if v in axes):
            extent = op.operand(("valid_row", "valid_col")[axes[tile]])
            extents += [] if extent is None else [(tile, extent)]
    return extents


def _require_window(op: Operation, tile: Value, axis: int) -> None:
    """Raise unless the rows of a tile are the rows of a window, which then has halves too."""
    window = op.operand("src" if op.row is TLOAD else "dst")
    maker = None if window is None else window.maker
    if maker is None or maker.row is not PARTITION_VIEW or axis != ROWS:
        raise WholeTiles(op, "moves rows that no window counts")
    *outer, rows, _ = [v.number for v in maker.group("sizes")]
    if any(n != 1 for n in outer) or rows != _tile(tile).shape[ROWS]:
        raise WholeTiles(op, "moves rows that are counted when it runs")


# ---- the program


def halve(function: Operation, axes: dict[Value, int]) -> None:
    """Let a vector function work on the half of the rows that its sub-block has."""
    first = function.regions[0].block.ops[0]
    builder = Builder(function)
    sub_block_op = builder.make(GET_SUBBLOCK_IDX, results=[_LONG])
    number = builder.make(INDEX_CAST, {"in": sub_block_op.results[0]}, results=[INDEX])
    first.home.insert(0, sub_block_op, number)
    sub_block = number.results[0]
    for op in list(function.walk())[1:]:
        for tile, extent in _extents(op, axes):
            if extent.number is not None:
                half = builder.constant(extent.number // 2, INDEX)
                name = ("valid_row", "valid_col")[axes[tile]]
                op.set_group(name, [half])
        tile = next((v for v in op.operands if v in axes), None)
        if tile is not None and op.row in (TLOAD, TSTORE):
            _halve_window(op, tile, sub_block, builder)
        elif tile is not None and op.row is TTRI:
            _shift_diagonal(op, tile, sub_block, builder)
    scratch = [tile for op in function.walk() for tile in _scratch(op, axes)]
    for tile, axis in [*axes.items(), *dict.fromkeys(scratch, ROWS).items()]:
        tile.type = _half_type(tile, axis)


def _scratch(op: Operation, axes: Mapping[Value, int]) -> list[Value]:
    """The working space of an instruction that has a row for each row of halved tiles."""
    rows = {_tile(v).rows for v in op.given("in") if axes.get(v) == ROWS}
    tiles = [v for v in op.given("tmp") if v not in axes and _is_tile(v)]
    return [v for v in tiles if {_tile(v).rows} == rows and v.uses == [op]]


def pass_halves(function: Operation) -> None:
    """Let all queues of a function pass upper and lower halves."""
    for op in function.walk():
        if op.row in _QUEUE:
            split = op.attrs["split"]
            assert isinstance(split, Int)
            op.attrs["split"] = replace(split, value=_UPPER_LOWER)


def _half_type(tile: Value, axis: int) -> TileBuf:
    assert isinstance(tile.type, TileBuf)
    type = tile.type.tile
    valid = tuple(n // 2 if a == axis and n is not None else n for a, n in enumerate(type.valid))
    shape = {"rows" if axis == ROWS else "cols": type.shape[axis] // 2}
    return TileBuf(tile.type.elem, replace(type, **shape, valid=valid))


def _halve_window(op: Operation, tile: Value, sub_block: Value, builder: Builder) -> None:
    name = "src" if op.row is TLOAD else "dst"
    window = op.group(name)[0]
    maker, type = window.maker, window.type
    assert maker is not None
    assert isinstance(type, View)
    half = _tile(tile).shape[ROWS] // 2
    numbers = IndexMath(builder, op)
    offsets, sizes = maker.group("offsets"), maker.group("sizes")
    offsets[-2] = numbers.value(numbers.add(offsets[-2], numbers.mul(sub_block, half)))
    sizes[-2] = numbers.value(half)
    operands = {"source": maker.group("source"), "offsets": offsets, "sizes": sizes}
    shape = (*type.shape[:-2], half, type.shape[-1])
    made = builder.make(
        PARTITION_VIEW, operands, attrs=maker.attrs, results=[replace(type, shape=shape)]
    )
    op.home.insert(op.home.ops.index(op), made)
    op.set_group(name, made.results)


def _shift_diagonal(op: Operation, tile: Value, sub_block: Value, builder: Builder) -> None:
    """The first row of the lower half is row n of the whole, where the diagonal is n further."""
    diagonal = op.group("diagonal")[0]
    numbers = IndexMath(builder, op)
    start = numbers.value(numbers.mul(sub_block, _tile(tile).shape[ROWS] // 2))
    cast = builder.make(INDEX_CAST, {"in": start}, results=[diagonal.type])
    moved = {"lhs": diagonal, "rhs": cast.results[0]}
    added = builder.make(ADDI, moved, results=[diagonal.type])
    op.home.insert(op.home.ops.index(op), cast, added)
    op.set_group("diagonal", added.results)


def _is_tile(value: Value) -> bool:
    return isinstance(value.type, TileBuf)


def _tile(value: Value) -> TileType:
    assert isinstance(value.type, TileBuf)
    return value.type.tile
