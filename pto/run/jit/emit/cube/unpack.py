"""Unpacks matrix operands of any layout to f32 or i32: copies whose elements are widened.

An item of a packed type is a pair along k: side by side in the left operand, one below the other in
the right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

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
    U64,
    DType,
    decode,
)
from pto.core.layout import REST, Axis, Mode
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile.copies import Work
from pto.run.jit.emit.tile.move import transfer
from pto.run.jit.ir import conversions
from pto.run.jit.ir.strided import Access, Strided, axis
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import Text, vector
from pto.run.jit.llvm.value import Val

RIGHT_AT: Final = 1 << 19  # where the right factor lies in the scratch memory, behind the left one

# The LLVM type that an element is unpacked to, without loss.
_BYTES: Final = (F8E4M3, F8E5M2, HIFLOAT8)
_NIBBLES: Final = (FLOAT4_E2M1X2, FLOAT4_E1M2X2)
FACTORS: Final = {
    **dict.fromkeys((F32, F16, BF16, *_BYTES, *_NIBBLES), "float"),
    **dict.fromkeys((I8, U8), "i32"),
}


def in_words(g: Strided, *, across: bool) -> Strided | None:
    """Four bytes that follow each other along a row, or down a column, as one word; None where the
    layout does not have them together."""
    along, other = (g.cols, g.rows) if across else (g.rows, g.cols)
    (size, step), *more = along
    outer = [n.stride for n in (*more, *other)]
    if step != 1 or size == REST or size % 4 or any(n % 4 for n in outer if n != 1):
        return None
    inner = (Mode(size // 4, 1), *(Mode(n.extent, n.stride // 4) for n in more))
    down = tuple(Mode(n.extent, n.stride if n.stride == 1 else n.stride // 4) for n in other)
    return Strided(I32, down, inner) if across else Strided(I32, inner, down)


def can_weave(g: Strided) -> bool:
    """True if four bytes of a column lie in one box."""
    run, down = g.cols[0], g.rows[0]
    return run.stride == 1 and run.extent != REST and down.extent % 4 == 0  # REST is 0


def weave(s: OpContext, to: Access, src: Access, rows: Val, cols: Val) -> None:
    """Interleave bytes so that four of a column form a word; edges are padded to whole boxes."""
    given = [("i64", rows), ("i64", cols), ("ptr", to.pointer), ("ptr", src.pointer)]
    key = repr(("weave", src.layout, to.layout))
    s.call(key, given, lambda x: _weave(x, src.layout, to.layout))


def _weave(x: Text, g: Strided, to: Strided) -> None:
    """f(rows of words, cols, dst, src)"""
    w, down = g.cols[0].extent, g.rows[0].stride
    both = [n // 2 + n % 2 * w for n in range(2 * w)]  # two vectors interleaved

    def row(i: Val) -> None:
        def run(c: Val) -> None:
            place = g.at(x, "%p3", x.mul(i, 4), c)
            found = [x.load(vector(w, "i8"), x.at(place, n * down)) for n in range(4)]
            pairs: list[str] = []
            for a, b in (found[:2], found[2:]):
                woven = shuffles.shuffle(x, "i8", w, a, both, b)
                pairs.append(x.new(f"bitcast {vector(2 * w, 'i8')} {woven} to {vector(w, 'i16')}"))
            woven = shuffles.shuffle(x, "i16", w, pairs[0], both, pairs[1])
            x.store(vector(2 * w, "i16"), woven, to.at(x, "%p2", i, c))

        x.loop("%p1", w, run)

    x.loop("%p0", 1, row)


def unpack(
    s: OpContext,
    to: Access,
    src: Access,
    rows: Val,
    cols: Val,
    flip: int = 0,
    *,
    across: bool = True,
) -> None:
    """Unpack the first rows x cols items. Boxes that are turned around are unpacked whole. `flip`:
    bits of words that are inverted. `across`: pairs lie side by side."""
    x, layout = s.x, src.layout
    if "cols" not in layout.contiguous_axes:
        rows, cols = (_whole(x, *each) for each in ((layout.rows, rows), (layout.cols, cols)))
    for target, work, key in _parts(x, to, layout.dtype, flip, across):
        transfer(s, rows, cols, target, src, work, key)


def _whole(x: Text, along: Axis, count: Val) -> Val:
    """So many as are in whole boxes."""
    size = along[0].extent
    return count if size == REST else x.mul(x.up(count, size), size)


Part = tuple[Access, Work | None, str]  # where elements go, and what is made of them


def _parts(x: Text, to: Access, dtype: DType, flip: int, across: bool) -> Iterator[Part]:
    if dtype in _NIBBLES:
        yield from _pairs(x, to, dtype, across)
    elif dtype in (F32, I32):
        yield to, Work(lambda a: a ^ flip) if flip else None, f"flip {flip}"
    else:
        yield to, Work(lambda a: widened(a, dtype)), "widened"


def _pairs(x: Text, to: Access, dtype: DType, across: bool) -> Iterator[Part]:
    """Both values of each byte, the low nibble first: two f32 as one word of 64 bits, or one copy
    for each of them."""
    nibble = decode(dtype, np.arange(16, dtype=np.uint8))[::2].astype(np.float32)
    codes = np.arange(256)
    low, high = (nibble[each].view(np.uint32) for each in (codes & 15, codes >> 4))
    (run, *panels), (step, *_) = to.layout.cols, to.layout.rows
    if across:
        words = low.astype(np.uint64) | high.astype(np.uint64) << 32
        layout = Strided(U64, axis(step.stride // 2), (run, *panels))
        yield to.with_layout(layout), Work(lambda a: conversions.lookup(a, words)), "pairs"
        return
    doubled = Strided(F32, axis(2 * step.stride), to.layout.cols)
    for n, table in enumerate((low, high)):
        place = Access(doubled, to.layout.at(x, to.pointer, n, 0))
        yield place, Work(_looked_up(table)), f"nibble {n}"


def _looked_up(table: Any) -> Any:
    return lambda a: conversions.lookup(a, table).view(np.float32)


def widened(a: Symbol, dtype: DType) -> Symbol:
    """An element as f32 or i32."""
    if dtype in _BYTES:
        return conversions.convert(a, dtype, F32)
    return lanes.cast(a, np.dtype(np.float32) if dtype.is_float else np.dtype(np.int32))
