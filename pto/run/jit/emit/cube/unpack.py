"""Unpacks matrix operands of any layout with contiguous runs to plain f32 or i32 arrays.

An item of a packed type is a pair along k: side by side in the left operand, one below the other in
the right one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pto.core.dtypes import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    FLOAT4_E1M2X2,
    FLOAT4_E2M1X2,
    HIFLOAT8,
    I8,
    I32,
    U8,
    DType,
    decode,
)
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.grids import Grid
from pto.run.jit.llvm import conversions, lanes, shuffles
from pto.run.jit.llvm.text import Text, Val, element, expect, unsupported_if, vector

RIGHT_AT: Final = 1 << 19  # where the right factor lies in the scratch memory, behind the left one

# The LLVM type that an element is unpacked to, without loss.
_BYTES: Final = (F8E4M3, F8E5M2, HIFLOAT8)
_NIBBLES: Final = (FLOAT4_E2M1X2, FLOAT4_E1M2X2)
FACTORS: Final = {
    **dict.fromkeys((F32, F16, BF16, *_BYTES, *_NIBBLES), "float"),
    **dict.fromkeys((I8, U8), "i32"),
}


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The layout of unpacked elements in the scratch buffer: panels of `line` columns, row by row;
    `panel` is the number of elements from one panel to the next."""

    line: Val  # a number, except for rows of global memory
    panel: int = 0  # one panel holds all

    def column(self, x: Text, col: Val) -> Val:
        """Bytes from the start of a row in the first panel to a column, the first of a run."""
        if not self.panel:
            return x.mul(col, 4)
        which, inside = x.over(col, self.line), x.rest(col, self.line)
        return x.mul(x.add(x.mul(which, self.panel), inside), 4)


def in_words(g: Grid, across: bool) -> Grid | None:
    """Four bytes that follow each other along a row, or down a column, as one word; None where the
    layout does not have them together."""
    (h, w), places = g.box, (g.down, g.right, g.row, g.col)
    steps = [n for n in places if isinstance(n, int)]
    run, step = (w, g.col) if across else (h, g.row)
    if step != 1 or run % 4 or len(steps) != len(places) or any(n % 4 for n in steps if n != 1):
        return None
    down, right, row, col = (n if n == 1 else n // 4 for n in steps)
    return Grid(I32, (h, w // 4) if across else (h // 4, w), down, right, row, col)


def can_weave(g: Grid) -> bool:
    """True if four bytes of a column lie in one box."""
    return g.col == 1 and g.box[0] % 4 == 0 and g.box[1] > 1


def weave(
    s: OpContext, to: str, room: PanelLayout, g: Grid, source: str, rows: Val, cols: Val
) -> None:
    """Interleave bytes so that four of a column form a word; edges are padded to whole boxes."""
    given = [("i64", rows), ("i64", cols), ("ptr", to), ("ptr", source)]
    s.call(repr(("weave", g, room)), given, lambda x: _weave(x, g, room))


def _weave(x: Text, g: Grid, room: PanelLayout) -> None:
    """f(rows of words, cols, dst, src)"""
    h, w = g.box
    both = [n // 2 + n % 2 * w for n in range(2 * w)]  # two vectors interleaved

    def row(i: Val) -> None:
        first = x.mul(i, 4)
        at = x.add(x.mul(x.over(first, h), g.down), x.mul(x.rest(first, h), g.row))
        line, to = x.at("%p3", at), x.at("%p2", x.mul(i, room.line * 4))

        def run(c: Val) -> None:
            place = x.at(line, x.mul(c, g.right))
            found = [x.load(vector(w, "i8"), x.at(place, n * g.row)) for n in range(4)]
            pairs: list[str] = []
            for a, b in (found[:2], found[2:]):
                woven = shuffles.shuffle(x, "i8", w, a, both, b)
                pairs.append(x.new(f"bitcast {vector(2 * w, 'i8')} {woven} to {vector(w, 'i16')}"))
            woven = shuffles.shuffle(x, "i16", w, pairs[0], both, pairs[1])
            x.store(vector(2 * w, "i16"), woven, x.at(to, room.column(x, x.mul(c, w))))

        x.loop(x.up("%p1", w), 1, run)

    x.loop("%p0", 1, row)


def unpack(
    s: OpContext,
    to: str,
    room: PanelLayout,
    g: Grid,
    source: str,
    rows: Val,
    cols: Val,
    flip: int = 0,
    *,
    across: bool = True,
) -> None:
    """Unpack the first rows x cols items to `to`; edges are padded to whole boxes. `flip`: bits of
    words that are inverted. `across`: pairs lie side by side."""
    pairs = (1, 2) if across else (2, 1)
    line = expect(room.line, int, "unpacked rows")
    kind = _Kind(g.dtype, *(pairs if g.dtype.is_packed else (1, 1)), line, flip)
    given = Parameters(("i64", rows), ("i64", cols), ("ptr", to), ("ptr", source))
    seen = g.renamed(given.name)
    key = repr(("unpack", seen, room, flip, across))
    s.call(key, given.given, lambda x: _unpack(x, seen, room, kind))


@dataclass(frozen=True, slots=True)
class _Kind:
    """The form of an unpacked item: `high` x `wide` elements, in lines of `line` elements."""

    dtype: DType
    high: int
    wide: int
    line: int
    flip: int

    def put(self, x: Text, spot: lanes.Lanes, items: str, place: str) -> None:
        """Items of a row, where the first of them goes."""
        if self.high * self.wide == 1:
            value, type = widened(spot, self.dtype, items), _wide_type(spot.count, self.dtype)
            if self.flip:
                value = x.new(f"xor {type} {value}, splat (i32 {self.flip})")
            x.store(type, value, place)
            return
        pair, type = _nibbles(spot, self.dtype, items), vector(spot.count, "float")
        if self.wide == 1:
            for n, value in enumerate(pair):
                x.store(type, value, x.at(place, n * self.line * 4))
            return
        both = shuffles.joined(x, "float", spot.count, pair)
        picks = [n * spot.count + lane for lane in range(spot.count) for n in (0, 1)]
        woven = shuffles.shuffle(x, "float", 2 * spot.count, both, picks)
        x.store(vector(2 * spot.count, "float"), woven, place)


def _nibbles(spot: lanes.Lanes, dtype: DType, items: str) -> list[str]:
    """Both values of each byte, the low nibble first."""
    table = decode(dtype, np.arange(16, dtype=np.uint8))[::2].astype(np.float32)
    found = spot.symbol(np.dtype(np.uint8), items)
    pair = (conversions.lookup(code, table) for code in (found & 15, found >> 4))
    return [str(each.view(np.float32).name) for each in pair]


def _unpack(x: Text, g: Grid, room: PanelLayout, kind: _Kind) -> None:
    """f(rows, cols, dst, src)"""
    if g.col == 1:
        _unpack_lines(x, g, room, kind)
    else:
        unsupported_if(g.row != 1, "a layout without runs")
        _unpack_turned(x, g, room, kind)


def _unpack_lines(x: Text, g: Grid, room: PanelLayout, kind: _Kind) -> None:
    """Rows of a box are runs of its width."""
    (h, w), size = g.box, g.dtype.itemsize
    unsupported_if(w == 1, "factors without boxes")
    wide = lanes.Lanes(x, w)

    def row(i: Val) -> None:
        source = x.at(
            "%p3", x.mul(x.add(x.mul(x.over(i, h), g.down), x.mul(x.rest(i, h), g.row)), size)
        )
        to = x.at("%p2", x.mul(i, kind.high * room.line * 4))

        def run(c: Val) -> None:
            item = x.load(vector(w, element(g.dtype)), planes.offset(x, source, c, g.right, size))
            kind.put(x, wide, item, x.at(to, room.column(x, x.mul(c, w * kind.wide))))

        x.loop(x.up("%p1", w), 1, run)

    x.loop("%p0", 1, row)


def _unpack_turned(x: Text, g: Grid, room: PanelLayout, kind: _Kind) -> None:
    """Columns of a box are contiguous: each box is transposed in registers."""
    (h, w), size, item = g.box, g.dtype.itemsize, element(g.dtype)
    wide = lanes.Lanes(x, w)

    def down(r: Val) -> None:
        def right(c: Val) -> None:
            place = x.add(x.mul(r, g.down), x.mul(c, g.right))
            source = x.at("%p3", x.mul(place, size))

            def load(column: int, first: int, count: int) -> str:
                return x.load(vector(count, item), x.at(source, (column * g.col + first) * size))

            row_at = x.mul(r, h * kind.high * room.line * 4)
            to = x.at("%p2", x.add(row_at, room.column(x, x.mul(c, w * kind.wide))))
            for n, row in enumerate(shuffles.transposed(x, item, size, h, w, load)):
                kind.put(x, wide, row, x.at(to, n * kind.high * room.line * 4))

        x.loop(x.up("%p1", w), 1, right)

    x.loop(x.up("%p0", h), 1, down)


def _wide_type(count: int, dtype: DType) -> str:
    return vector(count, FACTORS.get(dtype, "i32"))


def widened(spot: lanes.Lanes, dtype: DType, name: str) -> Val:
    if dtype in _BYTES:
        return conversions.convert(spot.symbol(dtype.storage, name), dtype, F32).name
    to = np.dtype(np.float32) if dtype.is_float else np.dtype(np.int32)
    return lanes.cast(spot.symbol(dtype.numpy, name), to).name
