"""Tile layouts: (row, column) -> element offset and back. The only file that knows fractals.

Which role may use which layout on which target is not known here (`pto/target`).

A boxed tile is a grid of small boxes. `BLayout` orders the boxes, `SLayout` orders the elements in
a box; the letters of a name say both, N for column by column and Z for row by row (NZ: boxes column
by column, each box row by row). A layout that is column-major inside is the mirror image of one
that is row-major inside, ZN(r, c) = NZ(c, r), NN(r, c) = ZZ(c, r), DN(r, c) = ND(c, r), so only
three orders exist. They are those of pto-isa tile_offsets.hpp. `Frame.axes` holds them as
(extent, stride) modes of a mixed radix; all code that computes or copies offsets reads them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pto.core.constants import (
    C0_SIZE_BYTE,
    CUBE_BLOCK_SIZE,
    FRACTAL_NZ_ROW,
    MX_COL_LEN,
    MX_ROW_LEN,
)
from pto.core.errors import PtoError, fail, look_up

Index = TypeVar("Index", int, npt.NDArray[np.intp])

FRACTAL_OPERAND: Final = CUBE_BLOCK_SIZE  # matrix operands
FRACTAL_ACC: Final = 1024  # bytes: box of a 4-byte accumulator
FRACTAL_MX: Final = MX_ROW_LEN * MX_COL_LEN  # bytes: box of one-byte MX scales
FRACTALS: Final = (FRACTAL_OPERAND, FRACTAL_ACC, FRACTAL_MX)

# Maps of larger tiles are computed each time, so that the cache stays small on any input.
CACHED_ELEMENTS: Final = 1 << 16
CACHED_FRAMES: Final = 64


class BLayout(Enum):
    """Order of the boxes, or of the elements of a tile without boxes."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    __hash__ = object.__hash__  # members are singletons; Enum would hash their names in Python


class SLayout(Enum):
    """Order of the elements inside a box."""

    NONE_BOX = "none_box"
    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    __hash__ = object.__hash__


# PTOAS PTO_IR_manual.md; PTO manual, Data Format: TileLayoutCustom.
NAMES: Final = {
    (BLayout.ROW_MAJOR, SLayout.NONE_BOX): "ND",
    (BLayout.COL_MAJOR, SLayout.NONE_BOX): "DN",
    (BLayout.COL_MAJOR, SLayout.ROW_MAJOR): "NZ",
    (BLayout.ROW_MAJOR, SLayout.COL_MAJOR): "ZN",
    (BLayout.ROW_MAJOR, SLayout.ROW_MAJOR): "ZZ",
    (BLayout.COL_MAJOR, SLayout.COL_MAJOR): "NN",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the elements of a tile lie in its buffer. `named` is FR or RN, known by name only."""

    blayout: BLayout
    slayout: SLayout
    fractal: int = FRACTAL_OPERAND
    named: str | None = None

    def __post_init__(self) -> None:
        if self.fractal not in FRACTALS:
            sizes = ", ".join(map(str, FRACTALS))
            raise fail("PTO-L002", f"fractal is {self.fractal}; a box is one of {sizes} bytes")

    @property
    def name(self) -> str:
        return self.named or NAMES[self.blayout, self.slayout]

    def __str__(self) -> str:
        plain = self.fractal == FRACTAL_OPERAND or not self.is_boxed
        return self.name if plain else f"{self.name} fractal {self.fractal}"

    @property
    def is_boxed(self) -> bool:
        return self.slayout is not SLayout.NONE_BOX

    @property
    def pitch_axis(self) -> int:
        """The dimension of the tile that the distance of lines depends on: 0 rows, 1 columns."""
        return 1 if self.blayout is BLayout.ROW_MAJOR else 0

    def box(self, itemsize: int) -> tuple[int, int]:
        """Rows and columns of one box; 1 x 1 without boxes (pto-isa pto_tile.hpp, inner box)."""
        if not self.is_boxed:
            return 1, 1
        if self.fractal == FRACTAL_ACC:
            return FRACTAL_NZ_ROW, FRACTAL_NZ_ROW
        if self.fractal == FRACTAL_MX:
            long, short = MX_ROW_LEN, MX_COL_LEN
        else:
            long, short = FRACTAL_NZ_ROW, C0_SIZE_BYTE // itemsize
        return (long, short) if self.slayout is SLayout.ROW_MAJOR else (short, long)

    def offset(self, r: Index, c: Index, rows: int, cols: int, itemsize: int) -> Index:
        """Element offset of (r, c) in a tile of rows x cols; ints or index arrays."""
        _require_inside(r, c, rows, cols)
        return self.frame(rows, cols, itemsize).offset(r, c)

    def inverse(self, offset: Index, rows: int, cols: int, itemsize: int) -> tuple[Index, Index]:
        """The (r, c) stored at `offset`, the inverse of `offset(r, c)`."""
        r, c = self.frame(rows, cols, itemsize).inverse(offset)
        _require_inside(r, c, rows, cols)
        return r, c

    def extent(self, rows: int, cols: int, itemsize: int) -> int:
        """Elements from the tile's base to its end; more than rows * cols with partial boxes."""
        return self.frame(rows, cols, itemsize).extent

    def index_map(self, rows: int, cols: int, itemsize: int) -> npt.NDArray[np.intp]:
        """Read-only array of shape (rows, cols): the offset of every element."""
        return self.frame(rows, cols, itemsize).index_map

    def view(
        self, flat: npt.NDArray[Any], rows: int, cols: int, itemsize: int
    ) -> npt.NDArray[Any] | None:
        """`flat` seen as rows x cols without a copy, or None where boxes make that impossible."""
        return self.frame(rows, cols, itemsize).view(flat)

    def to_logical(
        self, flat: npt.NDArray[Any], rows: int, cols: int, itemsize: int
    ) -> npt.NDArray[Any]:
        """A new C-contiguous rows x cols array with the elements stored in `flat`."""
        return self.frame(rows, cols, itemsize).to_logical(flat)

    def to_storage(
        self, logical: npt.NDArray[Any], itemsize: int, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        """Store a rows x cols array in `out`, or in new zeros; gaps in `out` stay untouched."""
        rows, cols = logical.shape
        frame = self.frame(rows, cols, itemsize)
        if out is None:
            return frame.new_storage(logical)
        frame.to_storage(logical, out)
        return out

    def frame(self, rows: int, cols: int, itemsize: int) -> Frame:
        """This layout applied to one shape."""
        build = _cached_frame if rows * cols <= CACHED_ELEMENTS else _frame
        return build(self, rows, cols, itemsize)


class ElementOrder(Enum):
    """Order of the elements or boxes in memory, for a frame with row-major boxes."""

    PLAIN = "elements row by row"
    BOX_COLUMNS = "boxes column by column"
    BOX_ROWS = "boxes row by row"


REST: Final = 0  # the extent of a mode that takes all that is left


class Mode(NamedTuple):
    """One (extent, stride) mode in elements; either may be an int or a symbolic number."""

    extent: Any
    stride: Any


Axis = tuple[Mode, ...]  # the modes of a row or column number, the fastest first


def position(axis: Axis, number: Index) -> Index:
    """Element offset of row (or column) `number` along one axis."""
    position: Any = number * 0
    for mode in axis:
        if mode.extent == REST:
            return position + number * mode.stride
        position = position + number % mode.extent * mode.stride
        number = number // mode.extent
    return position


@dataclass(frozen=True, eq=False)
class Frame:
    """A layout applied to one shape, transposed if needed so that boxes are row-major inside."""

    order: ElementOrder
    mirrored: bool
    rows: int
    cols: int
    h: int
    w: int
    itemsize: int

    @cached_property
    def padded_cols(self) -> int:
        return -(-self.cols // self.w) * self.w

    @cached_property
    def extent(self) -> int:
        rows = (
            -(-self.rows // self.h) * self.h if self.order is ElementOrder.BOX_ROWS else self.rows
        )
        return rows * self.padded_cols

    @cached_property
    def axes(self) -> tuple[Axis, Axis]:
        """Row axis and column axis: the offset of an element is the sum of its two positions."""
        h = self.h
        w = self.w
        inside = Mode(self.w, 1)
        if self.order is ElementOrder.PLAIN:
            return (Mode(REST, self.cols),), (Mode(REST, 1),)
        if self.order is ElementOrder.BOX_COLUMNS:
            return (Mode(REST, w),), (inside, Mode(REST, self.rows * w))
        return (Mode(h, w), Mode(REST, h * self.padded_cols)), (inside, Mode(REST, h * w))

    def offset(self, r: Index, c: Index) -> Index:
        if self.mirrored:
            r, c = c, r
        rows, cols = self.axes
        return position(rows, r) + position(cols, c)

    def inverse(self, offset: Index) -> tuple[Index, Index]:
        """Row and column of an element offset, mode by mode, the slowest first."""
        coordinates = [offset * 0, offset * 0]
        modes = [
            (mode.stride, n, 1 if k == 0 else axis[0].extent)
            for n, (axis, count) in enumerate(zip(self.axes, (self.rows, self.cols), strict=True))
            for k, mode in enumerate(axis)
            if mode.extent != 1 and count > (axis[0].extent if k else 1)  # the rest are always 0
        ]
        for step, n, weight in sorted(modes, reverse=True):
            coordinates[n] = coordinates[n] + offset // step * weight
            offset = offset % step
        r, c = coordinates
        return (c, r) if self.mirrored else (r, c)

    @cached_property
    def index_map(self) -> npt.NDArray[np.intp]:
        result = self._offsets(1)
        result.flags.writeable = False
        return result.T if self.mirrored else result

    @cached_property
    def run_map(self) -> npt.NDArray[np.intp] | None:
        """The storage run of every array run, or None where the array has partial runs.

        A run is one row of a box, 32 bytes of a matrix operand, contiguous both in storage and in
        the (mirrored) array. Moving runs, not elements, makes a conversion as cheap as a copy.
        """
        return None if self.cols % self.w else self._offsets(self.w) // self.w

    @cached_property
    def inverse_run_map(self) -> npt.NDArray[np.intp] | None:
        """The array run of every storage run, or None where storage has gaps between runs."""
        runs = self.run_map
        if runs is None or runs.size * self.w != self.extent:
            return None
        return np.argsort(runs, axis=None)

    @cached_property
    def run_type(self) -> np.dtype[np.void]:
        return np.dtype((np.void, self.w * self.itemsize))

    def _offsets(self, step: int) -> npt.NDArray[np.intp]:
        """Offset of every `step`-th element of the (mirrored) array."""
        r = np.arange(self.rows, dtype=np.intp)[:, None]
        c = np.arange(0, self.cols, step, dtype=np.intp)[None, :]
        return self.offset(c, r) if self.mirrored else self.offset(r, c)

    def view(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        return self._plain(flat) if self.order is ElementOrder.PLAIN else None

    def to_logical(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.order is ElementOrder.PLAIN:
            return self._plain(flat).copy()
        if self.run_map is None:
            return flat[self.index_map]
        inner = self._stored_runs(flat).take(self.run_map).view(flat.dtype)
        return np.ascontiguousarray(inner.T) if self.mirrored else inner

    def new_storage(self, logical: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.order is not ElementOrder.PLAIN and self.inverse_run_map is not None:
            return self._runs(logical).take(self.inverse_run_map).view(logical.dtype)
        flat = np.zeros(self.extent, logical.dtype)
        self.to_storage(logical, flat)
        return flat

    def to_storage(self, logical: npt.NDArray[Any], flat: npt.NDArray[Any]) -> None:
        if self.order is ElementOrder.PLAIN:
            self._plain(flat)[...] = logical
        elif self.inverse_run_map is None:
            flat[self.index_map] = logical
        else:
            # clip: indices are in range by construction, and only then does take write in place
            out = self._stored_runs(flat)
            np.take(self._runs(logical), self.inverse_run_map, out=out, mode="clip")

    def _plain(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
        inner = flat[: self.extent].reshape(self.rows, self.cols)
        return inner.T if self.mirrored else inner

    def _stored_runs(self, flat: npt.NDArray[Any]) -> npt.NDArray[np.void]:
        full_runs = flat if flat.size == self.extent else flat[: self.extent]
        return full_runs.view(self.run_type)

    def _runs(self, logical: npt.NDArray[Any]) -> npt.NDArray[np.void]:
        return np.ascontiguousarray(logical.T if self.mirrored else logical).view(self.run_type)


def _frame(layout: Layout, rows: int, cols: int, itemsize: int) -> Frame:
    if layout.named:
        raise undefined(layout.named, "its element offsets are")
    h, w = layout.box(itemsize)
    if rows == 1:
        h = 1  # one row has no box to fill: it lies contiguously, within rows * cols elements
    if not layout.is_boxed:
        mirrored, order = layout.blayout is BLayout.COL_MAJOR, ElementOrder.PLAIN
    else:
        mirrored = layout.slayout is SLayout.COL_MAJOR
        across = layout.blayout.value != layout.slayout.value
        order = ElementOrder.BOX_COLUMNS if across else ElementOrder.BOX_ROWS
    if mirrored:
        return Frame(order, True, cols, rows, w, h, itemsize)
    return Frame(order, False, rows, cols, h, w, itemsize)


_cached_frame = lru_cache(maxsize=CACHED_FRAMES)(_frame)


@lru_cache(maxsize=CACHED_FRAMES)
def runs_between(
    src: Layout, dst: Layout, rows: int, cols: int, itemsize: int
) -> tuple[npt.NDArray[np.intp], np.dtype[np.void]] | None:
    """How runs of `src` become runs of `dst`: dst_runs = src_runs[map], and what a run is.

    None where the two have no runs in common, or gaps between them.
    """
    if rows * cols > CACHED_ELEMENTS:
        return None
    a, b = _frame(src, rows, cols, itemsize), _frame(dst, rows, cols, itemsize)
    if a.mirrored != b.mirrored or a.w != b.w or ElementOrder.PLAIN in (a.order, b.order):
        return None
    if a.run_map is None or b.run_map is None or not a.extent == b.extent == rows * cols:
        return None
    order = np.empty(a.run_map.size, np.intp)
    order[b.run_map.reshape(-1)] = a.run_map.reshape(-1)
    return order, a.run_type


def _require_inside(r: Any, c: Any, rows: int, cols: int) -> None:
    if isinstance(r, int) and isinstance(c, int) and 0 <= r < rows and 0 <= c < cols:
        return
    for axis, index, size in (("row", r, rows), ("column", c, cols)):
        low, high = (np.min(index), np.max(index)) if np.size(index) else (0, 0)
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise fail("PTO-S004", f"{axis} {wrong} is outside the shape {rows}x{cols}")


def undefined(name: str, subject: str) -> PtoError:
    """The error for what the sources name and never define."""
    return fail(
        "PTO-L003",
        f"layout {name}: {subject} not defined by the ISA",
        help="use a layout with a defined address, such as NZ or ZN",
    )


ND: Final = Layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX)
DN: Final = Layout(BLayout.COL_MAJOR, SLayout.NONE_BOX)
NZ: Final = Layout(BLayout.COL_MAJOR, SLayout.ROW_MAJOR)
ZN: Final = Layout(BLayout.ROW_MAJOR, SLayout.COL_MAJOR)
ZZ: Final = Layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR)
NN: Final = Layout(BLayout.COL_MAJOR, SLayout.COL_MAJOR)
FR: Final = Layout(BLayout.COL_MAJOR, SLayout.ROW_MAJOR, named="FR")
RN: Final = Layout(BLayout.ROW_MAJOR, SLayout.COL_MAJOR, named="RN")
NZ_ACC: Final = Layout(BLayout.COL_MAJOR, SLayout.ROW_MAJOR, FRACTAL_ACC)
ZZ_MX: Final = Layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, FRACTAL_MX)
NN_MX: Final = Layout(BLayout.COL_MAJOR, SLayout.COL_MAJOR, FRACTAL_MX)

LAYOUTS: Final = {each.name: each for each in (ND, DN, NZ, ZN, ZZ, NN, FR, RN)}


def layout(name: str, fractal: int = FRACTAL_OPERAND) -> Layout:
    """The layout called `name` (in any case) with boxes of `fractal` bytes."""
    wrong_key = f"tile layout `{name}`; the layouts"
    known_layout = look_up(LAYOUTS, name.upper(), "PTO-L001", wrong_key)
    return Layout(known_layout.blayout, known_layout.slayout, fractal, known_layout.named)


# The PTO manual spells a layout as BLayout, SLayout and the name of the fractal, and two layouts in
# two ways: NZ with BLayout ColMajor (Layout Reference, Fractal Layout Values) and RowMajor (its
# tables of TileType), NN boxed and as NoneBox "implicit" (Tiles And Valid Regions).
_ROW, _COL = BLayout.ROW_MAJOR, BLayout.COL_MAJOR
SIGNATURES: Final[dict[str | None, dict[tuple[BLayout, SLayout], Layout]]] = {
    None: {(_ROW, SLayout.NONE_BOX): ND, (_COL, SLayout.NONE_BOX): DN},
    "NZ": {(_COL, SLayout.ROW_MAJOR): NZ, (_ROW, SLayout.ROW_MAJOR): NZ},
    "ZN": {(_ROW, SLayout.COL_MAJOR): ZN},
    "ZZ": {(_ROW, SLayout.ROW_MAJOR): ZZ},
    "NN": {(_COL, SLayout.COL_MAJOR): NN, (_ROW, SLayout.NONE_BOX): NN},
    "FR": {(_COL, SLayout.ROW_MAJOR): FR},
    "RN": {(_ROW, SLayout.COL_MAJOR): RN},
}


def signature_layout(blayout: BLayout, slayout: SLayout, fractal: str | None) -> Layout:
    """The layout that Tile<.., BLayout, SLayout, Fractal, ..> of the manual names."""
    if fractal not in SIGNATURES:
        return layout(str(fractal))
    matching = SIGNATURES[fractal].get((blayout, slayout))
    if matching is None:
        forms = " or ".join(f"{b.value} + {s.value}" for b, s in SIGNATURES[fractal])
        raise fail(
            "PTO-L004",
            f"fractal {fractal} needs blayout + slayout {forms}, "
            f"and the tile has {blayout.value} + {slayout.value}",
        )
    return matching
