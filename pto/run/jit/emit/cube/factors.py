"""Both factors of a product, unpacked in scratch memory: the left row by row, the right in panels
of columns; or of an image the lines that its windows need.

Bytes stay bytes, four in a word, where the machine multiplies unsigned by signed ones and adds four
products at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pto.core.dtypes import F32, I8, I32, U8, DType
from pto.run.jit.emit.cube.image import Image, Windows
from pto.run.jit.emit.cube.unpack import (
    FACTORS,
    RIGHT_AT,
    Room,
    can_weave,
    in_words,
    unpack,
    weave,
)
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import native, shuffles
from pto.run.jit.llvm.text import NotNative, Text, Val, vector

LANES: Final = 16
PANEL: Final = 4 * LANES  # columns of the right factor that lie together: they stay in cache
_TALLEST: Final = 32  # rows of a box


@dataclass(frozen=True, slots=True)
class Matrix:
    """Where a matrix lies, and the most rows and columns it can have."""

    grid: Grid
    pointer: str
    rows: int
    cols: int


def kind_of(a: DType, b: DType, dst: DType, *, pairs: bool = False) -> str:
    """What factors are unpacked to, and sums are kept in; `pairs` of packed elements along k."""
    into = {F32: "float", I32: "i32"}.get(dst)
    mixed = {a.is_packed, b.is_packed} != {pairs}
    if into is None or mixed or {FACTORS.get(a), FACTORS.get(b)} != {into}:
        raise NotNative("a product of these types")
    return into


def takes(g: Grid, *, left: bool) -> bool:
    """Whether a factor that lies so is multiplied as fast as one of L0."""
    if g.dtype in (I8, U8) and native.target().has_byte_products:
        return _has_words(g, left=left)
    return g.box != (1, 1) and 1 in (g.row, g.col)


@dataclass(frozen=True, slots=True)
class Factors:
    """Both factors, unpacked in the scratch memory: the left row by row, the right in panels."""

    left: str
    right: str
    rooms: tuple[Room, Room]
    begins: str = ""  # of bytes, four in a word: what the sums of each column begin with
    windows: Windows | None = None  # how the rows of an image lie
    first: Val = 0  # of them


def unpacked(
    s: Spot,
    sizes: tuple[Val, Val, Val],
    a: Matrix | Image,
    b: Matrix | Image,
    *,
    again: bool = False,
) -> Factors:
    """Both have items of m x k and k x n. `again`: the product before had the same right one, of
    floats, which lies unpacked."""
    if isinstance(b, Image):
        raise NotNative("an image as the right factor")
    if isinstance(a, Image):
        return _image_unpacked(s, sizes, a, b, again)
    if _are_bytes(a.grid, b.grid):
        return _bytes_unpacked(s, sizes, a, b)
    (m, k, n), deep = sizes, a.grid.dtype.values_per_item
    rooms = _rooms(replace(a, cols=a.cols * deep), replace(b, rows=b.rows * deep))
    left, right = s.e.room(), s.x.at(s.e.room(), RIGHT_AT)
    unpack(s, left, rooms[0], a.grid, a.pointer, m, k)
    if not again:
        unpack(s, right, rooms[1], b.grid, b.pointer, k, n, across=False)
    return Factors(left, right, rooms)


def _image_unpacked(
    s: Spot, sizes: tuple[Val, Val, Val], a: Image, b: Matrix, again: bool
) -> Factors:
    rooms = _rooms(Matrix(b.grid, "", 0, 0), b)
    left, right = s.e.room(), s.x.at(s.e.room(), RIGHT_AT)
    first = a.unpack(s, left)
    if not again:
        unpack(s, right, rooms[1], b.grid, b.pointer, *sizes[1:])
    return Factors(left, right, rooms, "", a.windows, first)


def _rooms(a: Matrix, b: Matrix) -> tuple[Room, Room]:
    high = -(-b.rows // _TALLEST) * _TALLEST
    rooms = Room(-(-a.cols // LANES) * LANES), Room(PANEL, high * PANEL)
    wide = -(-b.cols // PANEL)
    if a.rows * rooms[0].line * 4 > RIGHT_AT or (rooms[1].panel + PANEL) * wide * 4 > RIGHT_AT:
        raise NotNative("factors larger than the scratch memory")
    return rooms


# ---- bytes


def _are_bytes(a: Grid, b: Grid) -> bool:
    """Whether the machine multiplies them, and both lie so that four come together."""
    fine = native.target().has_byte_products and a.dtype in (I8, U8) and b.dtype is I8
    return fine and _has_words(a, left=True) and _has_words(b, left=False)


def _has_words(g: Grid, *, left: bool) -> bool:
    return in_words(g, across=left) is not None or (not left and can_weave(g))


def _bytes_unpacked(s: Spot, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix) -> Factors:
    """A signed left factor is 128 too large as an unsigned one: its columns begin with -128 times
    the sum of the right one. Integers wrap, so that is exact."""
    x, (m, k, n), signed = s.x, sizes, a.grid.dtype is I8
    across, down = in_words(a.grid, across=True), in_words(b.grid, across=False)
    if across is None:
        raise NotNative("bytes that lie apart")
    a, b = replace(a, cols=-(-a.cols // 4)), replace(b, rows=-(-b.rows // 4))
    rooms, words, panels = _rooms(a, b), x.up(k, 4), x.up(n, PANEL)
    left, right = s.e.room(), x.at(s.e.room(), RIGHT_AT)
    unpack(s, left, rooms[0], across, a.pointer, m, words, 0x80808080 if signed else 0)
    if down is None:
        weave(s, right, rooms[1], b.grid, b.pointer, words, n)
    else:
        unpack(s, right, rooms[1], down, b.pointer, words, n)
    begins = x.at(right, rooms[1].panel * -(-b.cols // PANEL) * 4)
    name = s.e.unit.shared(
        repr(("begins", rooms[1], signed)), lambda f: _begins(s, f, rooms[1], 128 * signed)
    )
    x.do(f"call void {name}(i64 {k}, i64 {panels}, ptr {right}, ptr {begins})")
    return Factors(left, right, rooms, begins)


def _begins(s: Spot, name: str, room: Room, each: int) -> str:
    """void f(k, panels, right, begins). What lies behind the last byte of a column becomes 0."""
    x, type = Text(), vector(LANES, "i32")
    splat = f"splat (i32 {each * 0x01010101})"
    words, rest = x.new("lshr i64 %p0, 2"), x.new("trunc i64 %p0 to i32")
    kept = x.new(f"shl i32 {x.new(f'and i32 {rest}, 3')}, 3")
    mask = x.new(f"sub i32 {x.new(f'shl i32 1, {kept}')}, 1")
    masks, odd = shuffles.spread(x, "i32", LANES, mask), x.compare("ne", kept, 0, "i32")

    def panel(p: Val) -> None:
        for n in range(0, PANEL, LANES):
            column = x.at("%p2", x.add(x.mul(p, room.panel * 4), n * 4))

            def last(column: str = column) -> None:
                place = x.at(column, x.mul(words, room.line * 4))
                x.store(type, x.new(f"and {type} {x.load(type, place)}, {masks}"), place)

            x.when(odd, last)

            def step(k: Val, sums: list[str], column: str = column) -> list[str]:
                right = x.load(type, x.at(column, x.mul(k, room.line * 4)))
                return [byte_products(x, s.e.unit.declare, splat, right, sums[0])]

            total = planes.reduced(x, x.up("%p0", 4), type, ["zeroinitializer"], step)[0]
            place = x.at("%p3", x.add(x.mul(p, PANEL * 4), n * 4))
            x.store(type, x.new(f"sub {type} zeroinitializer, {total}"), place)

    planes.loop(x, "%p1", 1, panel)
    x.do("ret void")
    listed, _ = planes.parameters(["i64", "i64", "ptr", "ptr"])
    return x.function(f"define internal void {name}({listed}) noinline nounwind")


def byte_products(x: Text, declare: Callable[[str], None], a: Val, b: Val, total: Val) -> str:
    """total + the four products of unsigned bytes of a by signed ones of b, in each word."""
    type, name = vector(LANES, "i32"), "@llvm.x86.avx512.vpdpbusd.512"
    declare(f"declare {type} {name}({type}, {type}, {type})")
    return x.new(f"call {type} {name}({type} {total}, {type} {a}, {type} {b})")
