"""Windows on tiles and views: values that name part of another value's place; no data moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.tile import Tile
from pto.isa.meaning.handle.view import Handles, handles, tile_type
from pto.isa.row import types as t
from pto.isa.row.attributes import Array, Int
from pto.isa.rules.rule import Case


def sizes_of(case: Case) -> list[int]:
    """The written sizes of a window."""
    value = case.op.attrs.get("sizes")
    items = value.items if isinstance(value, Array) else ()
    return [n.value for n in items if isinstance(n, Int)]


def _subview(case: Case) -> Callable[..., Any]:
    """All of the window is valid unless operands say less, whatever of the parent is."""
    result, sizes = case.op.results[0].type, sizes_of(case)
    if not isinstance(result, t.TileBuf):
        return lambda x, source, offsets, *valid: x.part(source, offsets, sizes)
    type = tile_type(result)
    region = [
        size if valid is None else valid for valid, size in zip(type.valid, sizes, strict=True)
    ]

    def window(
        x: Handles, tile: Tile, offsets: list[int], rows: int | None, cols: int | None
    ) -> Tile:
        high = region[0] if rows is None else x.least(rows, type.rows)
        wide = region[1] if cols is None else x.least(cols, type.cols)
        row, col = offsets
        return x.window(tile, row, col, type, (high, wide))

    return window


def _subset(case: Case) -> Callable[..., Any]:
    """Valid is the window's share of the parent's valid region.

    That region repeats along the tile (a wide workspace holds several of its size), so a window
    that starts where it ends sees a full one. PTOAS SubsetOp::inferReturnTypes.
    """
    type = tile_type(case.op.results[0].type)

    def window(x: Handles, tile: Tile, offsets: list[int]) -> Tile:
        row, col = offsets
        high, wide = (
            x.choose(n > 0, lambda n=n, at=at, size=size: x.least(size, n - at % n), 0)
            for n, at, size in zip(tile.get_valid(), offsets, type.shape, strict=True)
        )
        return x.window(tile, row, col, type, (high, wide))

    return window


SUBVIEW = handles(_subview)
SUBSET = handles(_subset)
