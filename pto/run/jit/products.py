"""Products of tiles. Factors are unpacked to plain f32 (or i32) arrays, then multiplied in blocks of
4 rows by 64 columns; k runs in order, each step fused: the bits of `meaning/contraction.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pto.core.dtypes import BF16, F16, F32, I8, I32, U8, DType
from pto.isa.meaning.matmul import PRODUCT
from pto.run.jit import lanes, planes
from pto.run.jit.context import MODES
from pto.run.jit.emit import Spot, emits
from pto.run.jit.grids import Grid, grid
from pto.run.jit.text import NotNative, Text, element, vector
from pto.run.jit.values import Native, TilePlace

_LANES: Final = 16
_HIGH, _WIDE = 4, 4  # rows, and vectors of columns, whose sums stay in registers
_FACTORS: Final = {F32: "float", F16: "float", BF16: "float", I8: "i32", U8: "i32"}
_RIGHT_AT: Final = 1 << 19  # where the right factor lies in the scratch memory


@emits(PRODUCT)
def _product(s: Spot) -> Sequence[Native]:
    names = set(s.case.row.operand_names)
    if "a_scale" in names:
        raise NotNative("block scales")
    left, right = ("lhs", "rhs") if "lhs" in names else ("a", "b")
    a, b, dst = (s.need(TilePlace, name) for name in (left, right, "dst"))
    added = next((name for name in ("acc_in", "c_in", "bias") if name in names), None)
    start = None if added is None else s.need(TilePlace, added)
    kind = _kind(a, b, dst)
    x, (m, k), (inner, n) = s.x, a.valid, b.valid
    fits = x.both(x.compare("eq", k, inner), x.compare("eq", m, dst.valid[0]))
    fits = x.both(fits, x.compare("eq", n, dst.valid[1]))
    fine = _plain_modes(s, a, b)
    if start is not None:
        fits = x.both(fits, planes.enough(s, start, "1" if added == "bias" else m, n))
        fine = x.both(fine, _apart(s, start, dst))
    s.fault_unless(fits)
    line = -(-a.type.cols // _LANES) * _LANES, -(-b.type.cols // _LANES) * _LANES
    if a.type.rows * line[0] * 4 > _RIGHT_AT or b.type.rows * line[1] * 4 > _RIGHT_AT:
        raise NotNative("factors larger than the scratch memory")

    def run() -> None:
        lhs, rhs = s.e.room(), x.at(s.e.room(), _RIGHT_AT)
        _unpack(s, lhs, line[0], a, m, k)
        _unpack(s, rhs, line[1], b, k, n)
        to, first = planes.machine_address(s, dst), "null"
        if start is not None:
            first = planes.machine_address(s, start)
        shape = None if start is None else (grid(start), added == "bias")
        key = repr(("product", kind, line, grid(dst), shape))
        name = s.e.unit.shared(key, lambda f: _multiply(s, f, kind, line, grid(dst), shape))
        x.do(
            f"call void {name}(i64 {m}, i64 {k}, i64 {n}, ptr {to}, ptr {lhs}, ptr {rhs}, ptr {first})"
        )

    planes.either_way(s, fine, run)
    return []


def _kind(a: TilePlace, b: TilePlace, dst: TilePlace) -> str:
    """What factors are unpacked to, and sums are kept in."""
    kinds = {_FACTORS.get(t.type.dtype) for t in (a, b)}
    into = {F32: "float", I32: "i32"}.get(dst.type.dtype)
    if len(kinds) != 1 or into is None or kinds != {into}:
        raise NotNative("a product of these types")
    return into


def _plain_modes(s: Spot, a: TilePlace, b: TilePlace) -> str:
    """f32 factors as they are: no register asks for fewer bits."""
    if F32 not in (a.type.dtype, b.type.dtype):
        return "true"
    modes = s.x.load("i64", s.x.at("%ctx", 8 * MODES), 8)
    return s.x.compare("eq", modes, "0")


def _apart(s: Spot, start: TilePlace, dst: TilePlace) -> str:
    """The old accumulator is the new one, or lies elsewhere."""
    if start.memory != dst.memory:
        return "true"
    x, size = s.x, start.type.nbytes
    before = x.compare("sle", x.add(start.address, str(size)), dst.address)
    after = x.compare("sle", x.add(dst.address, str(dst.type.nbytes)), start.address)
    same = "false"
    if start.type.shape == dst.type.shape and start.type.layout == dst.type.layout:
        same = x.compare("eq", start.address, dst.address)
    return x.either(x.either(before, after), same)


# ---- unpacking


def _unpack(s: Spot, to: str, line: int, tile: TilePlace, rows: str, cols: str) -> None:
    g = grid(tile)
    key = repr(("unpack", g, line))
    name = s.e.unit.shared(key, lambda f: _unpack_function(s, f, g, line))
    source = planes.machine_address(s, tile)
    s.x.do(f"call void {name}(i64 {rows}, i64 {cols}, ptr {to}, ptr {source})")


def _unpack_function(s: Spot, name: str, g: Grid, line: int) -> str:
    """void f(rows, cols, dst, src): row by row, `line` elements apart; whole boxes at the edges."""
    x = Text()
    if g.col == 1:
        _unpack_lines(s, x, g, line)
    elif g.row == 1:
        _unpack_turned(s, x, g, line)
    else:
        raise NotNative("a layout without runs")
    x.do("ret void")
    listed, _ = planes.parameters(["i64", "i64", "ptr", "ptr"])
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


def _unpack_lines(s: Spot, x: Text, g: Grid, line: int) -> None:
    """Rows of a box are runs of its width."""
    (h, w), size = g.box, g.dtype.itemsize
    if w == 1:
        raise NotNative("factors without boxes")
    wide = lanes.Lanes(x, w, s.e.unit.declare)

    def row(i: str) -> None:
        source = x.at(
            "%p3",
            x.mul(
                x.add(x.mul(_over(x, i, h), str(g.down)), x.mul(_rest(x, i, h), str(g.row))),
                str(size),
            ),
        )
        to = x.at("%p2", x.mul(i, str(line * 4)))

        def run(c: str) -> None:
            item = x.load(vector(w, element(g.dtype)), planes.offset(x, source, c, g.right, size))
            x.store(
                _wide_type(w, g.dtype), _widened(wide, g.dtype, item), planes.offset(x, to, c, w, 4)
            )

        planes.loop(x, _up(x, "%p1", w), "1", run)

    planes.loop(x, "%p0", "1", row)


def _unpack_turned(s: Spot, x: Text, g: Grid, line: int) -> None:
    """Columns of a box are runs of its height: each box is turned in registers."""
    (h, w), size = g.box, g.dtype.itemsize
    item, type = element(g.dtype), vector(h, element(g.dtype))
    count = min(h, w)
    wide = lanes.Lanes(x, count, s.e.unit.declare)

    def down(r: str) -> None:
        def right(c: str) -> None:
            place = x.add(x.mul(r, str(g.down)), x.mul(c, str(g.right)))
            source = x.at("%p3", x.mul(place, str(size)))
            columns = [x.load(type, x.at(source, n * g.col * size)) for n in range(w)]
            to = x.at("%p2", x.add(x.mul(r, str(h * line * 4)), x.mul(c, str(w * 4))))
            for n, part in enumerate(_cut(x, item, h, count, turn(x, item, h, columns))):
                row, col = divmod(n * count, w)
                value = _widened(wide, g.dtype, part)
                x.store(_wide_type(count, g.dtype), value, x.at(to, (row * line + col) * 4))

        planes.loop(x, _up(x, "%p1", w), "1", right)

    planes.loop(x, _up(x, "%p0", h), "1", down)


def _cut(x: Text, item: str, lanes_: int, count: int, parts: Sequence[str]) -> list[str]:
    """Vectors in pieces of `count` lanes."""
    if lanes_ == count:
        return list(parts)
    type, found = vector(lanes_, item), list[str]()
    for part in parts:
        for start in range(0, lanes_, count):
            picks = ", ".join(f"i32 {start + n}" for n in range(count))
            found.append(
                x.new(f"shufflevector {type} {part}, {type} poison, <{count} x i32> <{picks}>")
            )
    return found


def turn(x: Text, item: str, lanes_: int, columns: Sequence[str]) -> list[str]:
    """Vectors that are columns as vectors of the rows' elements, in order.

    Interleaving the two halves of all elements moves the highest bit of an element's number to the
    lowest place; after as many rounds as the column's number has bits, rows and columns have changed
    places.
    """
    type, rows = vector(lanes_, item), list(columns)
    half = len(rows) // 2
    low = ", ".join(f"i32 {n // 2 + (n % 2) * lanes_}" for n in range(lanes_))
    high = ", ".join(f"i32 {n // 2 + lanes_ // 2 + (n % 2) * lanes_}" for n in range(lanes_))
    for _ in range(len(columns).bit_length() - 1):
        mixed: list[str] = []
        for a, b in zip(rows[:half], rows[half:], strict=True):
            for picks in (low, high):
                mixed.append(
                    x.new(f"shufflevector {type} {a}, {type} {b}, <{lanes_} x i32> <{picks}>")
                )
        rows = mixed
    return rows


def _wide_type(count: int, dtype: DType) -> str:
    return vector(count, _FACTORS[dtype])


def _widened(spot: lanes.Lanes, dtype: DType, name: str) -> str:
    to = np.dtype(np.float32) if dtype.is_float else np.dtype(np.int32)
    return lanes.cast(spot.symbol(dtype.numpy, name), to).name


def _over(x: Text, i: str, by: int) -> str:
    return i if by == 1 else x.new(f"udiv i64 {i}, {by}")


def _rest(x: Text, i: str, by: int) -> str:
    return "0" if by == 1 else x.new(f"urem i64 {i}, {by}")


def _up(x: Text, count: str, by: int) -> str:
    """count / by, rounded up."""
    return x.new(f"udiv i64 {x.add(count, str(by - 1))}, {by}") if by > 1 else count


# ---- multiplying


def _multiply(
    s: Spot,
    name: str,
    kind: str,
    line: tuple[int, int],
    out: Grid,
    start: tuple[Grid, bool] | None,
) -> str:
    """void f(m, k, n, dst, lhs, rhs, start)"""
    x = Text()
    groups = x.new("udiv i64 %p2, 64")
    whole = x.new("mul i64 %p0, 1")
    fours = x.new(f"and i64 {whole}, -4")
    block = _Block(s, x, kind, line, out, start)

    def strip(first: str, wide: int) -> None:
        planes.loop(x, fours, "4", lambda i: block.write(i, first, _HIGH, wide))
        planes.loop(x, "%p0", "1", lambda i: block.write(i, first, 1, wide), start=fours)

    planes.loop(x, groups, "1", lambda g: strip(x.mul(g, "64"), _WIDE))
    done = x.mul(groups, "64")
    planes.loop(x, "%p2", str(_LANES), lambda j: strip(j, 1), start=done)
    x.do("ret void")
    listed, _ = planes.parameters(["i64"] * 3 + ["ptr"] * 4)
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


class _Block:
    """Some rows by some vectors of columns: all of k at once, in registers."""

    def __init__(
        self,
        s: Spot,
        x: Text,
        kind: str,
        line: tuple[int, int],
        out: Grid,
        start: tuple[Grid, bool] | None,
    ) -> None:
        self.x = x
        self.kind = kind
        self.type = vector(_LANES, kind)
        self.line = line
        self.out = out
        self.start = start
        self.declare = s.e.unit.declare
        self.dtype = F32 if kind == "float" else I32
        if out.col != 1 or out.box[1] % _LANES:
            raise NotNative("an accumulator whose rows are no runs")

    def write(self, i: str, j: str, high: int, wide: int) -> None:
        x = self.x
        zero = "zeroinitializer"
        rows = [x.at("%p4", x.mul(x.add(i, str(n)), str(self.line[0] * 4))) for n in range(high)]
        column = x.at("%p5", x.mul(j, "4"))

        def step(k: str, sums: list[str]) -> list[str]:
            line = x.at(column, x.mul(k, str(self.line[1] * 4)))
            right = [x.load(self.type, x.at(line, 4 * _LANES * n)) for n in range(wide)]
            found: list[str] = []
            for n, row in enumerate(rows):
                left = self._spread(x.load(self.kind, x.at(row, x.mul(k, "4"))))
                for w, b in enumerate(right):
                    found.append(self._add(left, b, sums[n * wide + w]))
            return found

        sums = reduced_many(x, "%p1", self.type, [zero] * (high * wide), step)
        for n in range(high):
            for w in range(wide):
                self._finish(x.add(i, str(n)), x.add(j, str(w * _LANES)), sums[n * wide + w], wide)

    def _spread(self, one: str) -> str:
        x, type = self.x, self.type
        first = x.new(f"insertelement {type} poison, {self.kind} {one}, i64 0")
        return x.new(
            f"shufflevector {type} {first}, {type} poison, <{_LANES} x i32> zeroinitializer"
        )

    def _add(self, a: str, b: str, total: str) -> str:
        x, type = self.x, self.type
        if self.kind == "i32":
            term = x.new(f"mul {type} {a}, {b}")
            return x.new(f"add {type} {total}, {term}")
        name = f"@llvm.fma.v{_LANES}f32"
        self.declare(f"declare {type} {name}({type}, {type}, {type})")
        return x.new(f"call {type} {name}({type} {a}, {type} {b}, {type} {total})")

    def _finish(self, i: str, j: str, total: str, wide: int) -> None:
        """Add what the sum starts with, and store; the last columns masked."""
        x, mask = self.x, None
        if wide == 1:
            left = x.smaller(x.sub("%p2", j), str(_LANES))
            mask = planes.head(x, _LANES, left)
        if self.start is not None:
            g, is_row = self.start
            where = self._place(g, "0" if is_row else i, j)
            old = planes.load_lanes(x, self.declare, self.dtype, _LANES, x.at("%p6", where), mask)
            op = "fadd" if self.kind == "float" else "add"
            total = x.new(f"{op} {self.type} {old}, {total}")
        to = x.at("%p3", self._place(self.out, i, j))
        planes.store_lanes(x, self.declare, self.dtype, _LANES, total, to, mask)

    def _place(self, g: Grid, i: str, j: str) -> str:
        """Bytes from the tile's address to (i, j); j is a multiple of the lanes."""
        x, (h, w) = self.x, g.box
        if w == 1:  # no boxes: columns follow each other
            if g.right != 1:
                raise NotNative("an addend whose rows are no runs")
            return x.mul(x.add(x.mul(i, str(g.down)), j), "4")
        if w % _LANES:
            raise NotNative("boxes narrower than a vector")
        down = x.add(x.mul(_over(x, i, h), str(g.down)), x.mul(_rest(x, i, h), str(g.row)))
        right = x.add(x.mul(_over(x, j, w), str(g.right)), _rest(x, j, w))
        return x.mul(x.add(down, right), "4")


def reduced_many(
    x: Text,
    count: str,
    type: str,
    first: Sequence[str],
    step: Callable[[str, list[str]], list[str]],
) -> list[str]:
    """Several running values: values = step(i, values) for i below count."""
    before, head, inside, done = x.here, x.fresh("sum"), x.fresh("in"), x.fresh("out")
    x.jump(head)
    x.label(head)
    place, i = len(x.lines), x.name()
    values = [x.name() for _ in first]
    more = x.new(f"icmp slt i64 {i}, {count}")
    x.branch(more, inside, done)
    x.label(inside)
    found = step(i, values)
    following = x.new(f"add nsw i64 {i}, 1")
    x.lines[place:place] = [
        f"  {i} = phi i64 [ 0, %{before} ], [ {following}, %{x.here} ]",
        *(
            f"  {name} = phi {type} [ {a}, %{before} ], [ {b}, %{x.here} ]"
            for name, a, b in zip(values, first, found, strict=True)
        ),
    ]
    x.jump(head)
    x.label(done)
    return values


__all__ = ["Any"]
