"""Where the elements of a tile lie, boxed or not: two steps for boxes and two inside a box."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.core.layout import BLayout, SLayout
from pto.run.jit.text import NotNative
from pto.run.jit.values import TilePlace


@dataclass(frozen=True, slots=True)
class Grid:
    """Offset of (r, c): r // h * down + c // w * right + r % h * row + c % w * col elements."""

    dtype: DType
    box: tuple[int, int]
    down: int
    right: int
    row: int
    col: int

    @property
    def turned(self) -> Grid:
        """The same elements with rows and columns exchanged."""
        h, w = self.box
        return Grid(self.dtype, (w, h), self.right, self.down, self.col, self.row)


def grid(tile: TilePlace) -> Grid:
    """Of a whole tile with a layout that the ISA defines."""
    type = tile.type
    if tile.pitch is not None or type.layout.named is not None:
        raise NotNative("a window, or a layout that is only a name")
    (rows, cols), (h, w) = type.shape, type.box
    layout, size = type.layout, h * w
    high, wide = -(-rows // h), -(-cols // w)
    by_rows = layout.blayout is BLayout.ROW_MAJOR
    down, right = (wide * size, size) if by_rows else (size, high * size)
    row, col = (w, 1) if layout.slayout is SLayout.ROW_MAJOR else (1, h)
    return Grid(type.dtype, (h, w), down, right, row, col)
