"""Where the elements of a tile lie, boxed or not: two steps for boxes and two inside a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pto.core.compact import Compact
from pto.core.dtypes import DType
from pto.core.layout import Axis, ElementOrder
from pto.core.tile import TileType
from pto.run.jit.llvm.text import Val, unsupported_if
from pto.run.jit.runtime.values import TileDesc


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


def kept_shape(type: TileType, valid: Sequence[Val]) -> tuple[int, int]:
    """The shape of a compact tile, where its valid region, which decides, leaves no box out: it is
    known, or there is one box."""
    for given, extent, side in zip(valid, type.shape, type.box, strict=True):
        unsupported_if(
            extent > side and (not isinstance(given, int) or -(-given // side) * side < extent),
            "a compact tile without some of its boxes",
        )
    return type.shape


def grid(tile: TileDesc) -> Grid:
    """Of a whole tile with a layout that the ISA defines."""
    type = tile.type
    unsupported_if(
        tile.pitch is not None or type.layout.named is not None,
        "a window, or a layout that is only a name",
    )
    if type.compact is Compact.NORMAL and type.layout.is_boxed:
        kept_shape(type, tile.valid)
    frame = type.layout.frame(*type.storage_shape(type.shape), type.itemsize)
    unsupported_if(
        frame.mirrored and frame.order is ElementOrder.BOX_COLUMNS and frame.rows % frame.h,
        "columns that are no whole boxes",
    )
    box = (1, 1) if frame.order is ElementOrder.PLAIN else (frame.h, frame.w)
    (row, down), (col, right) = (_steps(a, n) for a, n in zip(frame.axes, box, strict=True))
    found = Grid(type.dtype, box, down, right, row, col)
    return found.turned if frame.mirrored else found


def _steps(axis: Axis, count: int) -> tuple[int, int]:
    """From one element to the next inside a box, and from box to box."""
    first = axis[0].step
    return first, axis[1].step if len(axis) > 1 else first * count
