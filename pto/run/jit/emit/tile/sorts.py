"""Sorts blocks of records by a network of comparisons (Batcher 1968) of keys; the low bits of a key
are the position of its record. Eight blocks at a time, a lane each, need no shuffle; other blocks
are sorted one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.primitives import select
from pto.isa.meaning.tile.merge import RECORD
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.bits import row_of
from pto.run.jit.ir import kinds
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.value import Val

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.elements import TileRef
    from pto.run.jit.emit.tile.mover import Mover

_LANES: Final = 8
_I64: Final = np.dtype(np.int64)


def sort(
    m: Mover, rows: Count, cols: Count, block: int, key: Any, record: Any, dst: TileRef
) -> None:
    """Sort blocks. The lowest byte of a key is the position of its record, the first one the
    greatest; so no two keys are equal."""
    x = m.x
    width = m.number(cols)
    finish = m.apart((dst,))
    for word in ("smin", "smax"):
        m.x.declare(f"declare i64 @llvm.{word}.i64(i64, i64)")
    writer = _Blocks(m, width, block, key, record, dst)
    per_row, some = divmod(width.known or 1, block)
    if width.known is None or some:
        x.loop(
            m.number(rows).value,
            1,
            lambda i: x.loop(width.value, block, lambda j: writer.one(i, j)),
        )
    else:
        total = x.mul(m.number(rows).value, per_row)
        whole = x.mul(x.over(total, _LANES), _LANES)

        def place(n: Val) -> tuple[Val, Val]:
            return x.over(n, per_row), x.mul(x.rest(n, per_row), block)

        x.loop(whole, _LANES, lambda n: writer.many([place(x.add(n, k)) for k in range(_LANES)]))
        x.loop(total, 1, lambda n: writer.one(*place(n)), start=whole)
    finish()


class _Blocks:
    """Emits the code that sorts blocks."""

    def __init__(
        self, m: Mover, width: Number, block: int, key: Any, record: Any, dst: TileRef
    ) -> None:
        self.m, self.x = m, m.x
        self.width, self.block = width, block
        self.full = width.known is not None and width.known % block == 0
        self.key = key
        self.record = record
        self.dst = dst
        self.spot = lanes.Lanes(m.x, _LANES)
        self.keys, self.records = (m.x.stack(f"[{block * _LANES} x i64]") for _ in range(2))

    def one(self, i: Val, j: Val) -> None:
        """The block that begins at (i, j), perhaps with fewer elements."""
        x, block = self.x, self.block
        left = block if self.full else x.smaller(x.sub(self.width.value, j), block)
        vectors = [self._part(i, j, left, n, self.records) for n in range(0, block, _LANES)]
        for n, vector in enumerate(_descending(vectors)):
            x.store(vector.type, vector.name, x.at(self.keys, n * _LANES * 8), 64)
        begin, parts = row_of(self.m, self.dst, i), block // _LANES

        def put(n: Val) -> None:  # record n is in lane n // parts of vector n % parts
            at = x.add(x.mul(x.rest(n, parts), _LANES * 8), x.mul(x.over(n, parts), 8))
            self._put(at, self.records, x.at(begin, x.mul(x.add(j, n), RECORD)))

        if self.full:
            for n in range(block):
                put(n)
        else:
            x.loop(left, 1, put)

    def many(self, places: list[tuple[Val, Val]]) -> None:
        """As many blocks as there are lanes: element e of each is in vector e."""
        x, block = self.x, self.block
        rooms = [x.at(self.records, n * block * RECORD) for n in range(_LANES)]
        vectors: list[str] = []
        for n in range(0, block, _LANES):
            parts = [
                self._part(*at, block, n, room) for at, room in zip(places, rooms, strict=True)
            ]
            vectors += shuffles.turn(x, "i64", _LANES, [str(part.name) for part in parts])
        spot = self.spot
        for a, b in _comparators(block):
            pair = vectors[a], vectors[b]
            vectors[a], vectors[b] = (
                spot.intrinsic(word, _I64, *pair) for word in ("smax", "smin")
            )
        for n, vector in enumerate(vectors):
            x.store(spot.type(_I64), vector, x.at(self.keys, n * _LANES * 8), 64)
        for lane, ((i, j), room) in enumerate(zip(places, rooms, strict=True)):
            begin = x.at(row_of(self.m, self.dst, i), x.mul(j, RECORD))
            for n in range(block):
                self._put((n * _LANES + lane) * 8, room, x.at(begin, n * RECORD))

    def _put(self, key: Val, records: str, to: str) -> None:
        """Store the record of a key."""
        x = self.x
        place = x.new(f"zext i8 {x.load('i8', x.at(self.keys, key))} to i64")
        x.store("i64", x.load("i64", x.at(records, place), 8), to)

    def _part(self, i: Val, j: Val, left: Val, n: int, records: str) -> Symbol:
        """The keys of the elements from n on of the block at (i, j); their records are stored."""
        x = self.x
        m = self.m
        spot = self.spot
        block = self.block
        count = 0 if self.full else x.smaller(x.greater(x.sub(left, n), 0), _LANES)
        mask = None if self.full else masked.prefix_mask(x, _LANES, count)
        m.use(spot, mask)
        at = Index(spot, Number(x, i), 0), Index(spot, Number(x, x.add(j, n)), 1, _LANES)
        item, turned = m.symbol(self.record(*at)), range(_LANES - 1, -1, -1)
        name = shuffles.shuffle(x, "i64", _LANES, item.name, list(turned))
        first = block - _LANES - n  # records lie the last first
        x.store(item.type, name, x.at(records, first * RECORD), 64)
        places = spot.constant(_I64, (first + np.arange(_LANES)[::-1]) * RECORD)
        found: Any = (m.symbol(self.key(*at)).astype(_I64) << 8) | places
        if mask is None:
            return found
        return select(spot.symbol(kinds.BOOL, mask), found, np.iinfo(_I64).min)  # type: ignore[return-value]


def _comparators(count: int) -> Iterator[tuple[int, int]]:
    """Pairs (a, b), the greater to a: merging by odd and even, sorted runs double."""
    run = 1
    while run < count:
        apart = run
        while apart:
            for start in range(apart % run, count - apart, 2 * apart):
                for a in range(start, min(start + apart, count - apart)):
                    if a // (2 * run) == (a + apart) // (2 * run):
                        yield a, a + apart
            apart //= 2
        run *= 2


def _descending(found: list[Symbol]) -> list[Symbol]:
    """Element e is lane e // n of vector e % n, n being how many there are: what lies close is in
    one lane, and needs no shuffle. Sorted runs double; two are compared outside in, then halves."""
    count, run = len(found) * _LANES, 2
    while run <= count:
        found = _compared(found, run - 1, run // 2)
        apart = run // 4
        while apart:
            found = _compared(found, apart, apart)
            apart //= 2
        run *= 2
    return found


def _compared(found: list[Symbol], turn: int, high: int) -> list[Symbol]:
    """Compare element e with element e ^ turn; the greater one goes where bit `high` is 0."""
    many = len(found)
    after: list[Symbol] = []
    for n, own in enumerate(found):
        other = found[n ^ (turn % many)]
        lane = turn // many
        spot = own.lanes
        if lane:
            picks = [k ^ lane for k in range(_LANES)]
            name = shuffles.shuffle(spot.x, "i64", _LANES, other.name, picks)
            other = spot.symbol(_I64, name)
        most, least = (
            spot.symbol(_I64, spot.intrinsic(word, _I64, own.name, other.name))
            for word in ("smax", "smin")
        )
        if high < many:
            after.append(least if n & high else most)
            continue
        first = spot.constant(np.dtype(np.bool_), [not k & (high // many) for k in range(_LANES)])
        after.append(select(first, most, least))  # type: ignore[arg-type]
    return after
