"""Moves of several elements at once: groups, blocks of bytes, and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.primitives import select
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.bits import row_of
from pto.run.jit.ir.kinds import BOOL
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.lanes import Symbol, items_of
from pto.run.jit.llvm.text import element, vector
from pto.run.jit.llvm.value import TRUE, Val

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.elements import TileRef
    from pto.run.jit.emit.tile.mover import Mover

_U32: Final = np.dtype(np.uint32)
_SUMS: Final = 16  # counts that are added up side by side
_WAYS: Final = 2  # counters of one number: no count waits for the one before it


def groups(m: Mover, rows: Count, cols: Count, many: int, cell: Any, dst: TileRef) -> None:
    """One vector for each value of a group, interleaved."""
    x = m.x
    width = m.number(cols)
    item = element(dst.type.dtype)
    m.within(dst, rows, cols)
    finish = m.apart((dst,))

    def line(i: Val) -> None:
        begin = row_of(m, dst, i)

        def put(down: Index, k: Index) -> None:
            count = k.lanes.count
            found = [str(items_of(k.lanes, v, dst.type.dtype).name) for v in cell(down, k)]
            picks = [n * count + lane for lane in range(count) for n in range(many)]
            row = shuffles.joined(x, item, count, found)
            woven = shuffles.shuffle(x, item, count * many, row, picks)
            first, mask = x.mul(k.start.value, many), m.mask
            if mask is not None or not width.known or width.known % many:
                left = x.smaller(x.sub(width.value, first), count * many)
                mask = masked.prefix_mask(x, count * many, left)
            at = x.at(begin, x.mul(first, dst.type.itemsize))
            masked.store_lanes(x, dst.type.dtype, count * many, woven, at, mask)

        wide = Number(x, x.up(width.value, many))
        m.strips(Number(x, i), wide, put, [8], upright=False)

    x.loop(m.number(rows).value, 1, line)
    finish()


def blocks(
    m: Mover, rows: Count, count: Count, size: int, at: Any, src: TileRef, dst: TileRef
) -> None:
    """Copy whole blocks."""
    x = m.x
    finish = m.apart((dst,))
    type = vector(size, "i8")

    def one(found: Any, kind: str) -> str:
        return x.new(f"extractelement <1 x {kind}> {m.symbol(found).name}, i64 0")

    def line(i: Val) -> None:
        begin = row_of(m, dst, i)

        def block(k: Val) -> None:
            spot = lanes.Lanes(x, 1)
            m.use(spot, None)
            start, where = at(Index(spot, Number(x, i), 0), Index(spot, Number(x, k), 0))

            def move() -> None:
                found = x.load(type, x.at(src.pointer, one(start, "i64")))
                x.store(type, found, x.at(begin, x.mul(k, size)))

            x.when(TRUE if where is None else x.bit(one(where, "i1")), move)

        x.loop(m.number(count).value, 1, block)

    x.loop(m.number(rows).value, 1, line)
    finish()


def at_most(m: Mover, rows: Count, cols: Count, bins: int, cell: Any, dst: TileRef) -> None:
    """Count each number, with one counter for those that are out of range; then compute prefix
    sums."""
    x, finish = m.x, m.apart((dst,))
    m.within(dst, rows, bins)
    room = bins + _SUMS
    counters = [x.stack(f"[{room} x i32]") for _ in range(_WAYS)]
    numbers, total = x.stack(vector(64, "i32")), x.stack("i32")

    def add(down: Index, k: Index) -> None:
        number, counted = cell(down, k)
        found: Any = m.symbol(number).astype(_U32)
        for kept in (counted, m.mask and k.lanes.symbol(BOOL, m.mask)):
            found = found if kept is None else select(kept, found, np.uint32(bins))
        x.store(found.type, found.name, numbers, 64)
        for n in range(k.lanes.count):
            at = x.new(f"zext i32 {x.load('i32', x.at(numbers, 4 * n))} to i64")
            place = x.at(counters[n % _WAYS], x.mul(at, 4))
            x.store("i32", x.new(f"add i32 {x.load('i32', place, 4)}, 1"), place, 4)

    def line(i: Val) -> None:
        for each in counters:
            x.do(f"call void @llvm.memset.p0.i64(ptr {each}, i8 0, i64 {4 * room}, i1 false)")
        m.strips(Number(x, i), m.number(cols), add, [], upright=False)
        begin, spot = row_of(m, dst, i), lanes.Lanes(x, _SUMS)
        x.store("i32", 0, total)

        def some(b: Val) -> None:
            at, found = x.mul(b, 4), spot.spread(_U32, x.load("i32", total))
            parts = [x.load(found.type, x.at(each, at)) for each in counters]
            sums: Symbol = sum(
                (spot.symbol(_U32, p) for p in parts[1:]), spot.symbol(_U32, parts[0])
            )
            ahead = 1
            while ahead < _SUMS:
                picks = [n - ahead if n >= ahead else shuffles.NONE for n in range(_SUMS)]
                sums = sums + spot.symbol(_U32, shuffles.shuffle(x, "i32", _SUMS, sums.name, picks))
                ahead *= 2
            sums = sums + found
            last = x.new(f"extractelement {sums.type} {sums.name}, i64 {_SUMS - 1}")
            x.store("i32", last, total)
            items = items_of(spot, sums, dst.type.dtype).name
            masked.store_lanes(x, dst.type.dtype, _SUMS, items, x.at(begin, at), None)

        x.loop(bins, _SUMS, some)

    x.loop(m.number(rows).value, 1, line)
    finish()
