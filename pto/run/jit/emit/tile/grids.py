"""Where the elements of a tile lie, boxed or not: two steps for boxes and two inside a box."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.core.layout import Order
from pto.run.jit.border.values import TilePlace
from pto.run.jit.llvm.text import NotNative


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
    frame = type.layout.frame(*type.shape, type.itemsize)
    h, w = frame.h, frame.w
    if frame.order is Order.PLAIN:
        found = Grid(type.dtype, (1, 1), frame.cols, 1, 1, 1)
    elif frame.order is Order.BOX_ROWS:
        found = Grid(type.dtype, (h, w), h * frame.padded_cols, h * w, w, 1)
    else:
        if frame.mirrored and frame.rows % h:
            raise NotNative("columns that are no whole boxes")
        found = Grid(type.dtype, (h, w), h * w, frame.rows * w, w, 1)
    return found.turned if frame.mirrored else found
