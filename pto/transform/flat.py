"""Conversions of whole tiles as one row: the library converts row by row, however short rows are.

The rows of a tile lie one behind the other, so that the tile is also one long row. Elements are
converted one by one, so that the bits stay.
"""

from __future__ import annotations

from dataclasses import replace

from pto.core.layout import ND
from pto.ir.builder import Builder
from pto.ir.graph import Operation, Value
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.row.types import TileBuf
from pto.isa.tile.rearrange import TRESHAPE
from pto.transform.pass_result import PassResult


def flat(function: Operation) -> list[PassResult]:
    """Convert whole tiles as one row."""
    builder, results = Builder(function), list[PassResult]()
    for op in list(function.walk()):
        tiles = [v for v in op.operands if isinstance(v.type, TileBuf)]
        if isinstance(op.body, Conversion) and len(tiles) == len(op.operands):
            types = [(tile, type) for tile in tiles if (type := _as_row(tile)) is not None]
            if tiles and len(types) == len(tiles):
                op.set_operands([_seen(tile, type, op, builder) for tile, type in types])
                results.append(PassResult("a tile is converted as one row", op.loc))
    return results


def _as_row(tile: Value) -> TileBuf | None:
    """The type of a whole tile of several rows as one row; None for other tiles."""
    assert isinstance(tile.type, TileBuf)
    type = tile.type.tile
    if type.layout != ND or type.rows == 1 or type.valid != type.shape:
        return None
    count = type.rows * type.cols
    return TileBuf(tile.type.elem, replace(type, rows=1, cols=count, valid=(1, count)))


def _seen(tile: Value, type: TileBuf, op: Operation, builder: Builder) -> Value:
    """A tile under another type, before an operation."""
    made = builder.make(TRESHAPE, {"src": tile}, results=[type], where=op.loc)
    op.home.insert(op.home.ops.index(op), made)
    return made.results[0]
