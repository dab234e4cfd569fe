"""Masks of tiles as bits in compiled code: 64 columns are 8 bytes, lowest bit first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.dtypes import U8
from pto.run.jit.emit.tile import masked
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import BOOL, unsupported_if
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import vector
from pto.run.jit.llvm.value import Val, prefix_of
from pto.run.jit.runtime.clock import SCRATCH
from pto.run.jit.runtime.context import Word

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.elements import TileRef
    from pto.run.jit.emit.tile.mover import Mover

_WORD: Final = 64  # bits that are packed at once
_BYTES = vector(_WORD, "i8")


def pack(
    m: Mover, rows: Count, cols: Count, cell: Any, dst: TileRef, pitch: Count = 0, nbytes: Count = 0
) -> None:
    """Lanes of a strip as the bits of a word, where rows begin at bytes."""
    x, by_row = m.x, isinstance(nbytes, int) and nbytes == 0
    unfit = dst.place.pitch is not None or dst.nbytes * 10 > SCRATCH
    unsupported_if(not by_row and unfit, "a mask with gaps, or larger than scratch memory")
    height = m.number(rows)
    width = m.number(cols)
    bits = 8 * dst.type.itemsize
    step = (width + (bits - 1)) // bits * bits if by_row else m.number(pitch)
    if not by_row and (step.known is None or step.known % 8):
        _through_bytes(m, height, width, cell, dst, step, m.number(nbytes))
        return
    finish, each = m.apart((dst,)), x.over(step.value, 8)
    full = step.known is not None and step.known == width.known

    def clear(at: str, count: Val) -> None:
        x.do(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {count}, i1 false)")

    whole = m.number(nbytes)
    if not by_row and not (full and whole.known and whole.known == (height * each).known):
        clear(dst.pointer, whole.value)

    def line(i: Val) -> None:
        begin = row_of(m, dst, i) if by_row else x.at(dst.pointer, x.mul(i, each))
        if by_row and not full:
            clear(begin, each)

        def put(_: Index, j: Index) -> None:
            found, count = m.symbol(cell(Index(j.lanes, Number(x, i), 0), j)).name, j.lanes.count
            kind = vector(count, "i1")
            word = f"i{count}"
            at = x.at(begin, x.over(j.start.value, 8))
            if m.mask is None:
                x.store(word, x.new(f"bitcast {kind} {found} to {word}"), at)
                return
            found, room = x.new(f"and {kind} {found}, {m.mask}"), x.stack(word)
            x.store(word, x.new(f"bitcast {kind} {found} to {word}"), room, 8)
            masked.copy_bytes(x, at, room, x.up(prefix_of(m.mask), 8))

        m.strips(Number(x, i), width, put, [], upright=False)

    x.loop(height.value, 1, line)
    finish()


def row_of(m: Mover, tile: TileRef, i: Val) -> str:
    """The address of a row of contiguous elements."""
    contiguous = tile.layout.cols == strided.axis(1)
    unsupported_if(not contiguous, "rows that are not contiguous")
    return tile.layout.at(m.x, tile.pointer, i, 0)


def _through_bytes(
    m: Mover, height: Number, width: Number, cell: Any, dst: TileRef, step: Number, nbytes: Number
) -> None:
    """A byte for each bit in scratch memory first, so that nothing is written before all is read;
    then eight of them in one."""
    x, total = m.x, nbytes * 8
    image = m.context(Word.SCRATCH_BUFFER)
    packed = x.at(image, -(-dst.nbytes * 8 // _WORD) * _WORD + _WORD)
    filled = x.add(total.value, _WORD)
    x.do(f"call void @llvm.memset.p0.i64(ptr {image}, i8 0, i64 {filled}, i1 false)")

    def line(i: Val) -> None:
        begin = x.mul(i, step.value)

        def put(_: Index, j: Index) -> None:
            found = m.symbol(cell(Index(j.lanes, Number(x, i), 0), j)).astype(np.uint8)
            at = x.at(image, x.add(begin, j.start.value))
            masked.store_lanes(x, U8, j.lanes.count, found.name, at, m.mask)

        m.strips(Number(x, i), width, put, [], upright=False)

    x.loop(height.value, 1, line)

    def word(at: Val) -> None:
        found = x.new(f"icmp ne {_BYTES} {x.load(_BYTES, x.at(image, at))}, zeroinitializer")
        value = x.new(f"bitcast {vector(_WORD, 'i1')} {found} to i{_WORD}")
        x.store(f"i{_WORD}", value, x.at(packed, x.over(at, 8)))

    x.loop(total.value, _WORD, word)
    masked.copy_bytes(x, dst.pointer, packed, nbytes.value)


def bit(m: Mover, mask: TileRef, i: Index, j: Index) -> Symbol:
    x, count = m.x, j.lanes.count
    if i.step != 0 or j.step != 1 or j.repeat != 1 or j.multiple % count:
        return _single(m, mask, i, j)
    at = x.at(row_of(m, mask, i.start.value), x.over(j.start.value, 8))
    word = f"i{count}"
    if m.mask is None:
        found = x.load(word, at)
    else:  # no byte behind the last
        room = x.stack(word)
        x.store(word, 0, room, 8)
        masked.copy_bytes(x, room, at, x.up(prefix_of(m.mask), 8))
        found = x.load(word, room, 8)
    return j.lanes.symbol(BOOL, x.new(f"bitcast {word} {found} to {vector(count, 'i1')}"))


def _single(m: Mover, mask: TileRef, i: Index, j: Index) -> Symbol:
    """A byte for each lane."""
    nbytes = Index.of(m.offset(mask, i, 0) * mask.type.itemsize + j // 8)
    byte = m.gather(mask, nbytes, U8, m.mask)
    return (byte >> (j % 8).astype(np.uint8)) & np.uint8(1) != np.uint8(0)
