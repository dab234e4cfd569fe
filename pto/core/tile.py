"""Tiles: a shape, an element type and a layout in one local buffer, with a valid region.

Instructions and the combinations that a target allows are defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.compact import Compact, storage_shape
from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType, items_of
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.layout import FRACTAL_ACC, FRACTAL_MX, ND, NN_MX, ZZ_MX, Layout
from pto.core.memory import Memory, Role, Space
from pto.core.pad import Pad

Valid = tuple[int | None, int | None]  # None: known only when the program runs
_SCALES = {ZZ_MX: Space.SCALE_A, NN_MX: Space.SCALE_B}


@dataclass(frozen=True, slots=True)
class TileType:
    """Tile<TileType, DType, Rows, Cols, BLayout, SLayout, Fractal, Pad> of the manual.

    A shape that does not suit its layout can be described too, so that a checker can report all
    tiles of a program; `findings` lists the problems and `check` raises them.
    """

    role: Role
    dtype: DType
    rows: int
    cols: int
    layout: Layout
    pad: Pad
    valid: Valid
    compact: Compact = Compact.NULL
    space: Space = field(init=False, compare=False, repr=False)  # the buffer it lives in
    shape: tuple[int, int] = field(init=False, compare=False, repr=False)
    itemsize: int = field(init=False, compare=False, repr=False)
    _nbytes: int = field(init=False, compare=False, repr=False, default=0)  # 0: not asked yet

    @classmethod
    def of(
        cls,
        role: Role,
        dtype: DType,
        rows: int,
        cols: int,
        layout: Layout = ND,
        *,
        pad: Pad = Pad.NULL,
        valid: Valid | None = None,
        compact: Compact = Compact.NULL,
    ) -> TileType:
        """A tile type with the defaults of the text form: valid is the whole shape."""
        region = (rows, cols) if valid is None else valid
        return cls(role, dtype, rows, cols, layout, pad, region, compact)

    def __post_init__(self) -> None:
        space = self.role.space
        if self.role is Role.ACC and self.layout.is_boxed:  # L0C has no other boxes
            object.__setattr__(self, "layout", replace(self.layout, fractal=FRACTAL_ACC))
        elif self.role is Role.SCALING:  # a name for both buffers of MX scales too
            space = _SCALES.get(self.layout, space)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "shape", (self.rows, self.cols))
        object.__setattr__(self, "itemsize", self.dtype.itemsize)
        if self.rows < 1 or self.cols < 1:
            raise fail("PTO-S001", f"tile shape {self.rows}x{self.cols} must be positive")
        _require_valid(self, self.valid)

    def __str__(self) -> str:
        return f"{self.role.value} {self.rows}x{self.cols}x{self.dtype.name} {self.layout}"

    @property
    def box(self) -> tuple[int, int]:
        return self.layout.box(self.itemsize)

    @property
    def is_dense(self) -> bool:
        """Whether its elements fill its storage, in the order of the layout."""
        return self.compact is Compact.NULL and self.storage_shape(self.shape) == self.shape

    @property
    def nbytes(self) -> int:
        """Bytes from the tile's address to its end; at most this much with compact storage."""
        if not self._nbytes:
            rows, cols = self.storage_shape(self.shape)
            nbytes = self.layout.extent(rows, cols, self.itemsize) * self.itemsize
            object.__setattr__(self, "_nbytes", nbytes)
        return self._nbytes

    def storage_shape(self, valid: tuple[int, int]) -> tuple[int, int]:
        """The shape in the address formula; differs from `shape` for compact tiles, and for a row
        of an accumulator: L0C has whole boxes."""
        if self.compact is Compact.NULL and self.role is not Role.ACC:
            return self.shape
        rows, cols = storage_shape(self.layout, self.compact, self.shape, valid, self.itemsize)
        return (max(rows, self.box[0]) if self.role is Role.ACC else rows), cols

    def offset(self, r: Any, c: Any) -> Any:
        """Element offset of (r, c) where all of the tile is valid; ints or index arrays."""
        return self.layout.offset(r, c, *self.storage_shape(self.shape), self.itemsize)

    def findings(self, block: int = BLOCK_BYTE_SIZE) -> list[Diagnostic]:
        """Everything wrong with the shape. `block` is the row alignment of the target in bytes."""
        return [*self._box_findings(), *self._block_findings(block), *self._scalar_findings()]

    def check(self, block: int = BLOCK_BYTE_SIZE) -> None:
        problems = self.findings(block)
        if problems:
            raise PtoError(*problems)

    def _box_findings(self) -> Iterator[Diagnostic]:
        """pto-isa pto_tile.hpp, assertions of a tile, boxed."""
        h, w = self.box
        if not self.layout.is_boxed and self.layout.fractal == FRACTAL_ACC:
            w = 16  # pto-isa pto_tile.hpp, inner box: only the columns are checked
        loose = self.role is Role.VEC or self.layout.fractal == FRACTAL_MX or self.rows == 1
        for axis, size, side in (("rows", self.rows, 1 if loose else h), ("cols", self.cols, w)):
            if size % side:
                yield Diagnostic(
                    "PTO-S002",
                    f"{self}: {axis} {size} is not a multiple of {side}, the box is {h}x{w}",
                    help=f"use {axis} {-(-size // side) * side} and set the valid region to {size}",
                )

    def _block_findings(self, block: int) -> Iterator[Diagnostic]:
        """pto-isa pto_tile.hpp, assertions of a tile, none_box."""
        if self.layout.is_boxed or self.role is Role.SCALAR:
            return
        line, count = ("row", self.cols) if self.layout.name == "ND" else ("column", self.rows)
        nbytes = count * self.itemsize
        if nbytes % block:
            yield Diagnostic(
                "PTO-S005",
                f"{self}: a {line} has {count} elements = {nbytes} bytes, "
                f"not a multiple of {block} bytes",
            )

    def _scalar_findings(self) -> Iterator[Diagnostic]:
        if self.role is Role.SCALAR and self.shape != (1, 1):
            yield Diagnostic("PTO-S008", f"{self}: a scalar tile is 1x1")


def _require_valid(tile_type: TileType, valid: Valid) -> None:
    rows, cols = valid
    if (rows is None or 0 <= rows <= tile_type.rows) and (
        cols is None or 0 <= cols <= tile_type.cols
    ):
        return
    for axis, size, limit in zip(("rows", "columns"), valid, tile_type.shape, strict=True):
        if size is not None and not 0 <= size <= limit:
            raise fail(
                "PTO-V001",
                f"{size} valid {axis} do not fit a tile with {limit} {axis} ({tile_type})",
            )


def _require_space(tile_type: TileType, memory: Memory) -> None:
    home = tile_type.space
    if memory.space is not home:
        raise fail("PTO-M004", f"{tile_type} belongs in {home.value}, not in {memory.space.value}")


_new = object.__new__


class Tile:
    """A tile type at an address of a buffer, with its current valid region.

    Every type has defined addresses, also one with findings: the verifier checks types. `pitch` is
    set for a window on another tile: it is the pitch of that tile, in rows or columns of boxes.
    """

    __slots__ = ("_part", "_pitch", "_plain", "_valid", "address", "memory", "nbytes", "type")

    def __init__(
        self,
        type: TileType,
        memory: Memory,
        address: int = 0,
        valid: Valid | None = None,
        *,
        pitch: int | None = None,
    ) -> None:
        _require_space(type, memory)
        region = type.valid if valid is None else valid
        _require_valid(type, region)
        usual = type.shape[type.layout.pitch_axis] if type.compact is Compact.NULL else None
        self.type = type
        self.memory = memory
        self.address = address
        self._valid: Valid = region
        self._pitch = None if pitch == usual else pitch
        self._plain: tuple[npt.NDArray[Any] | None] | None = None  # made once: `view`
        self._part: tuple[tuple[int, int], npt.NDArray[Any]] | None = None  # the last: `part`
        # bytes from the first element to the end of the last, gaps of a window included
        self.nbytes: int = self._extent()
        memory.check(address, self.nbytes, memory.align if pitch is None else 1)

    def again(self, valid: Valid) -> Tile:
        """Another handle of the same bytes, with a valid region of its own."""
        if valid != self._valid:
            _require_valid(self.type, valid)
        copied = _new(Tile)
        copied.type = self.type
        copied.memory = self.memory
        copied.address = self.address
        copied._valid, copied._pitch = valid, self._pitch
        copied._plain, copied._part = self._plain, self._part
        copied.nbytes = self.nbytes
        return copied

    def __repr__(self) -> str:
        return f"Tile({self.type} at {self.memory.space.value} {self.address:#x})"

    def get_valid(self) -> tuple[int, int]:
        """(Rv, Cv), the rows and columns that are meaningful."""
        rows, cols = self._valid
        if rows is None or cols is None:
            raise fail("PTO-V002", f"the valid region of {self.type} is dynamic and was not set")
        return rows, cols

    @property
    def known_valid(self) -> Valid:
        """The valid region, None where nothing has set it yet."""
        return self._valid

    def set_valid(self, rows: int, cols: int) -> None:
        _require_valid(self.type, (rows, cols))
        self._valid = (rows, cols)
        if self.type.compact is Compact.NORMAL:
            self.nbytes = self._extent()
            self.memory.check(self.address, self.nbytes)

    def window(self, row: int, col: int, type: TileType, valid: Valid | None = None) -> Tile:
        """The part of shape `type` from (row, col) on as a tile of its own, in the same bytes."""
        rows, cols = self.type.shape
        if row < 0 or col < 0 or row + type.rows > rows or col + type.cols > cols:
            raise fail(
                "PTO-S073",
                f"a window of {type.rows}x{type.cols} at ({row}, {col}) is not inside {self.type}",
            )
        h, w = self.type.box
        if row % h or col % w:
            raise fail(
                "PTO-L070", f"a window at ({row}, {col}) of {self.type} cuts its {h}x{w} boxes"
            )
        layout, stored = self.type.layout, self._stored()
        skipped = layout.offset(row, col, *stored, self.type.itemsize) * self.type.itemsize
        pitch = stored[layout.pitch_axis]
        return Tile(type, self.memory, self.address + skipped, valid, pitch=pitch)

    def retyped(self, type: TileType, valid: Valid | None = None) -> Tile:
        """The same bytes under another type."""
        if self._pitch is None:
            return Tile(type, self.memory, self.address, valid)
        shape_and_layout = (type.shape, type.layout, type.itemsize)
        if shape_and_layout != (self.type.shape, self.type.layout, self.type.itemsize):
            raise fail(
                "PTO-L180",
                f"{self.type} is a window with gaps between its lines: it cannot become {type}",
                help="copy the window to a tile of its own first, with pto.tmov",
            )
        return Tile(type, self.memory, self.address, valid, pitch=self._pitch)

    def moved(self, memory: Memory, address: int) -> Tile:
        """This tile at another place: type, valid region and distance between lines stay."""
        return Tile(self.type, memory, address, self._valid, pitch=self._pitch)

    @property
    def window_pitch(self) -> int | None:
        """The pitch of the tile this is a window on; None for a tile of its own."""
        return self._pitch

    @property
    def is_whole(self) -> bool:
        """Whether `items` are the elements of this tile alone, in the order of its layout."""
        return self._pitch is None and self.type.is_dense

    @property
    def pitch(self) -> int:
        """Elements from one line to the next, in a tile without boxes."""
        return self.type.shape[self.type.layout.pitch_axis] if self._pitch is None else self._pitch

    def _extent(self) -> int:
        if self._pitch is None:
            return self.type.nbytes if None in self._valid else self._compact_extent()
        (rows, cols), size = self.type.shape, self.type.itemsize
        return (self.type.layout.offset(rows - 1, cols - 1, *self._stored(), size) + 1) * size

    def _compact_extent(self) -> int:
        """Bytes in use: compact storage ends with the last box that holds a valid element."""
        if self.type.compact is not Compact.NORMAL or not self.type.layout.is_boxed:
            return self.type.nbytes
        rows, cols = self.type.storage_shape(self.get_valid())
        return self.type.layout.extent(rows, cols, self.type.itemsize) * self.type.itemsize

    @property
    def items(self) -> npt.NDArray[Any]:
        """The stored items in memory order; writing to them writes to the tile.

        Between the lines of a window lie items of its parent.
        """
        raw = self.memory.view(self.address, self.nbytes)
        return raw.view(self.type.dtype.storage)

    def offsets(self) -> npt.NDArray[np.intp]:
        """The index in `items` of each element; compact storage omits some at the edges."""
        offsets = self.type.layout.index_map(*self._stored(), self.type.itemsize)
        return offsets[: self.type.rows, : self.type.cols]

    def view(self) -> npt.NDArray[Any] | None:
        """All elements over the same memory, or None where boxes make that impossible."""
        if self._plain is None:
            plain = self._view()
            self._plain = (None if plain is None else plain.view(self.type.dtype.numpy),)
        return self._plain[0]

    def part(self, rows: int, cols: int) -> npt.NDArray[Any] | None:
        """The first rows and columns of `view`, as many of them as there are."""
        if self._part is not None and self._part[0] == (rows, cols):
            return self._part[1]
        plain = self.view()
        if plain is None:
            return None
        window = plain[:rows, :cols]
        self._part = (rows, cols), window
        return window

    def read(self) -> npt.NDArray[Any]:
        """A copy of all rows x cols elements, valid or not, of type `dtype.numpy`."""
        rows, cols = self.type.shape
        view = self._view()
        if view is not None:
            out = view.copy()
        elif self._stored() == (rows, cols):
            out = self.type.layout.to_logical(self.items, rows, cols, self.type.itemsize)
        else:
            empty = self.type.pad.bits(self.type.dtype)
            out = np.full((rows, cols), empty, self.type.dtype.storage)
            stored_offsets = self.offsets()
            out[: stored_offsets.shape[0], : stored_offsets.shape[1]] = self.items[stored_offsets]
        return out.view(self.type.dtype.numpy)

    def read_valid(self) -> npt.NDArray[Any]:
        """A copy of the valid region, of shape (Rv, Cv)."""
        rows, cols = self.get_valid()
        if (rows, cols) == self.type.shape:
            return self.read()
        stored, part = self._part_of(rows, cols)
        return np.array(stored[part], order="C").view(self.type.dtype.numpy)

    def write(self, array: npt.NDArray[Any]) -> None:
        """Store all rows x cols elements. Padding that compact storage leaves out is dropped."""
        items = self._items_of(array, self.type.shape)
        view = self._view()
        if view is not None:
            view[...] = items
            return
        if self._stored() == self.type.shape:
            self.type.layout.to_storage(items, self.type.itemsize, out=self.items)
            return
        stored_offsets = self.offsets()
        self.items[stored_offsets] = items[: stored_offsets.shape[0], : stored_offsets.shape[1]]

    def write_valid(self, array: npt.NDArray[Any]) -> None:
        """Store an array of shape (Rv, Cv); bytes outside the valid region stay untouched."""
        rows, cols = self.get_valid()
        if (rows, cols) == self.type.shape:
            self.write(array)
            return
        items = self._items_of(array, (rows, cols))
        stored, part = self._part_of(rows, cols)
        stored[part] = items

    def _part_of(self, rows: int, cols: int) -> tuple[npt.NDArray[Any], Any]:
        """An array over the memory, and the index of the first rows and columns in it."""
        view = self._view()
        if view is not None:
            return view, np.s_[:rows, :cols]
        return self.items, self.offsets()[:rows, :cols]

    def fill_pad(self, pad: Pad | None = None) -> None:
        """Fill the elements outside the valid region; Null and Invalid leave them as they are."""
        chosen = self.type.pad if pad is None else pad
        rows, cols = self.get_valid()
        if not chosen.is_defined:
            return
        bits, offsets = chosen.bits(self.type.dtype), self.offsets()
        for outside in (offsets[rows:, :], offsets[:rows, cols:]):
            self.items[outside] = bits

    def _stored(self) -> tuple[int, int]:
        """The shape in the address formula now."""
        rows, cols = self.type.shape
        if self._pitch is not None:
            return (rows, self._pitch) if self.type.layout.pitch_axis else (self._pitch, cols)
        if self.type.compact is Compact.NULL:
            return self.type.storage_shape(self.type.shape)
        return self.type.storage_shape(self.get_valid())

    def _view(self) -> npt.NDArray[Any] | None:
        layout, size = self.type.layout, self.type.itemsize
        if self._pitch is None or layout.is_boxed:
            return layout.view(self.items, *self._stored(), size) if self.type.is_dense else None
        step = self._pitch * size
        strides = (step, size) if layout.pitch_axis else (size, step)
        storage = self.type.dtype.storage
        return self.memory.strided(self.address, self.type.shape, strides, storage)

    def _items_of(self, array: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
        """`array` as items of the tile: the tile never rounds or wraps values by itself."""
        if array.shape != shape:
            got = "x".join(map(str, array.shape)) or "a scalar"
            raise fail(
                "PTO-S006", f"{self.type} takes an array of {shape[0]}x{shape[1]}, not {got}"
            )
        return items_of(self.type.dtype, array)
