"""Loads into L1, L0A and L0B by pointer."""

from __future__ import annotations

from typing import Any

from pto.core.constants import BLOCK_BYTE_SIZE, C0_SIZE_BYTE, CUBE_BLOCK_SIZE, FRACTAL_NZ_ROW
from pto.core.dtypes import F32, U8, U16, U32, DType
from pto.core.layout import REST, Mode
from pto.core.memory import Space
from pto.isa.meaning import lanes
from pto.isa.meaning.cube import factors as operands
from pto.isa.meaning.cube import load as cube
from pto.isa.meaning.memory.burst import MOST_BYTES, BurstLoop
from pto.run.jit.emit.handle.view import PointerAt, emits_in
from pto.run.jit.emit.memory.burst import SMALL, below, multiple, nonzero, noted
from pto.run.jit.emit.memory.words import Words
from pto.run.jit.emit.operation import WORDS, OpContext
from pto.run.jit.emit.tile import copies, masked
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.ir import strided
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.ir.strided import Access, Strided, distinct, span
from pto.run.jit.llvm import text
from pto.run.jit.llvm.index import Count, Number
from pto.run.jit.llvm.value import TRUE, Condition, Val, all_of
from pto.run.jit.runtime import context
from pto.run.jit.runtime.values import SPACE_NUMBERS, PointerDesc

_UNSIGNED = {kind.itemsize: kind for kind in (U8, U16, U32)}


class Loads(Words):
    """The words of `cube/load.py` and `cube/factors.py`."""

    def fractals(
        self, src: PointerAt, dst: PointerAt, kind: DType, shape: cube.Fractals, turned: bool
    ) -> None:
        small = self.fact(shape.small)
        unsupported_if(kind.is_packed or small.is_true, "packed channels")
        self.guard = self.guard & ~small
        n, d, groups, inner, outer = (
            self.number(v).value for v in (shape.n, shape.d, shape.groups, shape.inner, shape.outer)
        )
        steps = [self.number(v).value for v in (shape.loop2, shape.loop3, shape.loop4)]
        s = self.s
        x = self.x
        guard = self.guard
        source = src.place
        target = dst.place
        size, wide = kind.itemsize, C0_SIZE_BYTE // kind.itemsize
        small = below(s, SMALL >> 6, n, d, groups, inner, outer, *steps)
        guard = all_of(guard, small, nonzero(s, n, d, groups), multiple(s, inner, size))
        whole = x.compare("eq", groups, 1) | multiple(s, outer, size)
        guard = guard & whole & _not_too_many(s, groups, n, d)
        lines, line = (d, x.mul(n, size)) if turned else (n, x.mul(d, size))
        strips = x.up(d, wide)
        down, across, apart = (x.mul(step, C0_SIZE_BYTE) for step in steps)
        read = span(x, line, (lines, groups), (inner, outer))
        counts, strides = (n, strips, groups), (down, across, apart)
        written = span(x, C0_SIZE_BYTE, counts, strides)
        guard = all_of(
            guard,
            distinct(x, C0_SIZE_BYTE, counts, strides),
            s.e.inside(source.memory, source.address, read),
            s.e.inside(target.memory, target.address, written),
        )

        def run() -> None:
            step = x.over(inner, size)
            more = x.over(outer, size)
            pitch = x.mul(steps[1], wide)
            row, col = (1, step) if turned else (step, 1)
            matrix = Strided(
                kind, strided.coalesced([Mode(n, row), Mode(groups, more)]), strided.axis(col)
            )
            down = strided.coalesced(
                [Mode(n, x.mul(steps[0], wide)), Mode(groups, x.over(apart, size))]
            )
            fractal = Strided(kind, down, (Mode(wide, 1), Mode(REST, pitch)))
            first = noted(s, source, line, (lines, groups), (inner, outer), read, writes=False)
            to, rows = Access(fractal, s.pointer(target.memory, target.address)), x.mul(n, groups)
            tile_moves.transfer(s, rows, d, to, Access(matrix, first))
            if not isinstance(d, int) or int(d) % wide:  # columns of the last fractals
                zero = tile_moves.bits_item(0, text.element(kind))
                tile_moves.fill(s, to, zero, (0, rows), (d, x.mul(strips, wide)))

        masked.guarded(s, guard, run, "packed channels, overlapping fractals or too many bytes")

    def turned(
        self, source: PointerAt, dst: PointerAt, kind: DType, at: operands.FractalWindow
    ) -> None:
        """Strips of C0 columns, in the source and transposed."""
        unsupported_if(kind.is_packed, "packed elements")
        s, wide = self.s, C0_SIZE_BYTE // kind.itemsize
        strips, down = self.number(at.cols), self.number(at.rows) * FRACTAL_NZ_ROW
        pitches = [self.number(n) * CUBE_BLOCK_SIZE for n in (at.src_stride, at.dst_stride)]
        width, lines = strips * (wide * C0_SIZE_BYTE), down // wide
        guard = self.guard & (down % wide == 0) & (strips > 0) & (down > 0)
        guard = guard & ((lines == 1) | (pitches[1] >= width))
        for place, count, pitch, nbytes in (
            (source, strips, pitches[0], down * C0_SIZE_BYTE),
            (dst, lines, pitches[1], width),
        ):
            reach = (count - 1) * pitch + nbytes
            inside = s.e.inside(place.memory, place.address.value, reach.value)
            guard = guard & inside

        def run() -> None:
            across = [(pitch // kind.itemsize).value for pitch in pitches]
            matrix, other = (
                Strided(kind, strided.axis(wide), (Mode(wide, 1), Mode(REST, n))) for n in across
            )
            from_ = Access(matrix.swapped, s.pointer(source.memory, source.address.value))
            to = Access(other, s.pointer(dst.memory, dst.address.value))
            tile_moves.transfer(s, (strips * wide).value, down.value, to, from_)

        masked.guarded(s, guard, run, "a number is out of range")

    def widened(
        self,
        src: PointerAt,
        dst: PointerAt,
        width: Count,
        loop: BurstLoop,
        kind: DType,
        widen: bool,
    ) -> None:
        x = self.x
        slot = F32 if widen else U32
        count = self.number(width)

        def slots(to: Access, from_: Access, rows: Val) -> None:
            target = Access(to.layout.in_items(x, slot), to.pointer)
            values = Access(from_.layout.in_items(x, kind), from_.pointer)
            work, cols = copies.Work(lambda v: _slots(v, kind, widen)), count // kind.itemsize
            tile_moves.transfer(self.s, rows, cols.value, target, values, work, f"bias {widen}")

        self.move_padded(src, dst, count, [loop], count, slots)

    def parameters(self, pointer: PointerAt) -> PointerAt:
        place, guard = segment(self.s, pointer.place)
        self.guard = self.guard & guard
        return PointerAt(place.memory, Number(self.x, place.address), place.elem, None)

    def scales_at(self, tile: PointerAt) -> PointerAt:
        place = _scales_beside(self.s, tile.space, tile.place)
        return PointerAt(place.memory, Number(self.x, place.address), None, None)

    def filled(
        self, dst: PointerAt, value: Any, size: int, times: Any, blocks: Any, gap: Any
    ) -> None:
        s = self.s
        x = self.x
        guard = self.guard
        word, times, blocks, gap = (self.number(n).value for n in (value, times, blocks, gap))
        small = below(s, SMALL >> 6, dst.address.value, times, blocks, gap)
        step = x.mul(x.add(blocks, gap), BLOCK_BYTE_SIZE)
        nbytes = x.add(x.mul(x.sub(times, 1), step), x.mul(blocks, BLOCK_BYTE_SIZE))
        none = x.compare("eq", x.mul(times, blocks), 0)
        inside = s.e.inside(dst.memory, dst.address.value, nbytes)
        guard = guard & small & (none | inside)

        def fill() -> None:
            kind, item = _UNSIGNED[size], x.new(f"trunc i64 {word} to i{8 * size}")
            layout = strided.row_major(kind, x.over(step, size))
            to, cols = s.pointer(dst.memory, dst.address.value), BLOCK_BYTE_SIZE // size
            tile_moves.fill(s, Access(layout, to), item, (0, times), (0, x.mul(blocks, cols)))

        masked.guarded(s, guard, fill, "a number is out of range, or not aligned")


def _not_too_many(s: OpContext, groups: Val, n: Val, d: Val) -> Condition:
    """True if the bytes of a move can be counted in 64 bits."""
    x = s.x
    some = x.mul(groups, n)
    guard = x.compare("ult", some, SMALL)
    moved = x.mul(some, x.add(d, C0_SIZE_BYTE))
    return guard & x.compare("ule", moved, MOST_BYTES)


def _slots(values: Any, kind: DType, widen: bool) -> Any:
    return lanes.convert(values, kind, F32) if widen else values.view("u2").astype("u4")


def scales_beside(s: OpContext, name: str, target: PointerDesc) -> PointerDesc:
    """Where the scales lie beside the operand buffer that a pointer names."""
    return _scales_beside(s, getattr(s.case.type(name), "space", None), target)


def _scales_beside(s: OpContext, space: Space | None, target: PointerDesc) -> PointerDesc:
    scales = None if space is None else operands.SCALES.get(space)
    where = certain(scales, Space)
    address = s.x.new(f"lshr i64 {target.address}, {operands.SCALE_SHIFT}")
    return PointerDesc((SPACE_NUMBERS[where], address), None)


def segment(s: OpContext, place: PointerDesc) -> tuple[PointerDesc, Condition]:
    """The memory of a fixpipe address, and the condition for it. The reference engine handles
    slopes at an address that is not constant."""
    address = place.address
    if not isinstance(address, int) or not address & cube.SEGMENT:
        return place, s.x.compare("ult", address, cube.SEGMENT)
    needs, size = s.e.unit.needs, s.case.profile.buffers[Space.FIXPIPE.value]
    needs.read_unwritten.add(context.SLOPES)
    needs.spans.add((context.SLOPES, 0, size))
    return PointerDesc((context.SLOPES, address & (cube.SEGMENT - 1)), place.elem), TRUE


WORDS[cube.Into] = WORDS[operands.OperandLoads] = emits_in(Loads)
