"""Packed 4-bit values repacked: pairs along one axis become pairs along the other."""

from __future__ import annotations

from typing import Any

from pto.core.layout import SLayout
from pto.core.primitives import const, select
from pto.core.tile import Tile, TileType
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case


def turns_pairs(case: Case) -> bool:
    """True if the pairs of src are along the other axis than those of dst."""
    return case.word("turnPairs") == "true"


def lie_along_rows(dst: TileType) -> bool:
    """True if two neighbours of a column share a byte of dst."""
    return dst.layout.slayout is SLayout.COL_MAJOR


def turn(x: Mover, src: Tile, at: tuple[Any, Any], dst: Tile, size: tuple[Any, Any]) -> None:
    """dst = the values of src from item `at` on; `size` items of dst."""
    upright = lie_along_rows(dst.type)
    row, col = (at[0], 2 * at[1]) if upright else (2 * at[0], at[1])
    height, width = (
        (2 * size[0], (size[1] + 1) // 2) if upright else ((size[0] + 1) // 2, 2 * size[1])
    )
    x.holds(src, at, (height, width))

    def value(r: Any, c: Any) -> Any:
        item = x.read(src, r, c // 2) if upright else x.read(src, r // 2, c)
        high = item >> const(item, 4)
        return select((c if upright else r) % 2 == 0, item & const(item, 15), high)

    def cell(i: Any, j: Any) -> Any:
        r, c = (row + 2 * i, col + j) if upright else (row + i, col + 2 * j)
        first, second = value(r, c), value(r + 1, c) if upright else value(r, c + 1)
        return first | second << const(second, 4)

    x.each(*size, cell, dst)
