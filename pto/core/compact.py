"""Leaving padding out: compact tiles, and the packed orders of TEXTRACT and TINSERT.

`Compact` defines which boxes of an edge tile have storage at all. `ExtractMode` numbers the valid
elements alone. Neither moves data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.layout import NZ, Layout, undefined


class Compact(Enum):
    """pto-isa type.hpp, CompactMode; values are those of the text form."""

    NULL = 0
    NORMAL = 1
    ROW_PLUS_ONE = 2


def storage_shape(
    layout: Layout,
    compact: Compact,
    shape: tuple[int, int],
    valid: tuple[int, int],
    itemsize: int,
) -> tuple[int, int]:
    """Rows and columns that the address formula sees in place of the physical shape.

    Only boxed tiles have compact storage: on plain tiles the mode is kept and changes nothing.
    `normal` stores only the boxes that hold a valid element.
    """
    if compact is Compact.NULL or not layout.is_boxed:
        return shape
    (rows, cols), (h, w) = shape, layout.box(itemsize)
    if compact is Compact.ROW_PLUS_ONE:
        return _plus_one(layout, rows, cols, h, w)
    return min(rows, _whole_boxes(valid[0], h)), min(cols, _whole_boxes(valid[1], w))


def _plus_one(layout: Layout, rows: int, cols: int, h: int, w: int) -> tuple[int, int]:
    """One row more between columns of boxes, so that they start in different memory banks.

    Programs write the extra row into Rows (17 for 16) or leave it out, and mean the same pitch.
    """
    if layout.name == "NZ":
        return rows + (rows % h == 0), cols
    if layout.name == "ZN":
        return rows, cols + (cols % w == 0)
    raise undefined(layout.name, "compact mode row_plus_one is")


def _whole_boxes(valid: int, side: int) -> int:
    return max(1, -(-valid // side)) * side


class ExtractMode(Enum):
    """The compact modes of TEXTRACT and TINSERT (PTO manual, Compact Mode in TEXTRACT)."""

    ND2NZ = "ND2NZ"
    NZ2ND = "NZ2ND"
    ND = "ND"
    ND2NZ2 = "ND2NZ2"

    @property
    def source(self) -> PackedOrder:
        return _ORDERS[self][0]

    @property
    def destination(self) -> PackedOrder:
        return _ORDERS[self][1]

    def index_map(self, valid_rows: int, valid_cols: int, itemsize: int) -> npt.NDArray[np.intp]:
        """For every packed destination position, the packed source position: dst = src[map]."""
        shape = (valid_rows, valid_cols, itemsize)
        source = self.source.positions(*shape)
        result = np.empty(source.size, np.intp)
        result[self.destination.positions(*shape)] = source
        return result


@dataclass(frozen=True, slots=True)
class PackedOrder:
    """An order of the valid elements: bands of `band` rows, in a band columns of `layout` boxes.

    Padding rows and columns are not stored: the last band and the last column of boxes end with
    the valid region.
    """

    name: str
    layout: Layout | None = None
    band: int | None = None

    def positions(self, valid_rows: int, valid_cols: int, itemsize: int) -> npt.NDArray[np.intp]:
        """Array of shape (valid_rows, valid_cols): the packed position of each element."""
        if valid_rows < 0 or valid_cols < 0:
            raise fail("PTO-V001", f"valid region {valid_rows}x{valid_cols} is negative")
        r = np.arange(valid_rows, dtype=np.intp)[:, None]
        c = np.arange(valid_cols, dtype=np.intp)[None, :]
        return self.place(r, c, valid_rows, valid_cols, itemsize, np.minimum)

    def place(
        self, r: Any, c: Any, rows: Any, cols: Any, itemsize: int, least: Callable[[Any, Any], Any]
    ) -> Any:
        """The packed position of element (r, c) in rows x cols valid elements; `least` is min."""
        width = self.layout.box(itemsize)[1] if self.layout else cols
        height = self.band or rows
        top, left = r // height * height, c // width * width
        tall, wide = least(rows - top, height), least(cols - left, width)
        return top * cols + left * tall + (r - top) * wide + (c - left)


PACKED_ND: Final = PackedOrder("ND")
PACKED_NZ: Final = PackedOrder("NZ", NZ)
PACKED_NZ2: Final = PackedOrder("NZ2", NZ, band=2)

_ORDERS: Final = {
    ExtractMode.ND2NZ: (PACKED_ND, PACKED_NZ),
    ExtractMode.NZ2ND: (PACKED_NZ, PACKED_ND),
    ExtractMode.ND: (PACKED_ND, PACKED_ND),
    ExtractMode.ND2NZ2: (PACKED_ND, PACKED_NZ2),
}
