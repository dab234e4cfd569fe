"""Both operands of a product, unpacked in the scratch buffer: the left one row by row, the right
one in panels of columns.

Bytes stay bytes, four in a word, if the processor multiplies unsigned by signed bytes and adds four
products at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pto.core.dtypes import F32, I8, I32, U8, DType
from pto.core.layout import REST, Mode
from pto.run.jit.emit.cube.unpack import FACTORS, RIGHT_AT, can_weave, in_words, unpack, weave
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided, axis, row_major
from pto.run.jit.llvm import native, shuffles
from pto.run.jit.llvm.text import Text, vector
from pto.run.jit.llvm.value import FALSE, Condition, Val

LANES: Final = 16
PANEL: Final = 4 * LANES  # columns of the right factor that lie together: they stay in cache
TALL: Final = 12  # rows of a product whose first block may unpack the right factor
_TALLEST: Final = 32  # rows of a box
_LEAST: Final = 8  # f32 of a row of a box that is read where it is


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix and its largest number of rows and columns."""

    access: Access
    rows: int
    cols: int

    @property
    def layout(self) -> Strided:
        return self.access.layout


def kind_of(a: DType, b: DType, dst: DType, *, pairs: bool = False) -> str:
    """The type of unpacked operands and of sums. `pairs`: packed elements along k."""
    into = {F32: "float", I32: "i32"}.get(dst, "")
    mixed = {a.is_packed, b.is_packed} != {pairs}
    wrong = mixed or {FACTORS.get(a), FACTORS.get(b)} != {into}
    unsupported_if(wrong, "a product of these types")
    return into


def takes(g: Strided, *, left: bool) -> bool:
    """True if an operand of this layout is multiplied as fast as one in L0."""
    if g.dtype in (I8, U8) and native.target().has_byte_products:
        return _has_words(g, left=left)
    return bool(g.contiguous_axes)


@dataclass(frozen=True, slots=True)
class Factors:
    """Both factors, unpacked in the scratch memory: the left row by row, the right in panels. A
    left factor of f32 in boxes or in global memory may stay where it is."""

    left: Access
    right: Access
    begins: str = ""  # of bytes, four in a word: what the sums of each column begin with
    source: Access | None = None  # of the right factor, which the first block of rows may unpack
    unpacks: Condition = FALSE  # True if it does


def unpacked(
    s: OpContext,
    sizes: tuple[Val, Val, Val],
    a: Matrix,
    b: Matrix,
    *,
    in_place: bool = False,
) -> Factors:
    """Unpack operands of m x k and k x n items. `in_place`: the left operand may stay where it is,
    and the product may unpack the right one."""
    if (across := _left_bytes(a.layout, b.layout)) is not None:
        return _bytes_unpacked(s, sizes, a, b, across)
    (m, k, n) = sizes
    deep = a.layout.dtype.values_per_item
    into = _wide(a.layout.dtype)
    x, unpacks = s.x, FALSE
    left = _room(s, 0, into, a.rows, a.cols * deep)
    right = _panels(s, into, b.rows * deep, b.cols)
    if in_place and _are_rows(b.layout):
        unpacks = x.compare("sge", m, TALL) & x.compare("eq", x.rest(n, PANEL), 0)
    x.when(~unpacks, lambda: unpack(s, right, b.access, k, n, across=False))
    stays = in_place and a.layout.dtype is F32 and (_are_rows(a.layout) or has_runs(a.layout, k))
    if stays:
        left = a.access
    else:
        unpack(s, left, a.access, m, k)
    return Factors(left, right, "", None if unpacks.is_false else b.access, unpacks)


def _are_rows(g: Strided) -> bool:
    """True if the elements of a row follow each other."""
    return g.cols == axis(1)


def has_runs(g: Strided, k: Val) -> bool:
    """True if the rows are runs of some length, and k is a multiple of it that is known now."""
    run = g.cols[0]
    long = run.stride == 1 and run.extent >= _LEAST
    return long and isinstance(k, int) and int(k) % run.extent == 0


def _wide(dtype: DType) -> DType:
    return F32 if FACTORS[dtype] == "float" else I32


def _room(s: OpContext, at: int, into: DType, rows: int, cols: int) -> Access:
    """Rows of unpacked elements in the scratch memory."""
    pitch = -(-cols // LANES) * LANES
    _require_room(rows * pitch)
    return Access(row_major(into, pitch), s.x.at(s.e.scratch(), at))


def _panels(s: OpContext, into: DType, rows: int, cols: int) -> Access:
    """Panels of `PANEL` columns of unpacked elements, one after the other."""
    panel = -(-rows // _TALLEST) * _TALLEST * PANEL
    _require_room((panel + PANEL) * -(-cols // PANEL))
    layout = Strided(into, axis(PANEL), (Mode(PANEL, 1), Mode(REST, panel)))
    return Access(layout, s.x.at(s.e.scratch(), RIGHT_AT))


def _require_room(items: int) -> None:
    unsupported_if(4 * items > RIGHT_AT, "factors larger than the scratch memory")


# ---- bytes


def _left_bytes(a: Strided, b: Strided) -> Strided | None:
    """The left operand in words of four bytes, if the processor multiplies such words and the right
    operand has them too."""
    possible = native.target().has_byte_products and a.dtype in (I8, U8) and b.dtype is I8
    return in_words(a, across=True) if possible and _has_words(b, left=False) else None


def _has_words(g: Strided, *, left: bool) -> bool:
    return in_words(g, across=left) is not None or (not left and can_weave(g))


def _bytes_unpacked(
    s: OpContext, sizes: tuple[Val, Val, Val], a: Matrix, b: Matrix, across: Strided
) -> Factors:
    """Unpack bytes. A signed left operand is read as unsigned, which adds 128 to each element; so
    the sums of a column begin with -128 times the sum of the right operand. Integers wrap, so this
    is exact."""
    x = s.x
    (m, k, n) = sizes
    signed = a.layout.dtype is I8
    down = in_words(b.layout, across=False)
    words = x.up(k, 4)
    panels = x.up(n, PANEL)
    left = _room(s, 0, I32, a.rows, -(-a.cols // 4))
    right = _panels(s, I32, -(-b.rows // 4), b.cols)
    unpack(s, left, a.access.with_layout(across), m, words, 0x80808080 if signed else 0)
    if down is None:
        weave(s, right, b.access, words, n)
    else:
        unpack(s, right, b.access.with_layout(down), words, n)
    panel = right.layout.cols[1].stride
    begins = x.at(right.pointer, panel * -(-b.cols // PANEL) * 4)
    given = [("i64", k), ("i64", panels), ("ptr", right.pointer), ("ptr", begins)]
    key = repr(("begins", panel, signed))
    s.call(key, given, lambda x: _begins(x, panel, 128 * signed))
    return Factors(left, right, begins)


def _begins(x: Text, panel: int, each: int) -> None:
    """f(k, panels, right, begins). Bytes after the end of a column become 0."""
    type = vector(LANES, "i32")
    splat = f"splat (i32 {each * 0x01010101})"
    words, rest = x.new("lshr i64 %p0, 2"), x.new("trunc i64 %p0 to i32")
    kept = x.new(f"shl i32 {x.new(f'and i32 {rest}, 3')}, 3")
    mask = x.new(f"sub i32 {x.new(f'shl i32 1, {kept}')}, 1")
    masks, odd = shuffles.spread(x, "i32", LANES, mask), x.compare("ne", kept, 0, "i32")

    def one(p: Val) -> None:
        for n in range(0, PANEL, LANES):
            column = x.at("%p2", x.add(x.mul(p, panel * 4), n * 4))

            def last(column: str = column) -> None:
                place = x.at(column, x.mul(words, PANEL * 4))
                x.store(type, x.new(f"and {type} {x.load(type, place)}, {masks}"), place)

            x.when(odd, last)

            def step(k: Val, sums: list[str], column: str = column) -> list[str]:
                right = x.load(type, x.at(column, x.mul(k, PANEL * 4)))
                return [byte_products(x, splat, right, sums[0])]

            total = x.fold(x.up("%p0", 4), [type], ["zeroinitializer"], step)[0]
            place = x.at("%p3", x.add(x.mul(p, PANEL * 4), n * 4))
            x.store(type, x.new(f"sub {type} zeroinitializer, {total}"), place)

    x.loop("%p1", 1, one)


def byte_products(x: Text, a: Val, b: Val, total: Val) -> str:
    """total + the four products of unsigned bytes of a by signed ones of b, in each word."""
    type, name = vector(LANES, "i32"), "@llvm.x86.avx512.vpdpbusd.512"
    x.declare(f"declare {type} {name}({type}, {type}, {type})")
    return x.new(f"call {type} {name}({type} {total}, {type} {a}, {type} {b})")
