"""DMA in compiled code: global memory and UB, within UB, UB and L1; loop registers.

Padding of odd widths and combined writes are the reference's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.memory import Space
from pto.isa.meaning.memory import dma
from pto.run.jit.border.values import Native, Place, Word
from pto.run.jit.emit.memory.burst import (
    SMALL,
    Loop,
    Transfer,
    aligned,
    alignment,
    loops_of,
    move_bursts,
    multiple,
    owned,
    plain_writes,
    register_loops,
    words,
)
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes, copies
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.emit.tile.boxes import Field
from pto.run.jit.emit.tile.move import Arguments, Side
from pto.run.jit.llvm.text import NotNative, Val

# ---- global memory and UB


@emits(dma.MTE_GM_UB)
def _mte_gm_ub(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    loops, (width,) = loops_of(s), words(s, "len_burst")
    fine = aligned(s, target.address, alignment(s), [(p.count, p.destination) for p in loops])
    if s.op.operand("pad_value") is None:
        move_bursts(s, Transfer(source, target, width, loops), fine)
    else:
        _padded(s, Transfer(source, target, width, loops), fine)
    return []


def _padded(s: Spot, move: Transfer, fine: str) -> None:
    """Rows of pad payload, pad and pad to the next block."""
    value, kind, x = s.need(Word, "pad_value"), dma.element(s.case, "destination"), s.x
    if value.type.dtype is None or value.type.dtype.itemsize != kind.itemsize:
        raise NotNative("a pad of another width")
    size = kind.itemsize
    left, right = (
        0 if s.op.operand(name) is None else words(s, name)[0]
        for name in ("left_padding_count", "right_padding_count")
    )
    for each in (left, right):
        fine = x.both(fine, x.compare("ult", each, SMALL))
    fine = x.both(fine, multiple(s, move.width, size))
    before = x.mul(left, size)
    used = x.add(x.add(before, move.width), x.mul(right, size))
    row = x.mul(x.up(used, BLOCK_BYTE_SIZE), BLOCK_BYTE_SIZE)
    item = _item(s, value, kind)

    def pads(dst: Side, src: Side, inner: Loop) -> None:
        first, last, end = (
            left,
            s.x.over(x.add(before, move.width), size),
            s.x.over(row, size),
        )
        given = Arguments(6)
        step = given.name(s.x.over(inner.destination, size))
        field = Field(kind, boxes.line(step), boxes.line(1))
        side = Side(field, dst.pointer, tuple(given.names))
        if first != 0:
            tile_moves.fill(s, side, item, (0, inner.count), (0, first))
        tile_moves.fill(s, side, item, (0, inner.count), (last, end))
        payload = Side(dst.field, x.at(dst.pointer, before))
        tile_moves.transfer(s, inner.count, move.width, payload, src)

    move_bursts(
        s,
        Transfer(move.source, move.target, move.width, move.loops, x.sub(row, move.width)),
        fine,
        pads=pads,
    )


def _item(s: Spot, value: Word, kind: DType) -> Val:
    """The bits of a scalar as an element of a type as wide."""
    want, have = copies.element(kind), value.types[0]
    if want == have:
        return value.name
    return s.x.new(f"bitcast {have} {value.name} to {want}")


@emits(dma.MTE_UB_GM)
def _mte_ub_gm(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    loops, (width,) = loops_of(s), words(s, "len_burst")
    fine = aligned(s, source.address, alignment(s), [(p.count, p.source) for p in loops])
    move_bursts(s, Transfer(source, target, width, loops), s.x.both(fine, plain_writes(s)))
    return []


@emits(dma.COPY_GM_TO_UBUF)
def _copy_gm_to_ubuf(s: Spot) -> Sequence[Native]:
    x, select = s.x, s.need(Word, "data_select_bit")
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    names = ("n_burst", "len_burst", "left_padding_count", "right_padding_count")
    count, width, left, right = words(s, *names)
    loops = [Loop(count, *words(s, "gm_stride", "ub_stride")), *register_loops(s, "outtoub")]
    fine = aligned(s, target.address, alignment(s), [(p.count, p.destination) for p in loops])
    plain = {"true": "false", "false": "true"}.get(select.name) or x.new(f"xor i1 {select.name}, 1")
    for each in (left, right):
        plain = x.both(plain, x.compare("eq", each, 0))
    move_bursts(s, Transfer(source, target, width, loops), x.both(fine, plain))
    return []


@emits(dma.COPY_UBUF_TO_GM)
def _copy_ubuf_to_gm(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    count, width = words(s, "n_burst", "len_burst")
    strides = words(s, "burst_src_stride", "burst_dst_stride")
    loops = [Loop(count, *strides), *register_loops(s, "ubtoout")]
    fine = aligned(s, source.address, alignment(s), [(p.count, p.source) for p in loops])
    move_bursts(s, Transfer(source, target, width, loops), s.x.both(fine, plain_writes(s)))
    return []


# ---- between local buffers


def _local(s: Spot, gaps: Sequence[Val], loops: Sequence[Loop] = (), sub: int = 0) -> None:
    """Blocks of 32 bytes; `gaps` are the count, the length and the two gaps."""
    x, source, target = s.x, owned(s, "source"), owned(s, "destination", sub)
    fine = x.both(*(aligned(s, p.address, alignment(s)) for p in (source, target)))
    for each in gaps:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 6))
    count, length, *between = gaps
    width = x.mul(length, BLOCK_BYTE_SIZE)
    strides = [x.mul(x.add(length, gap), BLOCK_BYTE_SIZE) for gap in between]
    move_bursts(s, Transfer(source, target, width, [Loop(count, *strides), *loops]), fine)


_BURSTS = ("n_burst", "len_burst", "src_stride", "dst_stride")


@emits(dma.MTE_LOCAL)
def _mte_local(s: Spot) -> Sequence[Native]:
    _local(s, words(s, *_BURSTS))
    return []


@emits(dma.COPY_LOCAL)
def _copy_local(s: Spot) -> Sequence[Native]:
    """sid is a hint but where the cube, or who is all of a core, writes UB."""
    (sub,) = words(s, "sid")
    to_ub = getattr(s.case.type("destination"), "space", None) is Space.UB
    if s.e.compiler.side == "vector" or not to_ub:
        sub = 0
    if sub not in (0, 1):
        raise NotNative("a sub-block known only when it runs")
    _local(s, words(s, *_BURSTS), sub=int(sub))
    return []


@emits(dma.MTE_L1_UB)
def _mte_l1_ub(s: Spot) -> Sequence[Native]:
    first, *loops = loops_of(s)
    (length,) = words(s, "len_burst")
    _local(s, (first.count, length, first.source, first.destination), loops)
    return []
