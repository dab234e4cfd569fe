"""Accesses: the elements of an operand, as a layout at an address."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from pto.core.dtypes import DType
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import boxes
from pto.run.jit.emit.tile.boxes import Field
from pto.run.jit.llvm.text import Text, Val
from pto.run.jit.runtime.values import TileDesc

Shape = Literal["matrix", "column", "row"]  # all elements, one a row, one a column


class Access(NamedTuple):
    """A layout at a machine address. Tiles have a buffer and a byte range, views only a pointer."""

    field: Field
    pointer: str
    memory: int = -1
    first: Val = 0
    nbytes: int = 0
    owner: int = 0  # of a tile that only the instructions of a group use: its number
    size: Val = 0  # of a view that is written: bytes of its memory, where they may be many

    @property
    def dtype(self) -> DType:
        return self.field.dtype

    @property
    def shape(self) -> Shape:
        if self.field.cols[-1].step == 0:
            return "column"
        return "row" if self.field.rows[-1].step == 0 else "matrix"

    @property
    def step(self) -> Val:
        """Elements from row to row; 0 for a row."""
        return self.field.rows[0].step

    @property
    def across(self) -> int:
        """Elements from one box of columns to the next; 0: no boxes."""
        return self.field.cols[1].step if len(self.field.cols) > 1 else 0

    @property
    def place(self) -> tuple[object, ...]:
        """The identity of an access: equal for accesses to the same elements."""
        where = self.first if self.memory >= 0 else self.pointer
        layout = self.field.rows, self.field.cols, self.dtype.itemsize
        return self.memory, where, layout, self.owner

    def at(self, x: Text, row: Val, col: Val) -> Access:
        """The same layout, from an element on."""
        return Access(self.field, self.field.at(x, self.pointer, row, col))

    def laid(self, field: Field) -> Access:
        """The same bytes in another layout."""
        return self._replace(field=field)

    def placed(self, here: Collection[int]) -> Access:
        return self if self.owner in here else self._replace(owner=0)

    def meets(self, memory: int, first: int, end: int) -> bool:
        """True if the bytes of a tile at a known address share some with a range."""
        begin = int(self.first)
        return self.memory == memory and begin < end and first < begin + self.nbytes

    def collides(self, other: Access) -> bool:
        """True if two accesses of tiles share bytes but are not the same elements."""
        if self.memory < 0 or self.owner or other.owner or self.place == other.place:
            return False
        return other.meets(self.memory, int(self.first), int(self.first) + self.nbytes)


def tile_access(s: OpContext, tile: TileDesc) -> Access:
    """All elements of a tile."""
    pointer, owner = s.pointer(tile.memory, tile.address), s.e.owners.get(id(tile), 0)
    field, memory, address = boxes.field(tile), tile.memory, tile.address
    nbytes = field.extent(*tile.type.shape)
    return Access(field, pointer, memory, address, nbytes, owner)
