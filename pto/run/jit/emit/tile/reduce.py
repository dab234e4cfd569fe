"""Folds of tiles: columns line by line, rows in strands, in the order `kinds.Fold` spells out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.isa.meaning import Fold
from pto.isa.meaning.lanes import STRANDS, neutral
from pto.isa.meaning.tile.regions import element as element_of
from pto.isa.meaning.tile.regions import require_arithmetic
from pto.run.jit.border.values import Native, TilePlace
from pto.run.jit.emit.table import KINDS, Spot
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.planes import Plane
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import NotNative, Text, Val, element, scalar_type, vector
from pto.run.reference.tiles import accumulator

_LANES = 64  # columns at a time of a fold over rows


def emit_fold(s: Spot) -> Sequence[Native]:
    body = s.body
    if not isinstance(body, Fold) or (body.pairs is not None and body.pairs(s.case)):
        raise NotNative("a fold in pairs")
    require_arithmetic(s.case)
    src, dst = s.need(TilePlace, "src"), s.need(TilePlace, "dst")
    kind = accumulator(element_of(s.case, "src"), element_of(s.case, "dst"), body.wide)
    rows, cols = src.valid
    along = 0 if body.axis == "row" else 1
    # an empty source does nothing, whatever the destination is
    x, empty = s.x, s.x.either(s.x.compare("eq", rows, 0), s.x.compare("eq", cols, 0))
    fits = planes.enough(s, dst, *((rows, 1) if body.axis == "row" else (1, cols)))
    lines = x.compare("eq", src.valid[along], dst.valid[along])
    s.fault_unless(x.either(empty, x.both(lines, fits)))
    a, b = planes.plane(src), planes.plane(dst)
    by_row = body.axis == "row"
    if a.cols != 1 and a.rows == 1:
        a, b, rows, cols, by_row = a.swapped, b.swapped, cols, rows, not by_row
    if a.cols != 1:
        raise NotNative("a tile whose lines do not follow each other")
    if by_row != (body.axis == "row") and body.fn.__name__ in ("add", "mul"):
        raise NotNative("the order of the other axis")
    write = _rows if by_row else _columns
    key = planes.key_of(s, a, b, by_row)
    name = s.e.unit.shared(key, lambda n: _function(s, n, body, a, b, kind, write))

    def call() -> None:
        to, (source, _) = planes.machine_address(s, dst), planes.kept(s, src, apart, 0)
        x.do(f"call void {name}(i64 {rows}, i64 {cols}, ptr {to}, ptr {source})")

    apart = planes.apart(s, dst, src)
    planes.when(x, x.negated(empty), call)
    return []


def _function(
    s: Spot, name: str, body: Fold, a: Plane, b: Plane, kind: np.dtype[Any], write: Any
) -> str:
    """void f(rows, cols, dst, src)"""
    x = Text()
    write(s, x, body, a, b, kind)
    x.do("ret void")
    listed, _ = planes.parameters(["i64", "i64", "ptr", "ptr"])
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


def _columns(s: Spot, x: Text, body: Fold, a: Plane, b: Plane, kind: np.dtype[Any]) -> None:
    """Strips of columns, each from the first row to the last."""
    spot = lanes.Lanes(x, _LANES, s.e.unit.declare)
    type = spot.type(kind)
    if b.cols != 1:
        raise NotNative("a result whose elements do not follow each other")

    def strip(j: Val, mask: str | None) -> None:
        first = spot.constant(kind, neutral(body.fn, kind)).name
        source = planes.offset(x, "%p3", j, 1, a.dtype.itemsize)

        def add(i: Val, acc: str) -> str:
            row = planes.offset(x, source, i, a.rows, a.dtype.itemsize)
            item = planes.load_lanes(x, s.e.unit.declare, a.dtype, _LANES, row, mask)
            value = lanes.cast(spot.symbol(a.dtype.numpy, item), kind)
            return body.fn(spot.symbol(kind, acc), value).name

        total = reduced(x, "%p0", type, first, add)
        _store(
            s, x, spot, total, kind, b.dtype, planes.offset(x, "%p2", j, 1, b.dtype.itemsize), mask
        )

    planes.strips(x, _LANES, "%p1", strip)


def _store(
    s: Spot,
    x: Text,
    spot: lanes.Lanes,
    name: str,
    kind: np.dtype[Any],
    dtype: DType,
    pointer: str,
    mask: str | None,
) -> None:
    found = lanes.cast(spot.symbol(kind, name), dtype.numpy).name
    planes.store_lanes(x, s.e.unit.declare, dtype, spot.count, found, pointer, mask)


def reduced(x: Text, count: Val, type: str, first: Val, step: Any, by: Val = 1) -> str:
    """acc = first; for i in 0, by, .. below count: acc = step(i, acc)."""
    before, head, inside, done = x.here, x.fresh("fold"), x.fresh("in"), x.fresh("out")
    x.jump(head)
    x.label(head)
    place, i, acc = len(x.lines), x.name(), x.name()
    more = x.new(f"icmp slt i64 {i}, {count}")
    x.branch(more, inside, done)
    x.label(inside)
    found = step(i, acc)
    following = x.new(f"add nsw i64 {i}, {by}")
    x.lines[place:place] = [
        f"  {i} = phi i64 [ 0, %{before} ], [ {following}, %{x.here} ]",
        f"  {acc} = phi {type} [ {first}, %{before} ], [ {found}, %{x.here} ]",
    ]
    x.jump(head)
    x.label(done)
    return acc


def _rows(s: Spot, x: Text, body: Fold, a: Plane, b: Plane, kind: np.dtype[Any]) -> None:
    """Row by row, its strands in one vector."""
    declare = s.e.unit.declare
    spot = lanes.Lanes(x, STRANDS, declare)
    begin = spot.constant(kind, neutral(body.fn, kind))
    whole = x.new(f"and i64 %p1, {-STRANDS}")
    rest = x.sub("%p1", whole)
    mask = planes.head(x, STRANDS, rest)
    has_rest = x.compare("ne", rest, 0)
    type = spot.type(kind)

    def load(row: str, j: Val, only: str | None) -> lanes.Symbol:
        pointer = planes.offset(x, row, j, 1, a.dtype.itemsize)
        item = planes.load_lanes(x, declare, a.dtype, STRANDS, pointer, only)
        return lanes.cast(spot.symbol(a.dtype.numpy, item), kind)

    def line(i: Val) -> None:
        row = planes.offset(x, "%p3", i, a.rows, a.dtype.itemsize)
        strands = reduced(
            x,
            whole,
            type,
            begin.name,
            lambda j, acc: body.fn(spot.symbol(kind, acc), load(row, j, None)).name,
            STRANDS,
        )
        before, last, done = x.here, x.fresh("last"), x.fresh("done")
        x.branch(has_rest, last, done)
        x.label(last)
        tail = load(row, whole, mask)
        chosen = lanes.where(spot, spot.symbol(lanes.BOOL, mask), tail, begin)
        more = body.fn(spot.symbol(kind, strands), chosen).name
        ended = x.here
        x.jump(done)
        x.label(done)
        total = x.phi(type, [(strands, before), (more, ended)])
        one = _halved(x, declare, body, kind, total)
        to = planes.offset(x, "%p2", i, b.rows, b.dtype.itemsize)
        single = lanes.Lanes(x, 1, declare)
        found = lanes.cast(single.symbol(kind, one), b.dtype.numpy)
        x.store(f"<1 x {element(b.dtype)}>", found.name, to)

    planes.loop(x, "%p0", 1, line)


def _halved(x: Text, declare: Any, body: Fold, kind: np.dtype[Any], name: str) -> str:
    """Strands n and n+8, then n and n+4, ... down to one."""
    width = STRANDS
    while width > 1:
        half, type = width // 2, vector(width, scalar_type(kind))
        parts: list[str] = []
        for start in (0, half):
            picks = ", ".join(f"i32 {start + n}" for n in range(half))
            parts.append(
                x.new(f"shufflevector {type} {name}, {type} poison, <{half} x i32> <{picks}>")
            )
        spot = lanes.Lanes(x, half, declare)
        a, b = (spot.symbol(kind, part) for part in parts)
        name = body.fn(a, b).name
        width = half
    return name


KINDS[Fold] = emit_fold
