"""Packed values in C++: its headers count single values, programs pairs (decisions_isa.md)."""

from __future__ import annotations

from dataclasses import replace

from pto.core.dtypes import DType
from pto.core.layout import Layout
from pto.core.tile import TileType
from pto.isa.row.instr import Instr
from pto.isa.rules.global_memory import line_axis
from pto.isa.tile.convert import CONVERT
from pto.isa.tile.move import LOAD, STORE


def values_in(kind: DType, layout: Layout) -> tuple[int, int]:
    """The values of an item along rows and columns: a pair lies along a line of the layout."""
    if not kind.is_packed:
        return 1, 1
    return (2, 1) if line_axis(layout) == -2 else (1, 2)


def in_values(type: TileType) -> TileType:
    """A tile with its sizes in single values."""
    rows, cols = values_in(type.dtype, type.layout)
    height, width = type.valid
    valid = (height and rows * height, width and cols * width)
    return replace(type, rows=rows * type.rows, cols=cols * type.cols, valid=valid)


def counts_values(row: Instr, layout: Layout) -> bool:
    """True if a call counts the values of such a tile; others count the bytes of plain tiles."""
    return layout.is_boxed or row.family in (LOAD, STORE, CONVERT)
