"""Folds of tiles: columns line by line, rows in partial accumulators, in the order of
`kinds.Fold`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pto.core.primitives import greater_of, less_of
from pto.isa.meaning.kinds import Fold
from pto.isa.meaning.lanes import maximum, minimum, neutral
from pto.isa.meaning.tile.regions import element as element_of
from pto.isa.meaning.tile.regions import require_arithmetic
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked, tile_layouts
from pto.run.jit.emit.tile.tile_layouts import tile_access
from pto.run.jit.ir.kinds import Kind
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.primitives import rank, ranked
from pto.run.jit.llvm.shuffles import shuffle
from pto.run.jit.llvm.text import Text, scalar_type
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.values import TileDesc
from pto.run.reference.tiles import accumulator

_LANES = 64  # columns at a time of a fold over rows,
_TURNS = 8  # and rows


class Folded(NamedTuple):
    """A fold of src to dst: lines of src along rows where `by_row`, in the accumulator's type."""

    body: Fold
    src: Access
    dst: Access
    rows: Val
    cols: Val
    by_row: bool
    kind: Kind
    empty: Condition


def folded(s: OpContext) -> Folded:
    """The fold of an instruction, on tiles that fit."""
    body: Fold = s.body
    require_arithmetic(s.case)
    src, dst = s.need(TileDesc, "src"), s.need(TileDesc, "dst")
    kind = accumulator(element_of(s.case, "src"), element_of(s.case, "dst"), body.wide)
    rows, cols = src.valid
    along = 0 if body.axis == "row" else 1
    # an empty source does nothing, whatever the destination is
    x, empty = s.x, masked.is_empty(s, rows, cols)
    fits = masked.covers(s, dst, *((rows, 1) if body.axis == "row" else (1, cols)))
    lines = x.compare("eq", src.valid[along], dst.valid[along])
    s.fault_unless(empty | (lines & fits))
    tile_layouts.require_unboxed(src.type)
    tile_layouts.require_unboxed(dst.type)
    a = tile_access(s, src)
    b = tile_access(s, dst)
    by_row = body.axis == "row"
    if "cols" not in a.layout.contiguous_axes and body.fn in (maximum, minimum):  # in any order
        a, b = (each.with_layout(each.layout.swapped) for each in (a, b))
        rows, cols = cols, rows
        by_row = not by_row
    return Folded(body, a, b, rows, cols, by_row, kind, empty)


class Folder:
    """Combines elements: sums and products in the accumulator type and in the order of
    `kinds.Fold`; extremes in any order, floats by their rank."""

    def __init__(self, x: Text, body: Fold, a: Strided, b: Strided, kind: Kind) -> None:
        self.x = x
        self.a = a
        self.b = b
        self.kind = kind
        self.combine = body.fn
        self.extreme = body.fn in (maximum, minimum)
        self.greatest = body.fn is maximum
        self.begins = neutral(body.fn, kind)
        self.ranks = self.extreme and kind.kind not in "iu"
        self.held = np.dtype(f"u{kind.itemsize}") if self.ranks else kind

    def spot(self, count: int) -> lanes.Lanes:
        return lanes.Lanes(self.x, count)

    def first(self, spot: lanes.Lanes) -> lanes.Symbol:
        begins = spot.constant(self.kind, self.begins)
        return rank(begins, self.greatest) if self.ranks else begins

    def load(self, spot: lanes.Lanes, pointer: str, mask: str | None) -> lanes.Symbol:
        a = self.a.dtype
        item = masked.load_lanes(self.x, a, spot.count, pointer, mask)
        return self.taken(spot.symbol(a.numpy, item))

    def taken(self, item: lanes.Symbol) -> lanes.Symbol:
        """An element as it is folded."""
        value = lanes.cast(item, self.kind)
        return rank(value, self.greatest) if self.ranks else value

    def both(self, p: lanes.Symbol, q: lanes.Symbol) -> lanes.Symbol:
        if self.ranks:
            return (greater_of if self.greatest else less_of)(p, q)  # type: ignore[return-value]
        return self.combine(p, q)

    def store(self, total: lanes.Symbol, pointer: str, mask: str | None) -> None:
        found = ranked(total, self.kind, self.greatest) if self.ranks else total
        found, b = lanes.cast(found, self.b.dtype.numpy), self.b.dtype
        count = total.lanes.count
        masked.store_lanes(self.x, b, count, found.name, pointer, mask)


def fold_columns(f: Folder) -> None:
    """Strips of columns, each from the first row to the last."""
    x = f.x
    a = f.a
    b = f.b
    spot = f.spot(_LANES)

    def strip(j: Val, mask: str | None) -> None:
        source = masked.offset(x, "%p3", j, 1, a.dtype.itemsize)

        def add(i: Val, acc: Sequence[lanes.Symbol]) -> list[lanes.Symbol]:
            row = masked.offset(x, source, i, a.rows[0].stride, a.dtype.itemsize)
            return [f.both(acc[0], f.load(spot, row, mask))]

        def some(i: Val, acc: Sequence[lanes.Symbol]) -> Sequence[lanes.Symbol]:
            for n in range(_TURNS):
                acc = add(x.add(i, n), acc)
            return acc

        # 16-bit floats are packed between iterations, so unroll
        whole = x.mul(x.over("%p0", _TURNS), _TURNS)
        total = lanes.reduced(x, whole, [f.first(spot)], some, _TURNS)
        total = lanes.reduced(x, "%p0", total, add, start=whole)
        f.store(total[0], masked.offset(x, "%p2", j, 1, b.dtype.itemsize), mask)

    masked.strips(x, _LANES, "%p1", strip)


def fold_pairs(f: Folder, rows: Any) -> None:
    """Strips of columns; partial results of pairs are on the stack, eight lines at once if
    possible."""
    x = f.x
    a = f.a
    b = f.b
    spot = f.spot(64 // f.held.itemsize)
    type, pitch = spot.type(f.held), 64
    room = x.stack(f"[{max(1, rows // 2) * pitch} x i8]")

    def strip(j: Val, mask: str | None) -> None:
        source = masked.offset(x, "%p3", j, 1, a.dtype.itemsize)

        def read(i: Val) -> lanes.Symbol:
            return f.load(
                spot, masked.offset(x, source, i, a.rows[0].stride, a.dtype.itemsize), mask
            )

        def held(i: Val) -> lanes.Symbol:
            return spot.symbol(f.held, x.load(type, x.at(room, x.mul(i, pitch)), 64))

        count, line = rows, read
        while count > 1:
            many = 8 if count % 8 == 0 else 2

            def level(i: Val, line: Any = line, many: int = many) -> None:
                found = [line(x.add(x.mul(i, many), n)) for n in range(many)]
                while len(found) > 1:
                    found = [f.both(*pair) for pair in zip(found[::2], found[1::2], strict=True)]
                x.store(type, found[0].name, x.at(room, x.mul(i, pitch)), 64)

            odd = line(count - 1) if count % 2 else None
            x.loop(count // many, 1, level)
            count, line = count // many, held
            if odd is not None:
                x.store(
                    type, f.both(odd, held(count - 1)).name, x.at(room, (count - 1) * pitch), 64
                )
        f.store(line(0), masked.offset(x, "%p2", j, 1, b.dtype.itemsize), mask)

    masked.strips(x, spot.count, "%p1", strip)


Lane = tuple[lanes.Symbol, ...]  # of a running value; a search has several


def halved_down(found: Sequence[Lane], both: Callable[[Lane, Lane], Lane]) -> Lane:
    """Combine the lanes of each running value: n and n+8, then n and n+4, down to one lane each.
    Two vectors are halved at a time, so that lanes stay full."""
    width = found[0][0].lanes.count  # lanes of one value
    while width > 1:
        pairs = list(zip(found[::2], found[1::2], strict=False)) or [(found[0], None)]
        found = [both(*_halves(width, p, q)) for p, q in pairs]
        width //= 2
    return found[0]


def _halves(width: int, p: Lane, q: Lane | None) -> tuple[Lane, Lane]:
    """The first and the second half of each value."""
    have = p[0].lanes.count
    spot = p[0].lanes.of(have if q is not None else have // 2)
    first = [n for n in range(have * (1 if q is None else 2)) if n % width < width // 2]

    def half(k: int, ahead: int) -> lanes.Symbol:
        other, picks = None if q is None else q[k].name, [n + ahead for n in first]
        name = shuffle(spot.x, scalar_type(p[k].dtype), have, p[k].name, picks, other)
        return spot.symbol(p[k].dtype, name)

    low, high = (tuple(half(k, ahead) for k in range(len(p))) for ahead in (0, width // 2))
    return low, high


def joined(f: Folder, totals: Sequence[lanes.Symbol]) -> lanes.Symbol:
    """One lane for each total."""
    return halved_down([(each,) for each in totals], lambda a, b: (f.both(a[0], b[0]),))[0]


def stored(f: Folder, found: lanes.Symbol, base: str, i: Val, many: int) -> None:
    """One lane for each row from the i-th on."""
    x = f.x
    size = f.b.dtype.itemsize
    step = f.b.rows[0].stride
    if step == 1 or many == 1:
        f.store(found, masked.offset(x, base, i, step, size), None)
        return
    one, item = f.spot(1), scalar_type(found.dtype)
    for n in range(many):
        lane = shuffle(x, item, many, found.name, [n])
        to = masked.offset(x, base, x.add(i, n), step, size)
        f.store(one.symbol(f.held, lane), to, None)
