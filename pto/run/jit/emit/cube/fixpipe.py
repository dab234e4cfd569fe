"""Stores of accumulators (L0C) by pointer: relu and one rounding, in three layouts.

Elements share one function if scales and slopes are constants; else `channels.py` handles them by
strips. The reference engine handles saturation selected by registers, packed elements and clips
that are not constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import DType
from pto.core.layout import REST, Mode
from pto.core.memory import Space
from pto.isa.meaning.cube import fixpipe
from pto.isa.meaning.cube.quantise import CASTS, Finish
from pto.isa.meaning.lanes import COMBINE
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.dma import element
from pto.run.jit.emit.cube import channels as channel
from pto.run.jit.emit.memory.burst import (
    SMALL,
    below,
    multiple,
    nonzero,
    noted,
    owner,
    plain_writes,
    words,
)
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.emit.tile.copies import Copier, Work
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import expect, unsupported_if
from pto.run.jit.ir.strided import Access, Strided, distinct, span
from pto.run.jit.llvm.lanes import Lanes, Symbol
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of
from pto.run.jit.runtime.values import Lowered, PointerDesc, ScalarValue, known


@dataclass(frozen=True, slots=True)
class _Outlet:
    """The function applied to elements; None: they are copied."""

    work: Work | None
    key: str
    guard: Condition


def _outlet(s: OpContext, src: DType, dst: DType, channels: Val) -> _Outlet:
    quant, relu = s.case.word("pre_quant_mode"), s.case.word("pre_relu_mode") or "no_relu"
    mode = None if quant in (None, "no_convert") else quant
    family = mode and mode.removesuffix("_vec").removesuffix("_scalar")
    clip, written = _clip(s), s.case.word("sat_mode")
    saturate, keep_nan = (False, False) if written is None else _written(written)
    guard = TRUE if written is not None else _keeps_specials(s)
    scale = None
    slope = None
    payload, given = s.operand("pre_quant"), s.operand("pre_relu")
    if family not in (None, *CASTS) and payload is not None:
        scale = channel.scale_of(s, payload, channels)
        guard = guard & scale.guard
    if relu in ("vector_relu", "scalar_relu") and given is not None:
        slope = channel.slope_of(s, given, channels)
        guard = guard & slope.guard

    def finish(e: Lanes, col: Val, mask: str | None) -> Finish:
        by = None if scale is None else scale.of(e, col, mask)
        alpha = None if slope is None else slope.of(e, col, mask)
        return Finish(family, by, relu, alpha, clip, saturate, keep_nan)

    numbers = [_constant(each) for each in (payload, given)]
    by_column = (scale is not None and numbers[0] is None) or (
        slope is not None and numbers[1] is None
    )
    same = src is dst and mode is None and relu == "no_relu" and clip is None
    key = f"fixpipe {family} {numbers!r} {relu} {clip!r} {saturate} {keep_nan}"

    def apply(values: Symbol, col: Val = 0, mask: str | None = None) -> Any:
        return finish(values.lanes, col, mask).apply(values, src, dst)  # pyright: ignore

    work = None if same else Work(apply, by_column=by_column)
    return _Outlet(work, key, TRUE if same else guard)


def _constant(word: Lowered | None) -> Any:
    return known(word) if isinstance(word, ScalarValue) else None


def _clip(s: OpContext) -> Any:
    word = s.operand("clip_value")
    found = _constant(word)
    unsupported_if(word is not None and found is None, "a clip known only when it runs")
    return found


def _written(word: str) -> tuple[bool, bool]:
    return word != "nosat", word == "sat_preserve_nan"


def _keeps_specials(s: OpContext) -> Condition:
    """True if CTRL has its initial value."""
    one, other = 1 << registers.KEEP_SPECIALS, 1 << registers.KEEP_NAN
    return s.x.compare("eq", s.control(one | other), one)


def _optional(s: OpContext, name: str, default: Val) -> Val:
    return default if s.op.operand(name) is None else words(s, name)[0]


_UNLESS = "CTRL changes what is written, rows overlap, or a number is out of range"


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of the tile that one buffer gets: its rows and columns from `row` and `col` on."""

    place: PointerDesc
    rows: Val
    cols: Val
    row: Val = 0
    col: Val = 0


def _owned(s: OpContext, sub: int | None) -> PointerDesc:
    """The destination in the buffer of the agent that owns it."""
    place, space = (
        s.need(PointerDesc, "destination"),
        getattr(s.case.type("destination"), "space", None),
    )
    return PointerDesc((owner(s, place.memory, space, sub), place.address), place.elem)


def _parts(s: OpContext, m: Val, n: Val) -> tuple[list[_Part], Condition]:
    """The whole tile, or a half for each sub-block; and the condition."""
    x = s.x
    mode = s.case.word("dst_mode")
    subs = (0, 1)
    if mode in (None, "single"):
        sub = 0 if mode is None else _constant(s.operand("sub_blockid"))
        return [_Part(_owned(s, sub), m, n)], TRUE
    places = [_owned(s, sub) for sub in subs]
    if mode == "split_m":
        half = x.over(m, 2)
        return [
            _Part(place, half, n, x.mul(half, sub)) for sub, place in enumerate(places)
        ], multiple(s, m, 2)
    half = x.over(n, 2)
    parts = [_Part(place, m, half, 0, x.mul(half, sub)) for sub, place in enumerate(places)]
    return parts, multiple(s, n, 2 * FRACTAL_NZ_ROW)


def _combined(s: OpContext, dst: DType) -> Callable[[Any, Any], Any] | None:
    how = fixpipe.written_atomic(s.case)
    unsupported_if(how is not None and how[0] is not dst, "a combination in another type")
    return None if how is None else COMBINE[how[1]]


@emits(fixpipe.MTE_L0C)
def _mte_l0c(s: OpContext) -> Sequence[Lowered]:
    made = _Move(s)
    guard = made.in_range()
    writers: list[Callable[[], None]] = []
    for part in made.parts:
        possible, write = made.writer(part)
        guard = guard & possible
        writers.append(write)

    def run() -> None:
        for write in writers:
            write()

    masked.guarded(s, guard, run, _UNLESS)
    return []


class _Move:
    """The operands of one instruction and their conditions."""

    def __init__(self, s: OpContext) -> None:
        x = s.x
        self.s, self.source = s, s.need(PointerDesc, "source")
        self.src, self.dst = element(s.case, "source"), element(s.case, "destination")
        unsupported_if(self.dst.is_packed, "packed elements")
        self.m, self.n, self.pitch, self.stride = words(s, "m", "n", "src_stride", "dst_stride")
        self.step, self.count = (
            _optional(s, name, 1) for name in ("loop0_src_stride", "loop3_count")
        )
        self.src_step, self.dst_step = (
            _optional(s, f"loop3_{each}_stride", 0) for each in ("src", "dst")
        )
        self.combine, self.outlet = _combined(s, self.dst), _outlet(s, self.src, self.dst, self.n)
        self.parts, self.halved = _parts(s, self.m, self.n)
        row = FRACTAL_NZ_ROW * self.src.itemsize
        self.steps = [x.mul(each, row) for each in (self.step, self.pitch, self.src_step)]
        self.again = x.mul(self.dst_step, self.dst.itemsize)

    def in_range(self) -> Condition:
        s = self.s
        x = self.s.x
        m = self.m
        n = self.n
        count = self.count
        guard = self.halved & self.outlet.guard
        if getattr(s.case.type("destination"), "space", None) is Space.GM and not self.combine:
            guard = guard & plain_writes(s)
        numbers = (self.pitch, self.stride, self.step, self.src_step, self.dst_step)
        small = below(s, SMALL >> 8, m, n, count, *numbers)
        few = x.compare("ule", x.mul(m, n), SMALL)
        total = x.compare("ule", x.mul(x.mul(m, n), count), burst.MOST_BYTES)
        row = FRACTAL_NZ_ROW * self.src.itemsize
        read = span(x, row, (m, x.up(n, FRACTAL_NZ_ROW), count), self.steps)
        inside = s.e.inside(self.source.memory, self.source.address, read)
        return all_of(guard, small, nonzero(s, m, n, count), few, total, inside)

    def writer(self, part: _Part) -> tuple[Condition, Callable[[], None]]:
        """The condition of writing a part, and a function that emits the write."""
        s, x = self.s, self.s.x
        rows = strided.axis(x.mul(self.step, FRACTAL_NZ_ROW))
        strips = Mode(REST, x.mul(self.pitch, FRACTAL_NZ_ROW))
        acc = Strided(self.src, rows, (Mode(FRACTAL_NZ_ROW, 1), strips))
        out, width, counts, strides = _out(s, self.dst, part.rows, part.cols, self.stride)
        repeated = (*counts, self.count), (*strides, self.again)
        written = span(x, width, *repeated)
        guard = all_of(
            distinct(x, width, counts, strides),
            s.e.inside(part.place.memory, part.place.address, written),
        )

        def write() -> None:
            to = noted(s, part.place, width, *repeated, written, writes=True)
            skipped = x.mul(x.over(part.col, FRACTAL_NZ_ROW), self.steps[1])
            skipped = x.add(x.mul(part.row, self.steps[0]), skipped)
            from_ = x.at(s.pointer(self.source.memory, self.source.address), skipped)

            def once(i: Val) -> None:
                place, values = x.at(to, x.mul(i, self.again)), x.at(from_, x.mul(i, self.steps[2]))
                work, key = self._work(part)
                if work is not None and work.by_column:  # tables have addresses of this function
                    copier = Copier(x, work)
                    copier.copy(out, acc, part.rows, part.cols, place, values)
                    return
                sides = Access(out, place), Access(acc, values)
                tile_moves.transfer(s, part.rows, part.cols, *sides, work, key)

            x.loop(self.count, 1, once)

        return guard, write

    def _work(self, part: _Part) -> tuple[Work | None, str]:
        work = self.outlet.work
        key = self.outlet.key
        x = self.s.x
        if work is not None and work.by_column:
            fn = work.fn
            work = replace(work, fn=lambda v, col, mask: fn(v, x.add(part.col, col), mask))
        if self.combine is None:
            return work, key
        both = tile_moves.combined(self.combine, work, self.dst)
        return both, f"{key} {self.s.case.word('atomic_op')}"


def _out(
    s: OpContext, dst: DType, m: Val, n: Val, stride: Val
) -> tuple[Strided, Val, tuple[Val, ...], tuple[Val, ...]]:
    """The layout of the destination; its bursts: bytes, counts and strides from inner to outer."""
    x = s.x
    size = dst.itemsize
    layout = s.case.word("mode") or "nz2nd"
    pitch = x.mul(stride, size)
    if layout != "nz2nz":
        rows, cols = strided.axis(stride), strided.axis(1)
        if layout == "nz2dn":
            return Strided(dst, cols, rows), x.mul(m, size), (n,), (pitch,)
        return Strided(dst, rows, cols), x.mul(n, size), (m,), (pitch,)
    why = "blocks whose width is known only when it runs"
    split = expect(_optional(s, "split", 0), int, why)
    wide = FRACTAL_NZ_ROW if size == 4 and split == 0 else C0_SIZE_BYTE // size
    layout = Strided(dst, strided.axis(wide), (Mode(wide, 1), Mode(REST, stride)))
    row = wide * size
    return layout, row, (m, s.x.up(n, wide)), (row, pitch)
