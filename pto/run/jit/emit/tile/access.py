"""Accesses: the elements of an operand, as a layout at an address."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from pto.core.dtypes import DType
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import strided
from pto.run.jit.emit.tile.strided import Strided
from pto.run.jit.llvm.text import Text, Val
from pto.run.jit.runtime.values import TileDesc

Shape = Literal["matrix", "column", "row"]  # all elements, one a row, one a column


class Access(NamedTuple):
    """A layout at a machine address. Tiles have a buffer and a byte range, views only a pointer."""

    layout: Strided
    pointer: str
    memory: int = -1
    address: Val = 0
    nbytes: int = 0
    private: int = 0  # of a tile that only the instructions of a group use: its number
    array_size: Val = 0  # of a view that is written: bytes of its memory, where they may be many

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    @property
    def shape(self) -> Shape:
        if self.layout.cols[-1].stride == 0:
            return "column"
        return "row" if self.layout.rows[-1].stride == 0 else "matrix"

    @property
    def row_stride(self) -> Val:
        """Elements from row to row; 0 for a row."""
        return self.layout.rows[0].stride

    @property
    def box_stride(self) -> int:
        """Elements from one box of columns to the next; 0: no boxes."""
        return self.layout.cols[1].stride if len(self.layout.cols) > 1 else 0

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of an access: equal for accesses to the same elements."""
        where = self.address if self.memory >= 0 else self.pointer
        layout = self.layout.rows, self.layout.cols, self.dtype.itemsize
        return self.memory, where, layout, self.private

    def at(self, x: Text, row: Val, col: Val) -> Access:
        """The same layout, from an element on."""
        return Access(self.layout, self.layout.at(x, self.pointer, row, col))

    def with_layout(self, layout: Strided) -> Access:
        """The same bytes in another layout."""
        return self._replace(layout=layout)

    def private_in(self, here: Collection[int]) -> Access:
        return self if self.private in here else self._replace(private=0)

    def overlaps(self, memory: int, first: int, end: int) -> bool:
        """True if the bytes of a tile at a known address share some with a range."""
        begin = int(self.address)
        return self.memory == memory and begin < end and first < begin + self.nbytes

    def collides(self, other: Access) -> bool:
        """True if two accesses of tiles share bytes but are not the same elements."""
        if self.memory < 0 or self.private or other.private or self.identity == other.identity:
            return False
        return other.overlaps(self.memory, int(self.address), int(self.address) + self.nbytes)


def tile_access(s: OpContext, tile: TileDesc) -> Access:
    """All elements of a tile."""
    pointer, owner = s.pointer(tile.memory, tile.address), s.e.privates.get(id(tile), 0)
    layout, memory, address = strided.tile_layout(tile), tile.memory, tile.address
    nbytes = layout.extent(*tile.type.shape)
    return Access(layout, pointer, memory, address, nbytes, owner)
