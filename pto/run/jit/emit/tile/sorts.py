"""Blocks of records are sorted: a bitonic network (Batcher 1968) over vectors of keys, then the
records by the numbers that the keys carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.primitives import select
from pto.isa.meaning.tile.merge import RECORD
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.pieces import row_of
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Index, Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import Val

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.elements import TileRef
    from pto.run.jit.emit.tile.mover import Mover

_LANES: Final = 8
_I64: Final = np.dtype(np.int64)


def sort(m: Mover, rows: Any, cols: Any, block: int, key: Any, record: Any, dst: TileRef) -> None:
    """The lowest byte of a key says where its record is, of the first the greatest: no two are
    equal."""
    x, width, finish = m.x, m.number(cols), m.apart((dst,))
    keys, records = (x.stack(f"[{block} x i64]") for _ in range(2))
    spot = lanes.Lanes(x, _LANES, m.declare)
    m.declare("declare i64 @llvm.smin.i64(i64, i64)")
    full = width.known is not None and width.known % block == 0

    def line(i: Val) -> None:
        begin = row_of(m, dst, i)

        def some(b: Val) -> None:
            left = block if full else x.smaller(x.sub(width.value, b), block)
            vectors = [part(b, left, n) for n in range(0, block, _LANES)]
            for n, vector in enumerate(_descending(vectors)):
                x.store(vector.type, vector.name, x.at(keys, n * _LANES * 8), 64)

            def put(n: Val) -> None:
                parts = block // _LANES  # record n is in lane n // parts of vector n % parts
                at = x.add(x.mul(x.rest(n, parts), _LANES * 8), x.mul(x.over(n, parts), 8))
                place = x.new(f"zext i8 {x.load('i8', x.at(keys, at))} to i64")
                found = x.load("i64", x.at(records, place), 8)
                x.store("i64", found, x.at(begin, x.mul(x.add(b, n), RECORD)))

            if full:
                for n in range(block):
                    put(n)
            else:
                planes.loop(x, left, 1, put)

        def part(b: Val, left: Val, n: int) -> Symbol:
            count = 0 if full else x.smaller(x.greater(x.sub(left, n), 0), _LANES)
            mask = None if full else planes.head(x, _LANES, count)
            m.use(spot, mask)
            at = Index(spot, Number(x, i), 0), Index(spot, Number(x, x.add(b, n)), 1, _LANES)
            item, turned = m.symbol(record(*at)), range(_LANES - 1, -1, -1)
            name = shuffles.shuffle(x, "i64", _LANES, item.name, list(turned))
            first = block - _LANES - n  # records lie the last first
            x.store(item.type, name, x.at(records, first * RECORD), 64)
            places = spot.constant(_I64, (first + np.arange(_LANES)[::-1]) * RECORD)
            found: Any = (m.symbol(key(*at)).astype(_I64) << 8) | places
            if mask is None:
                return found
            return select(spot.symbol(lanes.BOOL, mask), found, np.iinfo(_I64).min)  # type: ignore[return-value]

        planes.loop(x, width.value, block, some)

    m.declare("declare i64 @llvm.smax.i64(i64, i64)")
    planes.loop(x, m.number(rows).value, 1, line)
    finish()


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
    """Element e beside e ^ turn, the greater to the one without the bit `high`."""
    many = len(found)
    after: list[Symbol] = []
    for n, own in enumerate(found):
        other, lane, spot = found[n ^ (turn % many)], turn // many, own.lanes
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
