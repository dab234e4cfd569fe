"""Merging runs of records in compiled code: the greatest head goes next, of equals the first."""

from __future__ import annotations

from pto.core.dtypes import DType
from pto.isa.meaning.tile.merge import RECORD, WAYS, sort_key
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
    heads, keys = (x.stack(f"[{WAYS} x i64]") for _ in range(2))
    total = run * WAYS

    def group(g: str) -> None:
        start = x.mul(x.mul(g, total.value), RECORD)
        first, out = x.at(source, start), x.at(to, start)
        for n in range(WAYS):
            x.store("i64", x.mul(run.value, n), x.at(heads, 8 * n), 8)
            record = x.at(first, x.mul(x.mul(run.value, n), RECORD))
            x.store("i64", _key(e, kind, record), x.at(keys, 8 * n), 8)

        def one(i: str) -> None:
            best, at = x.load("i64", keys, 8), "0"
            for n in range(1, WAYS):
                key = x.load("i64", x.at(keys, 8 * n), 8)
                better = x.compare("sgt", key, best)
                best = x.new(f"select i1 {better}, i64 {key}, i64 {best}")
                at = x.new(f"select i1 {better}, i64 {n}, i64 {at}")
            place, cell = (x.at(each, x.mul(at, 8)) for each in (heads, keys))
            head = x.load("i64", place, 8)
            record = x.load("i64", x.at(first, x.mul(head, RECORD)))
            x.store("i64", record, x.at(out, x.mul(i, RECORD)))
            following = x.add(head, 1)
            x.store("i64", following, place, 8)
            end = x.mul(x.add(at, 1), run.value)
            more = x.compare("slt", following, end)
            safe = x.new(f"select i1 {more}, i64 {following}, i64 {head}")
            key = x.smaller(_key(e, kind, x.at(first, x.mul(safe, RECORD))), best)
            x.store("i64", x.new(f"select i1 {more}, i64 {key}, i64 {_NONE}"), cell, 8)

        planes.loop(x, total.value, 1, one)

    e.declare("declare i64 @llvm.smin.i64(i64, i64)")
    planes.loop(x, groups.value, 1, group)


def _key(e: Elements, kind: DType, record: str) -> str:
    """The key of one record, as a number that is more than _NONE."""
    x: Text = e.x
    type = vector(1, element(kind))
    value = Lanes(x, 1, e.declare).symbol(kind.numpy, x.load(type, record))
    found = sort_key(value).astype("i8")  # type: ignore[arg-type]
    return x.new(f"extractelement <1 x i64> {found.name}, i64 0")  # type: ignore[attr-defined]
