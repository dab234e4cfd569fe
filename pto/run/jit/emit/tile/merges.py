"""Merging runs of records in compiled code: the greatest head goes next, of equals the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning.tile.merge import RECORD, WAYS, sort_key
from pto.run.jit.emit.cube.contraction import reduced_many
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.elements import Elements
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.lanes import Lanes, cast
from pto.run.jit.llvm.shuffles import shuffle
from pto.run.jit.llvm.text import Text, Val

_I64 = np.dtype(np.int64)
_LANES = 8
_NONE = -(1 << 63)  # the key behind a run, less than every other; ~_NONE is before it


def merge_runs(
    e: Elements, to: str, source: str, run: Number, groups: Number, kind: DType, room: str
) -> None:
    """Four runs into one, so many times. A head waits for all before it in its run: its key is
    the least key so far, which tells the order also of runs that do not descend. Keys are written
    down first. So the order is known from both ends: two records at a time, which do not wait for
    each other, the next one and the next from behind."""
    x = e.x
    total, pitch = run * WAYS, run + 2  # a key before each run, and one behind it
    half = x.over(total.value, 2)
    starts = [x.add(x.mul(pitch.value, n), 1) for n in range(WAYS)]
    ends = [x.add(n, x.sub(run.value, 1)) for n in starts]

    def group(g: str) -> None:
        start = x.mul(x.mul(g, total.value), RECORD)
        first, out = x.at(source, start), x.at(to, start)
        for n, begin in enumerate(starts):
            records = x.at(first, x.mul(x.mul(run.value, n), RECORD))
            _write_keys(e, kind, records, run, x.at(room, x.mul(begin, 8)))

        def taken(places: list[str], greatest: bool, to: Val) -> list[str]:
            keys = [x.load("i64", x.at(room, x.mul(place, 8))) for place in places]
            before = [2 * n + 1 for n in range(WAYS)]  # keys that are none of records
            (_, place, more), chosen = _extreme(
                x, list(zip(keys, places, before, strict=True)), greatest
            )
            record = x.load("i64", x.at(first, x.mul(x.sub(place, more), RECORD)))
            x.store("i64", record, x.at(out, x.mul(to, RECORD)))
            steps = [x.new(f"zext i1 {bit} to i64") for bit in chosen]
            move = x.add if greatest else x.sub
            return [str(move(place, step)) for place, step in zip(places, steps, strict=True)]

        def two(i: str, now: list[str]) -> list[str]:
            last = x.sub(x.sub(total.value, 1), i)
            return [*taken(now[:WAYS], True, i), *taken(now[WAYS:], False, last)]

        reduced_many(x, half, "i64", [str(n) for n in (*starts, *ends)], two)

    planes.loop(x, groups.value, 1, group)


def _write_keys(e: Elements, kind: DType, records: str, run: Number, to: str) -> None:
    """The least key so far of each record of a run, which has a whole number of strips."""
    x, spot = e.x, Lanes(e.x, _LANES, e.declare)
    words, bits = spot.type(_I64), np.dtype(f"u{kind.itemsize}")

    def some(i: str, least: list[str]) -> list[str]:
        at = x.mul(i, _LANES * RECORD)
        items = cast(spot.symbol(_I64, x.load(words, x.at(records, at))), bits)
        keys = sort_key(items.view(kind.numpy)).astype(_I64)  # type: ignore[arg-type]
        found = str(keys.name)  # type: ignore[attr-defined]
        for far in (1, 2, 4):
            order = [n - far if n >= far else n for n in range(_LANES)]
            found = spot.intrinsic("smin", _I64, found, shuffle(x, "i64", _LANES, found, order))
        found = spot.intrinsic("smin", _I64, found, least[0])
        x.store(words, found, x.at(to, at))
        return [shuffle(x, "i64", _LANES, found, [_LANES - 1] * _LANES)]

    most = str(spot.constant(_I64, ~_NONE).name)
    reduced_many(x, x.over(run.value, _LANES), words, [most], some)
    x.store("i64", ~_NONE, x.at(to, -8))
    x.store("i64", _NONE, x.at(to, x.mul(run.value, 8)))


def _extreme(
    x: Text, given: list[tuple[Any, ...]], greatest: bool
) -> tuple[tuple[Any, ...], list[str]]:
    """Of tuples that of the greatest number, the first of equals, or of the least, the last; and
    for each whether it is that. Two and two."""
    if len(given) == 1:
        return given[0], ["true"]
    middle = len(given) // 2
    low, left = _extreme(x, given[:middle], greatest)
    high, right = _extreme(x, given[middle:], greatest)
    later = x.compare("sgt" if greatest else "sle", high[0], low[0])
    best = tuple(
        x.new(f"select i1 {later}, i64 {b}, i64 {a}") for a, b in zip(low, high, strict=True)
    )
    earlier = x.negated(later)
    return best, [*(x.both(earlier, w) for w in left), *(x.both(later, w) for w in right)]
