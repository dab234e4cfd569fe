"""Loads into L1 and the tables of the matrix unit: fractal moves, bias, fixpipe parameters.

Loads from L1 to L0A and L0B are in `factors.py`, products in `mad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, C0_SIZE_BYTE
from pto.core.convert import convert
from pto.core.dtypes import BF16, F16, F32, DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.burst import BurstLoop
from pto.isa.meaning.memory.dma import element, gapped, listed, register_loops
from pto.isa.meaning.memory.words import Bursts, bursts
from pto.isa.rules.rule import Case

PARAMETER_UNIT: Final = 64  # bytes: burst unit of the fixpipe buffer
SEGMENT: Final = 1 << 16  # this bit of a fixpipe address selects the relu table
_SMALL_C0: Final = 4  # channels of a packed block

# ---- global memory to L1, bytes as they are


def _mte_gm_l1(x: Bursts, src: Pointer, dst: Pointer, width: int, *operands: Any) -> None:
    target = x.owned(dst)
    x.aligned(target)
    x.move(src, target, width, listed(*operands))


def _copy_gm_to_cbuf(x: Bursts, src: Pointer, dst: Pointer, *operands: int) -> None:
    count, width, src_stride, dst_stride = operands
    target = x.owned(dst)
    x.aligned(target)
    loops = [BurstLoop(count, src_stride, dst_stride), *register_loops(x, "outtol1")]
    x.move(src, target, width, loops)


# ---- global memory to L1, to fractals


@dataclass(frozen=True, slots=True)
class Fractals:
    """n x d elements in each of `groups` matrices.

    Source strides in bytes, destination strides in 32 bytes.
    """

    n: int
    d: int
    inner: int
    outer: int
    groups: int
    loop2: int  # from row to row
    loop3: int  # from one block of C0 columns to the next
    loop4: int  # from matrix to matrix
    small: bool

    def check(self, name: str) -> None:
        strides = (self.inner, self.outer, self.loop2, self.loop3, self.loop4)
        if min(self.n, self.d, self.groups, *strides) < 0:
            raise fail("PTO-S160", f"'{name}' op: a size or stride is negative: {self}")
        if self.small and self.d > _SMALL_C0:
            raise fail(
                "PTO-S162", f"'{name}' op packs {_SMALL_C0} channels per row, but d is {self.d}"
            )
        moved = self.groups * self.n * max(self.d, C0_SIZE_BYTE)
        if moved > burst.MOST_BYTES:
            raise fail("PTO-M162", f"'{name}' op moves {moved} elements, too many")


Written = tuple[tuple[int, ...], tuple[int, ...], int]  # counts, strides and width of bursts


def _blocks(kind: DType, shape: Fractals, values: Any) -> tuple[Any, Written]:
    """Blocks of C0 columns, and the bursts that write them."""
    wide = C0_SIZE_BYTE // kind.itemsize
    count = -(-shape.d // wide)
    padded = np.zeros((shape.groups, shape.n, count * wide), kind.storage)
    padded[..., : shape.d] = values
    blocks = padded.reshape(shape.groups, shape.n, count, wide).transpose(0, 2, 1, 3)
    strides = tuple(C0_SIZE_BYTE * n for n in (shape.loop4, shape.loop3, shape.loop2))
    return blocks, ((shape.groups, count, shape.n), strides, C0_SIZE_BYTE)


def _packed_blocks(kind: DType, shape: Fractals, values: Any) -> tuple[Any, Written]:
    """Small C0: four channels a row, rows in order, zeros up to the next multiple of 32 bytes."""
    wide = C0_SIZE_BYTE // kind.itemsize
    used = shape.n * _SMALL_C0
    padded = np.zeros((shape.groups, -(-used // wide) * wide), kind.storage)
    inner = padded[:, :used].reshape(shape.groups, shape.n, _SMALL_C0)
    inner[..., : shape.d] = values
    padded[:, :used] = inner.reshape(shape.groups, used)
    strides = (shape.loop4 * C0_SIZE_BYTE,)
    return padded, ((shape.groups,), strides, padded.shape[1] * kind.itemsize)


class Into(Bursts):
    """The interface of bursts, extended by the conversions of loads for the matrix unit."""

    __slots__ = ()

    def fractals(
        self, src: Pointer, dst: Pointer, kind: DType, shape: Fractals, turned: bool
    ) -> None:
        """Store v[n,d], from source rows n (nd2nz), or rows d (`turned`, dn2nz), in blocks of C0
        columns.

        Zero the rest.
        """
        shape.check(self.name)
        if not (shape.n and shape.d and shape.groups):
            return
        rows, cols = (shape.d, shape.n) if turned else (shape.n, shape.d)
        counts, strides = (shape.groups, rows), (shape.outer, shape.inner)
        reads = burst.side(self.name, "reads", src, counts, strides, cols * kind.itemsize)
        items = reads.bytes.view(kind.storage)
        values = items.transpose(0, 2, 1) if turned else items
        blocks, written = (_packed_blocks if shape.small else _blocks)(kind, shape, values)
        writes = burst.side(self.name, "writes", dst, *written)
        if not writes.is_distinct:
            raise fail(
                "PTO-M165",
                f"'{self.name}' op writes blocks over each other with strides of {shape.loop2}, "
                f"{shape.loop3} and {shape.loop4} times 32 bytes: the result is not defined",
            )
        writes.bytes.view(kind.storage)[...] = blocks

    def widened(
        self,
        src: Pointer,
        dst: Pointer,
        width: int,
        loop: BurstLoop,
        kind: DType,
        widen: bool,
    ) -> None:
        """Copy bursts of 16-bit values to slots of 32 bits, as f32 (`widen`) or unchanged."""
        both_sides = burst.sides(self.name, src, dst, width, [loop], width)
        if both_sides is None:
            return
        reads, writes = both_sides
        items = reads.bytes.view(kind.numpy)
        slots = convert(items, kind, F32) if widen else items.view(np.uint16).astype(np.uint32)
        burst.put(writes, slots.view(np.uint8))

    def parameters(self, pointer: Pointer) -> Pointer:
        """The pointer for an address of the fixpipe buffer."""
        return parameters(self.core, pointer)

    def filled(
        self, dst: Pointer, value: int, size: int, times: int, blocks: int, gap: int
    ) -> None:
        """Write `blocks` blocks of 32 bytes of one word, repeatedly, `gap` blocks apart."""
        word = np.dtype(f"u{size}")
        run = np.full(blocks * BLOCK_BYTE_SIZE // size, value & ((1 << 8 * size) - 1), word)
        for repeat in range(times):
            start = repeat * (blocks + gap) * BLOCK_BYTE_SIZE
            dst.bytes(start, run.nbytes)[:] = run.view(np.uint8)


def _to_fractals(case: Case, turned: bool) -> Callable[..., None]:
    """fn(words, source, destination, shape)."""
    kind = element(case, "source")

    def run(x: Into, src: Pointer, dst: Pointer, *shape: Any) -> None:
        target = x.owned(dst)
        x.aligned(target)
        x.fractals(src, target, kind, Fractals(*shape), turned)

    return run


def _mte_gm_l1_frac(case: Case) -> Callable[..., None]:
    store = _to_fractals(case, case.word("mode") == "dn2nz")

    def run(x: Into, src: Pointer, dst: Pointer, *operands: Any) -> None:
        *words, _l2, small, outer = operands
        n, d, inner, *pattern = map(x.number, words)
        store(x, src, dst, n, d, inner, x.number(outer), *pattern, small)

    return run


def _multi(turned: bool) -> Do:
    """The same, with the destination pattern in a register."""

    def make(case: Case) -> Callable[..., None]:
        store = _to_fractals(case, turned)

        def run(x: Into, src: Pointer, dst: Pointer, sid: int, *operands: Any) -> None:
            inner, _l2, n, d, outer, small = operands
            word = x.get(registers.NZ_PARA)
            pattern = (word >> 16 * i & 0xFFFF for i in range(4))
            store(x, src, dst, n, d, inner, outer, *pattern, small)

        return run

    return Do(make, words=Into)


MTE_GM_L1 = bursts(lambda case: _mte_gm_l1)
COPY_GM_TO_CBUF = bursts(lambda case: _copy_gm_to_cbuf)
MTE_GM_L1_FRAC = Do(_mte_gm_l1_frac, words=Into)
MULTI_ND2NZ = _multi(turned=False)
MULTI_DN2NZ = _multi(turned=True)

# ---- L1 to the bias table


def _bias(case: Case) -> Callable[..., None]:
    """Copy 32-byte units of source; 16-bit values take 32-bit slots, as f32 or unchanged."""
    kind = element(case, "source")

    def run(x: Into, src: Pointer, dst: Pointer, bursts: Sequence[int], widen: bool) -> None:
        count, length, src_gap, dst_gap = bursts
        width, loop = gapped(x, count, length, src_gap, dst_gap, BLOCK_BYTE_SIZE)
        source = x.owned(src)
        if kind.itemsize != 2:
            x.move(source, dst, width, [loop])
            return
        loop = BurstLoop(count, loop.source, 2 * width + dst_gap * BLOCK_BYTE_SIZE)
        x.widened(source, dst, width, loop, kind, widen)

    return run


def _mte_l1_bt(case: Case) -> Callable[..., None]:
    copy, widen = _bias(case), element(case, "source") in (F16, BF16)
    return lambda x, src, dst, length, count, *gaps: copy(
        x, src, dst, (count, length, *gaps), widen
    )


def _copy_cbuf_to_bt(case: Case) -> Callable[..., None]:
    """conv_control widens f16; bf16 always becomes f32."""
    copy, always = _bias(case), element(case, "source") is BF16
    return lambda x, src, dst, conv, *gaps: copy(x, src, dst, gaps, x.known(conv) or always)


# ---- L1 to the fixpipe buffer


def parameters(core: Machine, pointer: Pointer) -> Pointer:
    """The pointer for a fixpipe address: bit 16 selects the relu table, bits 0 to 15 the byte."""
    memory = pointer.memory
    if pointer.address & SEGMENT:
        memory = core.slopes
    return Pointer(memory, pointer.address & (SEGMENT - 1), pointer.dtype)


def _to_parameters(length_first: bool) -> Do:
    def run(
        x: Into, src: Pointer, dst: Pointer, a: int, b: int, src_gap: int, dst_gap: int
    ) -> None:
        count, length = (b, a) if length_first else (a, b)
        width, loop = gapped(x, count, length, src_gap, dst_gap, PARAMETER_UNIT)
        x.move(x.owned(src), x.parameters(dst), width, [loop])

    return Do(lambda case: run, words=Into)


MTE_L1_BT = Do(_mte_l1_bt, words=Into)
COPY_CBUF_TO_BT = Do(_copy_cbuf_to_bt, words=Into)
MTE_L1_FB = _to_parameters(length_first=True)
COPY_CBUF_TO_FBUF = _to_parameters(length_first=False)


# ---- a pattern in L1


def _raw_fill(case: Case) -> Callable[..., None]:
    size = int(case.word("fill_word_bits") or 32) // 8

    def run(
        x: Into, dst: Pointer, offset: int, value: int, times: int, blocks: int, gap: int
    ) -> None:
        start = x.behind(dst, offset)
        x.require(
            (offset >= 0) & (start.address % BLOCK_BYTE_SIZE == 0),
            lambda: fail(
                "PTO-S141",
                f"the address of a fill must be a multiple of 32 bytes, not {start.address:#x}",
            ),
        )
        x.filled(start, value, size, times, blocks, gap)

    return run


RAW_FILL_L1 = Do(_raw_fill, words=Into)
