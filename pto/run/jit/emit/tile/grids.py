"""Where the elements of a tile lie, boxed or not: two steps for boxes and two inside a box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pto.core.dtypes import DType
from pto.core.layout import Axis, ElementOrder
from pto.run.jit.emit.tile.boxes import frame_of, stored_shape
from pto.run.jit.llvm.text import Val, expect, unsupported_if
from pto.run.jit.runtime.values import TileDesc


@dataclass(frozen=True, slots=True)
class Grid:
    """Offset of (r, c): r // h * down + c // w * right + r % h * row + c % w * col elements. Only
    rows of global memory have a distance that is known when it runs."""

    dtype: DType
    box: tuple[int, int]
    down: Val
    right: int
    row: Val
    col: int

    def renamed(self, name: Callable[[Val], Val]) -> Grid:
        """The same grid with other names for its numbers."""
        return replace(self, down=name(self.down), row=name(self.row))

    @property
    def turned(self) -> Grid:
        """The same elements with rows and columns exchanged."""
        h, w = self.box
        down, row = expect(self.down, int, "rows"), expect(self.row, int, "rows")
        return Grid(self.dtype, (w, h), self.right, down, self.col, row)


def grid(tile: TileDesc) -> Grid:
    """Of a whole tile with a layout that the ISA defines."""
    unsupported_if(tile.pitch is not None, "a window")
    frame = frame_of(tile.type, stored_shape(tile))
    unsupported_if(
        frame.mirrored and frame.order is ElementOrder.BOX_COLUMNS and frame.rows % frame.h,
        "columns that are no whole boxes",
    )
    box = (1, 1) if frame.order is ElementOrder.PLAIN else (frame.h, frame.w)
    (row, down), (col, right) = (_steps(a, n) for a, n in zip(frame.axes, box, strict=True))
    found = Grid(tile.type.dtype, box, down, right, row, col)
    return found.turned if frame.mirrored else found


def _steps(axis: Axis, count: int) -> tuple[int, int]:
    """From one element to the next inside a box, and from box to box."""
    first = axis[0].step
    return first, axis[1].step if len(axis) > 1 else first * count
