"""Accumulators of L0C out by pointer in compiled code: relu and one rounding, in three layouts.

Scales, slopes and clips are constants; those of a table, combined writes, and saturation that
registers ask for are the reference's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import DType
from pto.core.memory import Space
from pto.isa.meaning.cube import fixpipe
from pto.isa.meaning.cube.quantise import CASTS, Finish, Scale
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.dma import element
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import Native, Place, Word, known
from pto.run.jit.emit.memory.burst import (
    SMALL,
    distinct,
    noted,
    owned,
    plain_writes,
    reach_of,
    words,
)
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.emit.tile.boxes import REST, Digit, Field
from pto.run.jit.emit.tile.copies import Work
from pto.run.jit.emit.tile.move import Arguments, Side
from pto.run.jit.llvm.text import NotNative, Val


def _finish(s: Spot, src: DType, dst: DType) -> tuple[Work | None, str, str]:
    """What becomes of its name, and when: `fixpipe._finish` without parameters."""
    quant, relu = s.case.word("pre_quant_mode"), s.case.word("pre_relu_mode") or "no_relu"
    mode = None if quant in (None, "no_convert") else quant
    family = mode and mode.removesuffix("_vec").removesuffix("_scalar")
    if relu == "vector_relu":
        raise NotNative("slopes of a table")
    slope, clip = (_number(s, name) for name in ("pre_relu", "clip_value"))
    factor = None if family in (None, *CASTS) else _number(s, "pre_quant")
    if src is dst and mode is None and relu == "no_relu" and clip is None:
        return None, "", "true"
    written = s.case.word("sat_mode")
    saturate, keep_nan = (False, False) if written is None else _written(written)
    scale = None if factor is None else Scale.number(factor)
    alpha = np.float32(slope).reshape(1) if relu == "scalar_relu" else None
    finish = Finish(family, scale, relu, alpha, clip, saturate, keep_nan)
    key = f"fixpipe {family} {factor!r} {relu} {slope!r} {clip!r} {saturate} {keep_nan}"
    work = Work(lambda values: finish.apply(values, src, dst))
    return work, key, "true" if written is not None else _keeps_specials(s)


def _number(s: Spot, name: str) -> Any:
    """A scalar operand that is a constant; None where there is none."""
    word = s.operand(name)
    if word is None:
        return None
    found = known(word) if isinstance(word, Word) else None
    if found is None:
        raise NotNative("a scale, slope or clip of a table, or known only when it runs")
    return found


def _written(word: str) -> tuple[bool, bool]:
    return word != "nosat", word == "sat_preserve_nan"


def _keeps_specials(s: Spot) -> str:
    """CTRL as it is before a program touches it."""
    x, one, other = s.x, 1 << registers.KEEP_SPECIALS, 1 << registers.KEEP_NAN
    ctrl = x.load("i64", x.at(s.e.word(context.REGISTERS), register_offset(registers.CTRL)), 8)
    return x.compare("eq", x.new(f"and i64 {ctrl}, {one | other}"), one)


def _optional(s: Spot, name: str, default: Val) -> Val:
    return default if s.op.operand(name) is None else words(s, name)[0]


def _sub_block(s: Spot) -> int:
    """Whose UB it is."""
    mode = s.case.word("dst_mode")
    if mode is None:
        return 0
    found = _number(s, "sub_blockid") if mode == "single" else None
    if found not in (0, 1):
        raise NotNative("a half for each sub-block")
    return int(found)


@emits(fixpipe.MTE_L0C)
def _mte_l0c(s: Spot) -> Sequence[Native]:
    x, source, target = s.x, s.need(Place, "source"), owned(s, "destination", _sub_block(s))
    src, dst = element(s.case, "source"), element(s.case, "destination")
    if s.case.word("atomic_type") is not None or dst.is_packed:
        raise NotNative("a combined write, or packed elements")
    work, key, fine = _finish(s, src, dst)
    if work is None and src.itemsize != dst.itemsize:
        raise NotNative("elements of other widths")
    if getattr(s.case.type("destination"), "space", None) is Space.GM:
        fine = x.both(fine, plain_writes(s))
    m, n, src_stride, dst_stride = words(s, "m", "n", "src_stride", "dst_stride")
    step, count = _optional(s, "loop0_src_stride", 1), _optional(s, "loop3_count", 1)
    src_step, dst_step = (_optional(s, f"loop3_{e}_stride", 0) for e in ("src", "dst"))
    for each in (m, n, src_stride, dst_stride, step, count, src_step, dst_step):
        fine = x.both(fine, x.compare("ult", each, SMALL >> 8))
    for each in (m, n, count):
        fine = x.both(fine, x.compare("ne", each, 0))
    fine = x.both(fine, x.compare("ule", x.mul(m, n), SMALL))
    total = x.mul(x.mul(m, n), count)
    fine = x.both(fine, x.compare("ule", total, burst.MOST_BYTES))
    given, row = Arguments(), FRACTAL_NZ_ROW * src.itemsize
    acc = Field(
        src,
        boxes.line(given.name(x.mul(step, FRACTAL_NZ_ROW))),
        (
            Digit(FRACTAL_NZ_ROW, 1),
            Digit(REST, given.name(x.mul(src_stride, FRACTAL_NZ_ROW))),
        ),
    )
    strips = s.x.up(n, FRACTAL_NZ_ROW)
    steps = [x.mul(each, row) for each in (step, src_stride, src_step)]
    read = reach_of(s, row, (m, strips, count), steps)
    out, width, counts, strides = _out(s, dst, given, m, n, dst_stride)
    again = x.mul(dst_step, dst.itemsize)
    written = reach_of(s, width, (*counts, count), (*strides, again))
    fine = x.both(fine, distinct(s, width, counts, strides))
    fine = x.both(fine, s.e.inside(source.memory, source.address, read))
    fine = x.both(fine, s.e.inside(target.memory, target.address, written))
    names = tuple(given.names)

    def run() -> None:
        repeated = (*counts, count), (*strides, again)
        to = noted(s, target, width, *repeated, written, writes=True)
        from_ = s.pointer(source.memory, source.address)

        def once(i: Val) -> None:
            place = Side(out, x.at(to, x.mul(i, again)))
            values = Side(acc, x.at(from_, x.mul(i, steps[2])), names)
            tile_moves.transfer(s, m, n, place, values, work, key)

        planes.loop(x, count, 1, once)

    planes.either_way(s, fine, run)
    return []


def _out(
    s: Spot, dst: DType, given: Arguments, m: Val, n: Val, stride: Val
) -> tuple[Field, Val, tuple[Val, ...], tuple[Val, ...]]:
    """The field of the destination; its bursts: bytes, counts and strides from inner to outer."""
    x, size, layout = s.x, dst.itemsize, s.case.word("mode") or "nz2nd"
    pitch = x.mul(stride, size)
    if layout != "nz2nz":
        rows, cols = boxes.line(given.name(stride)), boxes.line(1)
        if layout == "nz2dn":
            return Field(dst, cols, rows), x.mul(m, size), (n,), (pitch,)
        return Field(dst, rows, cols), x.mul(n, size), (m,), (pitch,)
    split = _optional(s, "split", 0)
    if not isinstance(split, int):
        raise NotNative("blocks whose width is known only when it runs")
    wide = FRACTAL_NZ_ROW if size == 4 and split == 0 else C0_SIZE_BYTE // size
    field = Field(dst, boxes.line(wide), (Digit(wide, 1), Digit(REST, given.name(stride))))
    row = wide * size
    return field, row, (m, s.x.up(n, wide)), (row, pitch)
