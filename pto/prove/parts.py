"""Parts of tiles, their bytes, and the parts that are known to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from pto.core.compact import Compact
from pto.core.layout import ND
from pto.core.memory import Space
from pto.core.tile import TileType
from pto.prove.decide import highest, not_above
from pto.prove.number import Number
from pto.prove.regions import Regions

Bytes = int  # bit n: byte n of a buffer
Buffer = tuple[Space, int]  # with the id of the tile that owns it; 0: bytes at addresses
Slot = tuple[Space, int, int]  # the first byte of a tile, and one past its last


@dataclass(frozen=True, slots=True)
class TilePart:
    """A part of a tile: start row and column, number of rows and columns."""

    buffer: Buffer
    start: int  # start in its buffer
    tile: TileType
    row: Number
    col: Number
    rows: Number
    cols: Number
    slot: Slot
    root: int  # the id of the tile's value; 0: one of several

    @property
    def place(self) -> int:
        """The start of the tile in its space."""
        return self.slot[1]

    def bytes(self, *, all: bool) -> Bytes | None:
        """Its bytes, at most or at least; None if that depends on unknown extents."""
        values = [n.value for n in (self.row, self.col, self.rows, self.cols)]
        if all:
            row, col = values[:2]
            ends = [highest(self.row + self.rows), highest(self.col + self.cols)]
            last = [
                s if e is None else min(e, s) for e, s in zip(ends, self.tile.shape, strict=True)
            ]
            values = [row or 0, col or 0, last[0] - (row or 0), last[1] - (col or 0)]
        numbers = [n for n in values if n is not None]
        if len(numbers) < 4:
            return None
        return _mask(self.tile, numbers[0], numbers[1], numbers[2], numbers[3], all) << self.start


@lru_cache(maxsize=4096)
def _mask(tile: TileType, row: int, col: int, rows: int, cols: int, all: bool) -> Bytes:
    """The bytes of a part of a tile at 0. `all`: at most, for types smaller than a byte."""
    if rows <= 0 or cols <= 0:
        return 0
    if (row, col) == (0, 0) and (rows, cols) >= tile.shape and cols >= tile.cols:
        return (1 << tile.nbytes) - 1
    if tile.dtype.bits % 8 or tile.compact is not Compact.NULL or tile.layout.named:
        return (1 << tile.nbytes) - 1 if all else 0
    shape = tile.storage_shape(tile.shape)
    places = tile.layout.index_map(*shape, tile.itemsize)[row : row + rows, col : col + cols]
    bits = np.zeros((tile.nbytes // tile.itemsize, tile.itemsize), np.bool_)
    bits[places.reshape(-1)] = True
    return int.from_bytes(np.packbits(bits.reshape(-1), bitorder="little").tobytes(), "little")


@dataclass(slots=True)
class WrittenPart:
    """Bytes written on every path, and bytes that may have been overwritten since."""

    written: dict[Buffer, Bytes] = field(default_factory=dict[Buffer, Bytes])
    # each with the bytes of its space that may have been overwritten since
    parts: dict[TilePart, Bytes] = field(default_factory=dict[TilePart, Bytes])
    # of each tile that may have been written, in its space
    lost: dict[Slot, Bytes] = field(default_factory=dict[Slot, Bytes])
    wrote: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])  # by root
    made: set[int] = field(default_factory=set[int])  # roots that were allocated on every path
    regions: Regions = field(default_factory=Regions)

    def copy(self) -> WrittenPart:
        copies = dict(self.written), dict(self.parts), dict(self.lost)
        return WrittenPart(*copies, dict(self.wrote), set(self.made), self.regions.copy())

    def meet(self, other: WrittenPart) -> WrittenPart:
        written = {k: v & other.written.get(k, 0) for k, v in self.written.items()}
        parts = {p: v | other.parts[p] for p, v in self.parts.items() if p in other.parts}
        lost, wrote = _union(self.lost, other.lost), _union(self.wrote, other.wrote)
        created, regions = self.made & other.made, self.regions.meet(other.regions)
        return WrittenPart(written, parts, lost, wrote, created, regions)


K = TypeVar("K")
V = TypeVar("V", Bytes, frozenset[int])


def _union(a: dict[K, V], b: dict[K, V]) -> dict[K, V]:
    return {**a, **{key: a[key] | v if key in a else v for key, v in b.items()}}


def as_line(part: TilePart) -> TilePart:
    """A contiguous column as a row."""
    tile = part.tile
    if tile.layout.is_boxed or tile.cols != 1:
        return part
    line = replace(tile, rows=1, cols=tile.rows, layout=ND, valid=(1, tile.rows))
    return replace(part, tile=line, row=part.col, col=part.row, rows=part.cols, cols=part.rows)


def are_two(a: Slot, b: Slot) -> bool:
    """True if two tiles overlap and are not aliases."""
    return a != b and a[0] is b[0] and a[1] < b[2] and b[1] < a[2]


def covers(written: TilePart, part: TilePart, guards: Sequence[Number]) -> bool:
    """True if a written part contains one that is read."""
    if (written.buffer, written.start, written.tile) != (part.buffer, part.start, part.tile):
        return False
    if part.tile.compact is not Compact.NULL:  # its layout depends on its extents
        return written == part
    axes = (
        (written.row, written.rows, part.row, part.rows),
        (written.col, written.cols, part.col, part.cols),
    )
    return all(
        not_above(first, at, guards) and not_above(at + size, first + count, guards)
        for first, count, at, size in axes
    )
