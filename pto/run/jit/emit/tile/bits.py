"""Masks of tiles as bits in compiled code: 64 columns are 8 bytes, lowest bit first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.dtypes import U8
from pto.run.jit.border.clock import SCRATCH
from pto.run.jit.border.context import ROOM
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.index import Index, Number
from pto.run.jit.llvm.lanes import BOOL, Symbol
from pto.run.jit.llvm.text import NotNative, Val, vector

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.elements import TileRef
    from pto.run.jit.emit.tile.mover import Mover

_WORD: Final = 64  # bits that are packed at once
_BYTES = vector(_WORD, "i8")


def pack(m: Mover, rows: Any, cols: Any, cell: Any, dst: TileRef, pitch: Any, nbytes: Any) -> None:
    """A byte for each bit in scratch memory first, so that nothing is written before all is read;
    then eight of them in one."""
    x, by_row = m.x, isinstance(nbytes, int) and nbytes == 0
    height, width, bits = m.number(rows), m.number(cols), 8 * dst.type.itemsize
    step = (width + (bits - 1)) // bits * bits if by_row else m.number(pitch)
    total = height * step if by_row else m.number(nbytes) * 8
    if dst.nbytes * 10 > SCRATCH or (not by_row and dst.place.pitch is not None):
        raise NotNative("a mask with gaps, or larger than scratch memory")
    image = m.context(ROOM)
    packed = x.at(image, -(-dst.nbytes * 8 // _WORD) * _WORD + _WORD)
    m.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    filled = x.add(total.value, _WORD)
    x.do(f"call void @llvm.memset.p0.i64(ptr {image}, i8 0, i64 {filled}, i1 false)")

    def line(i: Val) -> None:
        begin = x.mul(i, step.value)

        def put(_: Index, j: Index) -> None:
            found = m.symbol(cell(Index(j.lanes, Number(x, i), 0), j)).astype(np.uint8)
            at = x.at(image, x.add(begin, j.start.value))
            planes.store_lanes(x, m.declare, U8, j.lanes.count, found.name, at, m.mask)

        m.strips(Number(x, i), width, put, [], upright=False)

    planes.loop(x, height.value, 1, line)

    def word(at: Val) -> None:
        found = x.new(f"icmp ne {_BYTES} {x.load(_BYTES, x.at(image, at))}, zeroinitializer")
        value = x.new(f"bitcast {vector(_WORD, 'i1')} {found} to i{_WORD}")
        x.store(f"i{_WORD}", value, x.at(packed, x.over(at, 8)))

    planes.loop(x, total.value, _WORD, word)
    if not by_row:
        planes.copy_bytes(x, m.declare, dst.pointer, packed, m.number(nbytes).value)
        return
    if len(dst.field.cols) > 1 or "cols" not in dst.field.units:
        raise NotNative("rows that do not lie in one piece")
    each = x.over(step.value, 8)

    def row(i: Val) -> None:
        to = x.at(dst.pointer, x.mul(m.offset(dst, Number(x, i), 0).start.value, dst.type.itemsize))
        planes.copy_bytes(x, m.declare, to, x.at(packed, x.mul(i, each)), each)

    planes.loop(x, height.value, 1, row)


def bit(m: Mover, mask: TileRef, i: Index, j: Index) -> Symbol:
    x, count, size = m.x, j.lanes.count, mask.type.itemsize
    if i.step != 0 or j.step != 1 or j.repeat != 1 or j.multiple % count:
        return _single(m, mask, i, j)
    if len(mask.field.cols) > 1 or "cols" not in mask.field.units:
        raise NotNative("rows that do not lie in one piece")
    begin = x.mul(m.offset(mask, i.start, 0).start.value, size)
    at = x.at(mask.pointer, x.add(begin, x.over(j.start.value, 8)))
    word = f"i{count}"
    if m.mask is None:
        found = x.load(word, at)
    else:  # no byte behind the last
        room = x.stack(word)
        x.store(word, 0, room, 8)
        planes.copy_bytes(x, m.declare, room, at, x.up(x.heads[m.mask], 8))
        found = x.load(word, room, 8)
    return j.lanes.symbol(BOOL, x.new(f"bitcast {word} {found} to {vector(count, 'i1')}"))


def _single(m: Mover, mask: TileRef, i: Index, j: Index) -> Symbol:
    """A byte for each lane."""
    nbytes = Index.of(m.offset(mask, i, 0) * mask.type.itemsize + j // 8)
    byte = m.gather(mask, nbytes, U8, m.mask)
    return (byte >> (j % 8).astype(np.uint8)) & np.uint8(1) != np.uint8(0)
