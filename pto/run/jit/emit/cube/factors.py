"""Both operands of a product, unpacked in the scratch buffer: the left one row by row, the right
one in panels of columns. Of an image the lines that its windows need.

Bytes stay bytes, four in a word, if the processor multiplies unsigned by signed bytes and adds four
products at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pto.core.dtypes import F32, I8, I32, U8, DType
from pto.run.jit.emit.cube.image import Image, Windows
from pto.run.jit.emit.cube.unpack import (
    FACTORS,
    RIGHT_AT,
    PanelLayout,
    can_weave,
    in_words,
    unpack,
    weave,
)
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import native, shuffles
from pto.run.jit.llvm.text import Text, Val, expect, unsupported_if, vector

LANES: Final = 16
PANEL: Final = 4 * LANES  # columns of the right factor that lie together: they stay in cache
TALL: Final = 12  # rows of a product whose first block may unpack the right factor
_TALLEST: Final = 32  # rows of a box
_LEAST: Final = 8  # f32 of a row of a box that is read where it is


@dataclass(frozen=True, slots=True)
class Matrix:
    """The address and layout of a matrix, and its largest number of rows and columns."""

    grid: Grid
    pointer: str
    rows: int
    cols: int


def kind_of(a: DType, b: DType, dst: DType, *, pairs: bool = False) -> str:
    """The type of unpacked operands and of sums. `pairs`: packed elements along k."""
    into = {F32: "float", I32: "i32"}.get(dst, "")
    mixed = {a.is_packed, b.is_packed} != {pairs}
    wrong = mixed or {FACTORS.get(a), FACTORS.get(b)} != {into}
    unsupported_if(wrong, "a product of these types")
    return into


def takes(g: Grid, *, left: bool) -> bool:
    """True if an operand of this layout is multiplied as fast as one in L0."""
    if g.dtype in (I8, U8) and native.target().has_byte_products:
        return _has_words(g, left=left)
    return g.box != (1, 1) and 1 in (g.row, g.col)


@dataclass(frozen=True, slots=True)
class Factors:
    """Both factors, unpacked in the scratch memory: the left row by row, the right in panels. A
    left factor of f32 in boxes or in global memory may stay where it is."""

    left: str
    right: str
    rooms: tuple[PanelLayout, PanelLayout]
    begins: str = ""  # of bytes, four in a word: what the sums of each column begin with
    windows: Windows | None = None  # how the rows of an image or of boxes lie
    first: Val = 0  # of them
    source: Matrix | None = None  # of the right factor, which the first block of rows may unpack
    unpacks: str = "false"  # True if it does


def unpacked(
    s: OpContext,
    sizes: tuple[Val, Val, Val],
    a: Matrix | Image,
    right_factor: Matrix | Image,
    *,
    again: bool = False,
    in_place: bool = False,
) -> Factors:
    """Unpack operands of m x k and k x n items. `again`: the previous product has unpacked the same
    right operand, of floats. `in_place`: the left operand may stay where it is, and the product may
    unpack the right one."""
    b = expect(right_factor, Matrix, "an image as the right factor")
    if isinstance(a, Image):
        return _image_unpacked(s, sizes, a, b, again)
    if _are_bytes(a.grid, b.grid):
        return _bytes_unpacked(s, sizes, a, b)
    (m, k, n), deep = sizes, a.grid.dtype.values_per_item
    rooms = _rooms(replace(a, cols=a.cols * deep), replace(b, rows=b.rows * deep))
    left, right = s.e.scratch(), s.x.at(s.e.scratch(), RIGHT_AT)
    x, unpacks = s.x, "false"
    if in_place and not again and _are_rows(b.grid):
        unpacks = x.both(x.compare("sge", m, TALL), x.compare("eq", x.rest(n, PANEL), 0))
    if not again:
        given = right, rooms[1], b.grid, b.pointer, k, n
        x.when(x.negated(unpacks), lambda: unpack(s, *given, across=False))
    later = (None if unpacks == "false" else b), unpacks
    if in_place and a.grid.dtype is F32 and _are_rows(a.grid):
        return Factors(a.pointer, right, (PanelLayout(a.grid.down), rooms[1]), "", None, 0, *later)
    windows = boxes_of(a.grid, k) if in_place else None
    if windows is None:
        unpack(s, left, rooms[0], a.grid, a.pointer, m, k)
    left = left if windows is None else a.pointer
    return Factors(left, right, rooms, "", windows, 0, *later)


def _are_rows(g: Grid) -> bool:
    """True if the elements of a row follow each other."""
    return g.box[0] == 1 and g.right == g.box[1] and g.col == 1


def boxes_of(g: Grid, k: Val) -> Windows | None:
    """The rows of boxes of f32 as windows; None for another layout, or if k is known only when it
    runs or is no multiple of a box."""
    (h, w), row, down = g.box, g.row, g.down
    if not (isinstance(k, int) and isinstance(row, int) and isinstance(down, int)):
        return None
    if g.dtype is not F32 or g.col != 1 or w < _LEAST or k % w:
        return None
    across, step, down = (1, 0, row) if down == h * row else (h, row, down)
    return Windows(across, step, down, w, 0, 1, g.right)


def _image_unpacked(
    s: OpContext, sizes: tuple[Val, Val, Val], a: Image, b: Matrix, again: bool
) -> Factors:
    rooms = _rooms(Matrix(b.grid, "", 0, 0), b)
    left, right = s.e.scratch(), s.x.at(s.e.scratch(), RIGHT_AT)
    first = a.unpack(s, left)
    if not again:
        unpack(s, right, rooms[1], b.grid, b.pointer, *sizes[1:])
    return Factors(left, right, rooms, "", a.windows, first)


def _rooms(a: Matrix, b: Matrix) -> tuple[PanelLayout, PanelLayout]:
    high, line = -(-b.rows // _TALLEST) * _TALLEST, -(-a.cols // LANES) * LANES
    rooms = PanelLayout(line), PanelLayout(PANEL, high * PANEL)
    wide = -(-b.cols // PANEL)
    unsupported_if(
        a.rows * line * 4 > RIGHT_AT or (rooms[1].panel + PANEL) * wide * 4 > RIGHT_AT,
        "factors larger than the scratch memory",
    )
    return rooms


# ---- bytes


def _are_bytes(a: Grid, b: Grid) -> bool:
    """True if the processor multiplies them, and both have four bytes together."""
    fine = native.target().has_byte_products and a.dtype in (I8, U8) and b.dtype is I8
    return fine and _has_words(a, left=True) and _has_words(b, left=False)


def _has_words(g: Grid, *, left: bool) -> bool:
    return in_words(g, across=left) is not None or (not left and can_weave(g))


def _bytes_unpacked(s: OpContext, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix) -> Factors:
    """Unpack bytes. A signed left operand is read as unsigned, which adds 128 to each element; so
    the sums of a column begin with -128 times the sum of the right operand. Integers wrap, so this
    is exact."""
    x, (m, k, n), signed = s.x, sizes, a.grid.dtype is I8
    across = expect(in_words(a.grid, across=True), Grid, "bytes that lie apart")
    down = in_words(b.grid, across=False)
    a, b = replace(a, cols=-(-a.cols // 4)), replace(b, rows=-(-b.rows // 4))
    rooms, words, panels = _rooms(a, b), x.up(k, 4), x.up(n, PANEL)
    left, right = s.e.scratch(), x.at(s.e.scratch(), RIGHT_AT)
    unpack(s, left, rooms[0], across, a.pointer, m, words, 0x80808080 if signed else 0)
    if down is None:
        weave(s, right, rooms[1], b.grid, b.pointer, words, n)
    else:
        unpack(s, right, rooms[1], down, b.pointer, words, n)
    begins = x.at(right, rooms[1].panel * -(-b.cols // PANEL) * 4)
    given = [("i64", k), ("i64", panels), ("ptr", right), ("ptr", begins)]
    key = repr(("begins", rooms[1], signed))
    s.call(key, given, lambda x: _begins(x, rooms[1], 128 * signed))
    return Factors(left, right, rooms, begins)


def _begins(x: Text, room: PanelLayout, each: int) -> None:
    """f(k, panels, right, begins). Bytes after the end of a column become 0."""
    type = vector(LANES, "i32")
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
                return [byte_products(x, splat, right, sums[0])]

            total = x.fold(x.up("%p0", 4), [type], ["zeroinitializer"], step)[0]
            place = x.at("%p3", x.add(x.mul(p, PANEL * 4), n * 4))
            x.store(type, x.new(f"sub {type} zeroinitializer, {total}"), place)

    x.loop("%p1", 1, panel)


def byte_products(x: Text, a: Val, b: Val, total: Val) -> str:
    """total + the four products of unsigned bytes of a by signed ones of b, in each word."""
    type, name = vector(LANES, "i32"), "@llvm.x86.avx512.vpdpbusd.512"
    x.declare(f"declare {type} {name}({type}, {type}, {type})")
    return x.new(f"call {type} {name}({type} {total}, {type} {a}, {type} {b})")
