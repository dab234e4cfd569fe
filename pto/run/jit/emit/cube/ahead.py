"""Prefetching for products: during a product the processor fetches the rows that the next loads of
both operands are expected to read.

Rows of a large matrix lie in different pages, where the processor's own prefetcher does not follow.
The next load at a place in the program is expected as far behind this one as this one lies behind
the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pto.core.global_layout import RANK
from pto.core.memory import Space
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.llvm.text import I64, Text, Val
from pto.run.jit.runtime.values import TileDesc, ViewDesc

_LINE: Final = 64  # bytes of a cache line


@dataclass(frozen=True, slots=True)
class NextLoad:
    """The rows that the next load is expected to read: address, distance, number, bytes each."""

    pointer: str
    pitch: Val
    rows: int
    width: int

    @property
    def lines(self) -> int:
        """Cache lines of a row; one more if it begins inside a line."""
        return -(-self.width // _LINE) + 1

    def named(self, given: Parameters) -> NextLoad:
        """The same inside a function with these parameters."""
        pitch = given.name(self.pitch)
        return replace(self, pointer=str(given.name(self.pointer, "ptr")), pitch=pitch)

    def fetch(self, x: Text, part: Val, parts: int) -> None:
        """Fetch one of so many equal parts to the second-level cache. An address outside the array
        does no harm."""
        x.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        each = -(-self.rows * self.lines // parts)

        def one(n: Val) -> None:
            line = x.add(x.mul(part, each), n)
            row = x.at(self.pointer, x.mul(x.over(line, self.lines), self.pitch))
            place = x.at(row, x.smaller(x.mul(x.rest(line, self.lines), _LINE), self.width - 1))
            x.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")

        x.loop(each, 1, one)


def next_load(s: OpContext, view: ViewDesc, tile: TileDesc, pointer: str) -> NextLoad | None:
    """The rows that the next load of this tile of L1 is expected to read; None if their size is
    unknown."""
    x, (rows, cols) = s.x, tile.valid
    if tile.type.space is not Space.L1 or any(n != 1 for n in view.shape[: RANK - 2]):
        return None
    pitch, step = view.strides[-2:]
    if pitch == 1:
        pitch, step, rows, cols = step, pitch, cols, rows
    if step != 1 or not isinstance(rows, int) or not isinstance(cols, int):
        return None
    size, cell = view.dtype.itemsize, x.stack(I64, -1)
    last = x.load(I64, cell, 8)
    x.store(I64, view.address, cell, 8)
    first = x.compare("eq", last, -1)
    step = x.new(f"select i1 {first}, i64 0, i64 {x.sub(view.address, last)}")
    return NextLoad(x.at(pointer, step), x.mul(pitch, size), rows, cols * size)
