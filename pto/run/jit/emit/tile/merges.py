"""Merging runs of records in compiled code: the greatest head goes next, of equals the first."""

from __future__ import annotations

from typing import Any

from pto.core.dtypes import DType
from pto.isa.meaning.tile.merge import RECORD, WAYS, sort_key
from pto.run.jit.emit.cube.contraction import reduced_many
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.elements import Elements
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.lanes import Lanes
from pto.run.jit.llvm.text import Text, element, vector

_NONE = -(1 << 63)  # the key of a run that has ended: behind every other


def merge_runs(e: Elements, to: str, source: str, run: Number, groups: Number, kind: DType) -> None:
    """Four runs into one, so many times. A head waits for all before it in its run: its key is
    the least key so far, which tells the order also of runs that do not descend."""
    x = e.x
    total = run * WAYS
    starts = [x.mul(run.value, n) for n in range(WAYS + 1)]

    def group(g: str) -> None:
        start = x.mul(x.mul(g, total.value), RECORD)
        first, out = x.at(source, start), x.at(to, start)
        keys = [_key(e, kind, x.at(first, x.mul(n, RECORD))) for n in starts[:-1]]

        def one(i: str, now: list[str]) -> list[str]:
            heads = now[WAYS:]
            # (key, head, end of the run) of the greatest, and by which comparisons it is that
            best, chosen = _greatest(x, list(zip(now, heads, starts[1:], strict=False)))
            key, head, end = best
            record = x.load("i64", x.at(first, x.mul(head, RECORD)))
            x.store("i64", record, x.at(out, x.mul(i, RECORD)))
            following = x.add(head, 1)
            more = x.compare("slt", following, end)
            safe = x.new(f"select i1 {more}, i64 {following}, i64 {head}")
            least = x.smaller(_key(e, kind, x.at(first, x.mul(safe, RECORD))), key)
            coming = x.new(f"select i1 {more}, i64 {least}, i64 {_NONE}")
            return [
                x.new(f"select i1 {is_it}, i64 {new}, i64 {old}")
                for new, olds in ((coming, now[:WAYS]), (following, heads))
                for is_it, old in zip(chosen, olds, strict=True)
            ]

        begin = [*keys, *(str(n) for n in starts[:-1])]
        reduced_many(x, total.value, "i64", begin, one)

    e.declare("declare i64 @llvm.smin.i64(i64, i64)")
    planes.loop(x, groups.value, 1, group)


def _greatest(x: Text, given: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], list[str]]:
    """Of tuples that of the first greatest number, and for each whether it is that; two and two."""
    if len(given) == 1:
        return given[0], ["true"]
    half = len(given) // 2
    (low, left), (high, right) = _greatest(x, given[:half]), _greatest(x, given[half:])
    later = x.compare("sgt", high[0], low[0])
    best = tuple(
        x.new(f"select i1 {later}, i64 {b}, i64 {a}") for a, b in zip(low, high, strict=True)
    )
    earlier = x.negated(later)
    return best, [*(x.both(earlier, w) for w in left), *(x.both(later, w) for w in right)]


def _key(e: Elements, kind: DType, record: str) -> str:
    """The key of one record, as a number that is more than _NONE."""
    x: Text = e.x
    type = vector(1, element(kind))
    value = Lanes(x, 1, e.declare).symbol(kind.numpy, x.load(type, record))
    found = sort_key(value).astype("i8")  # type: ignore[arg-type]
    return x.new(f"extractelement <1 x i64> {found.name}, i64 0")  # type: ignore[attr-defined]
