"""Copies between strided layouts, and fills: one function for each pair of layouts.

Lines that are contiguous in both are copied by vectors, lines across each other in small blocks
that are turned around in registers. A `Work` makes something of each element on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from pto.core.dtypes import DType
from pto.core.layout import REST, Axis, Mode
from pto.run.jit.emit.tile import masked
from pto.run.jit.ir.kinds import symbol_type
from pto.run.jit.ir.strided import Strided, axis, position
from pto.run.jit.llvm import shuffles
from pto.run.jit.llvm.lanes import Lanes, items_of
from pto.run.jit.llvm.text import Text, element, vector
from pto.run.jit.llvm.value import FALSE, Val

_LANES_BYTES = masked.VECTOR_BYTES
_AT_ONCE = 128  # bytes of a line that are moved together, to as many boxes as that is
_WHOLE, _CACHE_LINE = 512, 64  # the same where rows of boxes are whole lines of the cache
_LONG = 512  # bytes from which the C library copies faster than our vectors (measured)


@dataclass(frozen=True, slots=True)
class Work:
    """fn(moved, old, column, mask) -> what is stored; `old` is what lies there, only if `combines`;
    number of the first column and mask of the lanes only if `by_column`."""

    fn: Callable[..., Any]
    combines: bool = False
    by_column: bool = False


@dataclass(frozen=True, slots=True)
class Rect:
    """A part in which both layouts have one stride along each axis.

    Addresses and extents are names. `most`: columns at most, where that is a number known now.
    """

    rows: Val
    cols: Val
    to: str
    from_: str
    most: int | None
    col: Val = 0  # the number of the first column


def _joined(x: Text, r: Rect, steps: tuple[Val, Val]) -> Rect:
    """Lines that follow each other without gaps are one long line."""
    flat = x.compare("eq", steps[0], r.cols) & x.compare("eq", steps[1], r.cols)
    if flat.is_false:
        return r
    whole = x.mul(r.rows, r.cols)
    if flat.is_true:
        return replace(r, rows=1, cols=whole)
    rows = x.new(f"select i1 {flat}, i64 1, i64 {r.rows}")
    return replace(r, rows=rows, cols=x.new(f"select i1 {flat}, i64 {whole}, i64 {r.cols}"))


class Copier:
    """Writes one copy function."""

    def __init__(self, x: Text, work: Work | None) -> None:
        self.x = x
        self.work = work
        self.by_column = work is not None and work.by_column

    def copy(self, dst: Strided, src: Strided, rows: Val, cols: Val, to: str, from_: str) -> None:
        """The first rows x cols elements; neither is 0."""
        unknown = [f for f in (dst, src) if not f.contiguous_axes]
        if unknown:
            self._when_known(unknown[0] is dst, dst, src, (rows, cols, to, from_))
            return
        both = dst.contiguous_axes & src.contiguous_axes
        if "cols" in both:
            self._along(dst, src, rows, cols, to, from_)
        elif self.by_column:
            self._walk(dst, src, rows, cols, to, from_, self._elements(dst, src))
        elif "rows" in both:
            self._along(dst.swapped, src.swapped, cols, rows, to, from_)
        elif "rows" in dst.contiguous_axes:
            self._walk(dst, src, rows, cols, to, from_, self._turned(dst, src))
        else:
            dst, src = dst.swapped, src.swapped
            self._walk(dst, src, cols, rows, to, from_, self._turned(dst, src))

    def _along(self, dst: Strided, src: Strided, rows: Val, cols: Val, to: str, from_: str) -> None:
        """Lines in both; where one of them has narrow boxes, several boxes of a line at once: what
        is read of a line is used before lines of the same cache set drive it out."""
        x, size = self.x, max(dst.dtype.itemsize, src.dtype.itemsize)
        wide = _narrow_boxes(dst.cols, src.cols)
        many = _AT_ONCE // size
        if wide * size >= _CACHE_LINE and isinstance(cols, int):
            many = max(many, gcd(int(cols), _WHOLE // size))
        if wide == 0 or many <= wide or (isinstance(cols, int) and cols < many):
            self._walk(dst, src, rows, cols, to, from_, self._lines(dst, src))
            return
        whole = x.mul(x.over(cols, many), many)
        x.loop(
            whole,
            many,
            lambda c: self._boxes(
                dst, src, rows, (to, from_), [x.add(c, n) for n in range(0, many, wide)], wide
            ),
        )
        rest = x.sub(cols, whole)
        if rest == 0:
            return
        places = [
            x.at(base, x.mul(position(x, f.cols, whole), f.dtype.itemsize))
            for base, f in ((to, dst), (from_, src))
        ]
        x.when(
            x.compare("ne", rest, 0),
            lambda: self._walk(
                dst, src, rows, rest, places[0], places[1], self._lines(dst, src), whole
            ),
        )

    def _boxes(
        self,
        dst: Strided,
        src: Strided,
        rows: Val,
        bases: tuple[str, str],
        columns: Sequence[Val],
        wide: int,
    ) -> None:
        """All rows of the boxes that begin at these columns, row by row."""
        x, layouts = self.x, (dst, src)
        starts = [
            [x.at(base, x.mul(position(x, f.cols, c), f.dtype.itemsize)) for c in columns]
            for base, f in zip(bases, layouts, strict=True)
        ]

        def down(top: list[Val], height: Val, _: int | None) -> None:
            def one(i: Val) -> None:
                lines = [
                    x.mul(x.add(first, x.mul(i, f.rows[0].stride)), f.dtype.itemsize)
                    for first, f in zip(top, layouts, strict=True)
                ]
                for a, b, col in zip(*starts, columns, strict=True):
                    places = x.at(a, lines[0]), x.at(b, lines[1])
                    self._move(dst.dtype, src.dtype, wide, *places, None, col)

            x.loop(height, 1, one)

        strided_runs(x, (dst.rows, src.rows), 0, rows, down)

    def _when_known(
        self, is_dst: bool, dst: Strided, src: Strided, rest: tuple[Val, Val, str, str]
    ) -> None:
        """Steps known only when it runs: one case for each axis that may be contiguous."""
        x, unknown = self.x, dst if is_dst else src
        names = [n for n in ("cols", "rows") if not isinstance(getattr(unknown, n)[0].stride, int)]

        def case(n: int) -> None:
            if n == len(names):
                self._walk(dst, src, *rest, self._elements(dst, src))
                return
            first, *others = getattr(unknown, names[n])
            known = unknown._replace(**{names[n]: (Mode(first.extent, 1), *others)})
            sides = (known, src) if is_dst else (dst, known)
            x.when(
                x.compare("eq", first.stride, 1),
                lambda: self.copy(*sides, *rest),
                lambda: case(n + 1),
            )

        case(0)

    def _walk(
        self,
        dst: Strided,
        src: Strided,
        rows: Val,
        cols: Val,
        to: str,
        from_: str,
        part: Callable[[Rect], None],
        first: Val = 0,
    ) -> None:
        """Call `part` for all parts; the first column has the number `first`."""
        x, sizes = self.x, (dst.dtype.itemsize, src.dtype.itemsize)

        def at(base: str, a: Val, b: Val, size: int) -> str:
            return x.at(base, x.mul(x.add(a, b), size))

        def across(left: list[Val], width: Val, most: int | None) -> None:
            def down(top: list[Val], height: Val, _: int | None) -> None:
                places = [
                    at(base, a, b, size)
                    for base, a, b, size in zip((to, from_), left, top, sizes, strict=False)
                ]
                part(Rect(height, width, places[0], places[1], most, x.add(first, left[-1])))

            strided_runs(x, (dst.rows, src.rows), 0, rows, down)

        strided_runs(x, (dst.cols, src.cols, axis(1)), 0, cols, across)

    # ---- lines that are contiguous in both

    def _lines(self, dst: Strided, src: Strided) -> Callable[[Rect], None]:
        x, widest = self.x, max(dst.dtype.itemsize, src.dtype.itemsize)
        steps = dst.rows[0].stride, src.rows[0].stride

        def part(r: Rect) -> None:
            if r.most is None or r.most * widest > _LANES_BYTES:
                self._long_lines(dst, src, r if self.by_column else _joined(x, r, steps))
                return
            most, full = r.most, x.compare("eq", r.cols, r.most)

            def whole() -> None:
                if (
                    steps[0] == steps[1] == most and not self.by_column
                ):  # the rows of boxes follow each other
                    self._long_lines(dst, src, replace(r, rows=1, cols=x.mul(r.rows, most)))
                else:
                    self._short_lines(dst, src, r, most, None)

            def rest() -> None:
                self._short_lines(dst, src, r, most, masked.prefix_mask(x, most, r.cols))

            x.when(full, whole, rest)

        return part

    def _short_lines(
        self, dst: Strided, src: Strided, r: Rect, lanes: int, mask: str | None
    ) -> None:
        """A vector each."""

        def one(i: Val) -> None:
            self._move(dst.dtype, src.dtype, lanes, *self._line(dst, src, r, i), mask, r.col)

        self.x.loop(r.rows, 1, one)

    def _long_lines(self, dst: Strided, src: Strided, r: Rect) -> None:
        """Bytes as they are, of lines that are worth a call; else strips of vectors."""
        x, sizes = self.x, (dst.dtype.itemsize, src.dtype.itemsize)
        lanes, nbytes = _LANES_BYTES // max(sizes), x.mul(r.cols, max(sizes))

        def by_bytes(i: Val) -> None:
            masked.copy_bytes(x, *self._line(dst, src, r, i), nbytes)

        def by_strips(i: Val) -> None:
            starts = self._line(dst, src, r, i)

            def strip(j: Val, mask: str | None) -> None:
                a, b = (masked.offset(x, p, j, 1, n) for p, n in zip(starts, sizes, strict=True))
                self._move(dst.dtype, src.dtype, lanes, a, b, mask, x.add(r.col, j))

            masked.strips(x, lanes, r.cols, strip)

        is_long = FALSE if self.work is not None else x.compare("sge", nbytes, _LONG)
        x.when(is_long, lambda: x.loop(r.rows, 1, by_bytes), lambda: x.loop(r.rows, 1, by_strips))

    def _line(self, dst: Strided, src: Strided, r: Rect, i: Val) -> tuple[str, str]:
        x = self.x
        to = x.at(r.to, x.mul(x.mul(i, dst.rows[0].stride), dst.dtype.itemsize))
        return to, x.at(r.from_, x.mul(x.mul(i, src.rows[0].stride), src.dtype.itemsize))

    def _move(
        self, dst: DType, src: DType, lanes: int, to: str, from_: str, mask: str | None, col: Val
    ) -> None:
        value = masked.load_lanes(self.x, src, lanes, from_, mask)
        self._put(dst, src, lanes, value, to, mask, col)

    def _put(
        self,
        dst: DType,
        src: DType,
        lanes: int,
        value: str,
        to: str,
        mask: str | None = None,
        col: Val = 0,
    ) -> None:
        """Store elements, or what the work makes of them."""
        x = self.x
        if self.work is not None:
            spot = Lanes(x, lanes)
            given = [spot.symbol(symbol_type(src), value)]
            if self.work.combines:
                old = masked.load_lanes(x, dst, lanes, to, mask)
                given.append(spot.symbol(symbol_type(dst), old))
            where = (col, mask) if self.by_column else ()
            value = str(items_of(spot, self.work.fn(*given, *where), dst).name)
        elif element(src) != element(dst):
            a, b = vector(lanes, element(src)), vector(lanes, element(dst))
            value = x.new(f"bitcast {a} {value} to {b}")
        masked.store_lanes(x, dst, lanes, value, to, mask)

    # ---- element by element

    def _elements(self, dst: Strided, src: Strided) -> Callable[[Rect], None]:
        x = self.x

        def part(r: Rect) -> None:
            def one(i: Val) -> None:
                to, from_ = self._line(dst, src, r, i)

                def item(j: Val) -> None:
                    a = x.mul(x.mul(j, dst.cols[0].stride), dst.dtype.itemsize)
                    b = x.mul(x.mul(j, src.cols[0].stride), src.dtype.itemsize)
                    places = x.at(to, a), x.at(from_, b)
                    self._move(dst.dtype, src.dtype, 1, *places, None, x.add(r.col, j))

                x.loop(r.cols, 1, item)

            x.loop(r.rows, 1, one)

        return part

    # ---- lines across each other

    def _turned(self, dst: Strided, src: Strided) -> Callable[[Rect], None]:
        """Columns of dst and rows of src are contiguous."""
        x = self.x
        size = src.dtype.itemsize
        item = f"i{8 * src.dtype.itemsize}"
        side = 16 if size <= 2 else 8
        type, given = vector(side, item), vector(side, element(src.dtype))
        elements = self._elements(dst, src)

        def part(r: Rect) -> None:
            tall, wide = (x.mul(x.over(n, side), side) for n in (r.rows, r.cols))
            to_step = x.mul(dst.cols[0].stride, dst.dtype.itemsize)
            from_step = x.mul(src.rows[0].stride, size)

            def place(i: Val, j: Val) -> tuple[str, str]:
                to = x.at(r.to, x.add(x.mul(i, dst.dtype.itemsize), x.mul(j, to_step)))
                return to, x.at(r.from_, x.add(x.mul(i, from_step), x.mul(j, size)))

            def block(i: Val, j: Val) -> None:
                to, from_ = place(i, j)

                def load(row: int, first: int, count: int) -> str:
                    at = x.add(x.mul(from_step, row), first * size)
                    return x.load(vector(count, item), x.at(from_, at))

                for n, row in enumerate(shuffles.transposed(x, item, size, side, side, load)):
                    value = row if type == given else x.new(f"bitcast {type} {row} to {given}")
                    self._put(dst.dtype, src.dtype, side, value, x.at(to, x.mul(to_step, n)))

            x.loop(tall, side, lambda i: x.loop(wide, side, lambda j: block(i, j)))
            if tall != r.rows:
                elements(Rect(x.sub(r.rows, tall), r.cols, *place(tall, 0), None))
            if wide != r.cols:
                elements(Rect(tall, x.sub(r.cols, wide), *place(0, wide), None))

        return part


def _narrow_boxes(a: Axis, b: Axis) -> int:
    """The width of boxes of one layout beside lines of the other; 0: something else."""
    boxed, plain = (a, b) if len(a) > len(b) else (b, a)
    width = boxed[0].extent
    return width if len(boxed) == 2 and len(plain) == 1 and isinstance(width, int) else 0


# ---- fills


def fill(
    x: Text, dst: Strided, to: str, value: Val, rows: tuple[Val, Val], cols: tuple[Val, Val]
) -> None:
    """One item in all elements of the rows and columns from .. to."""
    if "cols" not in dst.contiguous_axes:
        dst = dst.swapped
        rows, cols = cols, rows
    item, size = element(dst.dtype), dst.dtype.itemsize
    lanes = _LANES_BYTES // size
    all = shuffles.spread(x, item, lanes, value)

    def across(left: list[Val], width: Val, _: int | None) -> None:
        def down(top: list[Val], height: Val, _: int | None) -> None:
            start = x.at(to, x.mul(x.add(left[0], top[0]), size))

            def row(i: Val) -> None:
                begin = x.at(start, x.mul(x.mul(i, dst.rows[0].stride), size))

                def strip(j: Val, mask: str | None) -> None:
                    place = masked.offset(x, begin, j, 1, size)
                    masked.store_lanes(x, dst.dtype, lanes, all, place, mask)

                masked.strips(x, lanes, width, strip)

            x.loop(height, 1, row)

        strided_runs(x, (dst.rows,), *rows, down)

    strided_runs(x, (dst.cols,), *cols, across)


# ---- walks in runs: the part of an axis that one mode counts, whose elements have one stride

# body(offsets of the first element in each layout, how many elements, at most how many or None)
Run = Callable[[list[Val], Val, int | None], None]


def strided_runs(x: Text, along: Sequence[Axis], start: Val, end: Val, body: Run) -> None:
    """The numbers from `start` to `end` in runs along which all layouts have one stride."""
    sizes = [each[0].extent for each in along if each[0].extent != REST]
    if not sizes:
        body([position(x, each, start) for each in along], x.sub(end, start), None)
    elif start == 0 and all(isinstance(size, int) for size in sizes):
        most = gcd(*map(int, sizes))
        whole = isinstance(end, int) and int(end) % most == 0

        def part(i: Val) -> None:
            count = most if whole else x.smaller(x.sub(end, i), most)
            body([position(x, each, i) for each in along], count, most)

        if end == most:
            part(0)
        else:
            x.loop(end, most, part)
    else:
        _uneven(x, along, sizes, start, end, body)


def _uneven(
    x: Text, along: Sequence[Axis], sizes: Sequence[Val], start: Val, end: Val, body: Run
) -> None:
    def turn(state: list[str]) -> list[Val]:
        (i,) = state
        count = x.sub(end, i)
        for size in sizes:
            count = x.smaller(count, x.sub(size, x.rest(i, size)))
        body([position(x, each, i) for each in along], count, None)
        return [x.add(i, count)]

    x.while_loop(["i64"], [start], lambda state: x.compare("slt", state[0], end), turn)
