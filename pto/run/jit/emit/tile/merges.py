"""Merges sorted runs of records: the greatest head is next, the first of equal ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning.tile.merge import RECORD, WAYS, sort_key
from pto.run.jit.emit.tile.elements import Elements
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.lanes import Lanes, cast
from pto.run.jit.llvm.shuffles import shuffle
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import Val

_I64 = np.dtype(np.int64)
_LANES = 8
_PLACE = 18  # low bits of a key: where its record is, of the first the greatest
FARTHEST = 1 << _PLACE  # bytes of records


def merge_runs(
    e: Elements, to: str, source: str, run: Number, groups: Number, kind: DType, room: str
) -> None:
    """Merge four runs into one, `groups` times: two and two, then both results.

    The key of a record is the least one so far in its run, so runs that do not descend keep their
    order too. Keys are stored first; no two are equal. So the order is known from both ends, and
    two records of a pair are taken at a time, independently.
    """
    x = e.x
    total = run * WAYS
    between = x.at(room, x.mul(total.value, 8))  # keys of the first two merges

    def group(g: str) -> None:
        start = x.mul(x.mul(g, total.value), RECORD)
        first, out = x.at(source, start), x.at(to, start)
        for n in range(WAYS):
            _write_keys(e, kind, first, n, run, x.at(room, x.mul(x.mul(run.value, n), 8)))

        def put_key(key: str, at: Val) -> None:
            x.store("i64", key, x.at(between, x.mul(at, 8)))

        def put_record(key: str, at: Val) -> None:
            behind = x.new(f"and i64 {key}, {FARTHEST - 1}")
            place = x.at(first, x.sub(FARTHEST - RECORD, behind))
            x.store("i64", x.load("i64", place), x.at(out, x.mul(at, RECORD)))

        _merge_pairs(x, room, WAYS // 2, run, put_key)
        _merge_pairs(x, between, 1, run * 2, put_record)

    x.loop(groups.value, 1, group)


def _merge_pairs(
    x: Text, keys: str, pairs: int, run: Number, put: Callable[[str, Val], None]
) -> None:
    """For each pair of adjacent runs: put(key, position), from both ends."""

    def taken(pair: int, step: str, own: str, greatest: bool) -> str:
        """`own`: how many the first run of the pair has given, of as many as there were steps."""
        begin = x.mul(run.value, 2 * pair)
        places, at = (own, x.sub(step, own)), x.add(begin, step)
        if not greatest:
            last = x.sub(run.value, 1)
            places = tuple(x.sub(last, place) for place in places)
            at = x.add(begin, x.sub(x.sub(x.mul(run.value, 2), 1), step))
        starts = begin, x.add(begin, run.value)
        a, b = (
            x.load("i64", x.at(keys, x.mul(x.add(start, place), 8)), 8)
            for start, place in zip(starts, places, strict=True)
        )
        is_first = x.compare("sgt" if greatest else "slt", a, b)
        put(x.new(f"select i1 {is_first}, i64 {a}, i64 {b}"), at)
        return str(x.add(own, x.new(f"zext i1 {is_first} to i64")))

    ways = [(pair, greatest) for pair in range(pairs) for greatest in (True, False)]

    def step(n: str, now: list[str]) -> list[str]:
        return [taken(pair, n, own, way) for (pair, way), own in zip(ways, now, strict=True)]

    x.fold(run.value, ["i64"] * len(ways), ["0"] * len(ways), step)


def _write_keys(e: Elements, kind: DType, first: str, number: int, run: Number, to: str) -> None:
    """The least key so far of each record of a run, which has a whole number of strips."""
    x, spot = e.x, Lanes(e.x, _LANES)
    words, bits = spot.type(_I64), np.dtype(f"u{kind.itemsize}")
    begin = x.mul(x.mul(run.value, number), RECORD)
    lane = spot.constant(_I64, FARTHEST - RECORD * (1 + np.arange(_LANES)))

    def some(i: str, least: list[str]) -> list[str]:
        at = x.mul(i, _LANES * RECORD)
        behind = x.add(begin, at)
        items = cast(spot.symbol(_I64, x.load(words, x.at(first, behind))), bits)
        keys = sort_key(items.view(kind.numpy)).astype(_I64)  # type: ignore[arg-type]
        found = str(keys.name)  # type: ignore[attr-defined]
        for far in (1, 2, 4):
            order = [n - far if n >= far else n for n in range(_LANES)]
            found = spot.intrinsic("smin", _I64, found, shuffle(x, "i64", _LANES, found, order))
        found = spot.intrinsic("smin", _I64, found, least[0])
        places: Any = lane - spot.spread(_I64, behind)
        key: Any = (spot.symbol(_I64, found) << _PLACE) | places
        x.store(words, key.name, x.at(to, at))
        return [shuffle(x, "i64", _LANES, found, [_LANES - 1] * _LANES)]

    most = str(spot.constant(_I64, np.iinfo(_I64).max).name)
    x.fold(x.over(run.value, _LANES), [words], [most], some)
