"""DMA: bursts between global memory and UB, within UB, and between UB and L1.

Units are those of micro-instruction manual. Hints (sid of a store, l2) have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.burst import BurstLoop
from pto.isa.meaning.memory.words import Bursts, bursts
from pto.isa.meaning.tile.mover import Mover
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def element(case: Case, name: str) -> DType:
    """The element type of a pointer or memref operand."""
    elem = case.elem(name)
    if elem is None or elem.dtype is None:
        raise fail("PTO-T160", f"{case.row.name}: {name} has no element type")
    return elem.dtype


def listed(
    count: int,
    src: int,
    dst: int,
    counts: Sequence[int],
    sources: Sequence[int],
    targets: Sequence[int],
) -> list[BurstLoop]:
    """nburst and the loops around it, from inner to outer."""
    return [BurstLoop(count, src, dst), *map(BurstLoop, counts, sources, targets)]


def register_loops(x: Bursts, way: str) -> list[BurstLoop]:
    """The loops that registers define around a low-level copy: loop1 inside, loop2 outside."""
    counts = [x.get(f"{registers.LOOP_SIZE} {way}", n) for n in range(2)]
    strides = [
        [x.get(f"{name} {way}", n) for n in range(2)]
        for name in (registers.LOOP1_STRIDE, registers.LOOP2_STRIDE)
    ]
    return [BurstLoop(count, *pair) for count, pair in zip(counts, strides, strict=True)]


# ---- global memory to UB


def _mte_gm_ub(case: Case) -> Callable[..., None]:
    """Copy bursts of global memory to rows of UB, with padding if the instruction has it."""
    kind, pad_type = element(case, "destination"), case.elem("pad_value")

    def run(x: Bursts, src: Pointer, dst: Pointer, l2: int, *operands: Any) -> None:
        width, count, src_stride, dst_stride, *groups, value, left, right = operands
        loops = listed(count, src_stride, dst_stride, *groups)
        x.aligned(dst, loops)
        if value is None or pad_type is None:
            x.move(src, dst, width, loops)
            return
        beside = x.number(left), x.number(right)
        x.padded(src, dst, width, loops, (x.bits(value, pad_type), kind), beside)

    return run


def _copy_gm_to_ubuf(case: Case) -> Callable[..., None]:
    kind = element(case, "destination")

    def run(x: Bursts, src: Pointer, dst: Pointer, sid: int, *operands: Any) -> None:
        count, width, left, right, select, _l2, gm_stride, ub_stride = operands
        loops = [BurstLoop(count, gm_stride, ub_stride), *register_loops(x, "outtoub")]
        x.aligned(dst, loops)

        def pad() -> None:
            bits = x.get(registers.MOV_PAD)
            x.padded(src, dst, width, loops, (bits, kind), (left, right))

        def plain() -> None:
            x.require(
                (left == 0) & (right == 0),
                lambda: fail(
                    "PTO-S161",
                    f"'{x.name}' op pads {left} and {right} elements with data_select_bit off: the "
                    "ISA does not define the padding value",
                    help="set the bit and the value with pto.set_mov_pad_val, or pad nothing",
                ),
            )
            x.move(src, dst, width, loops)

        x.when(select, pad, plain)

    return run


# ---- UB to global memory


def _mte_ub_gm(x: Bursts, src: Pointer, dst: Pointer, width: int, *operands: Any) -> None:
    loops = listed(*operands[:3], *operands[4:])  # between them, a hint to the cache
    x.aligned(src, burst.turned(loops))
    x.write(src, dst, width, loops)


def _copy_ubuf_to_gm(x: Bursts, src: Pointer, dst: Pointer, sid: int, *operands: int) -> None:
    """Copy UB to global memory; the destination stride precedes the source stride."""
    count, width, _reserved, dst_stride, src_stride = operands
    loops = [BurstLoop(count, src_stride, dst_stride), *register_loops(x, "ubtoout")]
    x.aligned(src, burst.turned(loops))
    x.write(src, dst, width, loops)


# ---- between local buffers, in blocks with gaps


def gapped(
    x: Bursts, count: int, length: int, src_gap: int, dst_gap: int, unit: int
) -> tuple[int, BurstLoop]:
    """The bytes of a burst, and the loop over bursts with gaps between them."""
    x.counts("a length, count or gap", count, length, src_gap, dst_gap)
    return length * unit, BurstLoop(count, (length + src_gap) * unit, (length + dst_gap) * unit)


def _local(
    x: Bursts, src: Pointer, dst: Pointer, sub: int, gaps: Sequence[int], *loops: BurstLoop
) -> None:
    """Copy blocks of 32 bytes; `gaps` are the count, the length and the two gaps."""
    source, target = x.owned(src), x.owned(dst, sub)
    x.aligned(source)
    x.aligned(target)
    count, length, src_gap, dst_gap = gaps
    width, loop = gapped(x, count, length, src_gap, dst_gap, BLOCK_BYTE_SIZE)
    x.move(source, target, width, [loop, *loops])


def _copy_local(x: Bursts, src: Pointer, dst: Pointer, sid: int, *gaps: int) -> None:
    """Copy between local buffers.

    sid selects the vector sub-block if the cube writes UB, else it is a hint.
    """
    _local(x, src, dst, sid, gaps)


def _mte_l1_ub(x: Bursts, src: Pointer, dst: Pointer, length: int, *operands: Any) -> None:
    """Copy 32-byte units with gaps; the outer loops have strides in bytes."""
    count, src_gap, dst_gap, *groups = operands
    _local(x, src, dst, 0, (count, length, src_gap, dst_gap), *map(BurstLoop, *groups))


MTE_GM_UB = bursts(_mte_gm_ub)
MTE_UB_GM = bursts(lambda case: _mte_ub_gm)
COPY_GM_TO_UBUF = bursts(_copy_gm_to_ubuf)
COPY_UBUF_TO_GM = bursts(lambda case: _copy_ubuf_to_gm)
MTE_LOCAL = bursts(lambda case: lambda x, src, dst, *gaps: _local(x, src, dst, 0, gaps))
COPY_LOCAL = bursts(lambda case: _copy_local)
MTE_L1_UB = bursts(lambda case: _mte_l1_ub)

# ---- configuration registers


def _put(register: str, words: Callable[..., Sequence[int]]) -> Move:
    """Set a register to the words that `words` computes from the operands."""

    def run(x: Mover, *operands: Any) -> None:
        x.put(register, *words(*map(x.number, operands)))

    return Move(lambda case: run)


def _word(register: str) -> Move:
    return _put(register, lambda value: (value,))


_LOW, _HIGH = (1 << 40) - 1, (1 << 24) - 1  # fields of a word: 40 and 24 bits


def _split_word(register: str) -> Move:
    """One word from its two fields."""
    return _put(register, lambda a, b: (a & _LOW | (b & _HIGH) << 40,))


def _packed_strides(register: str) -> Move:
    """source | destination << 40."""
    return _put(f"{register} outtol1", lambda value: (value & _LOW, value >> 40 & _HIGH))


def _pad_value(case: Case) -> Callable[..., None]:
    type = case.elem("value")
    if not isinstance(type, t.Scalar) or type.dtype is None:
        raise fail("PTO-T160", f"{case.row.name}: value has no element type")
    return lambda x, value: x.put(registers.MOV_PAD, x.bits(value, type))


def _field(shift: int, mask: int, number: int) -> Move:
    """Set bits of CTRL; the others are unchanged."""
    other_bits, bits = ~(mask << shift), number << shift

    def run(x: Mover) -> None:
        x.put(registers.CTRL, x.get(registers.CTRL) & other_bits | bits)

    return Move(lambda case: run)


CONFIG: dict[str, Move] = {
    **{  # first is loop2, second is loop1
        f"set_loop_size_{way}": _put(f"{registers.LOOP_SIZE} {way}", lambda a, b: (b, a))
        for way in ("outtoub", "ubtoout")
    },
    **{
        f"set_{loop}_stride_{way}": _put(f"{loop} stride {way}", lambda a, b: (a, b))
        for way in ("outtoub", "ubtoout")
        for loop in ("loop1", "loop2")
    },
    "set_loop_size_outtol1": _put(  # loop2 << 21 | loop1
        f"{registers.LOOP_SIZE} outtol1", lambda value: (value & 0x1FFFFF, value >> 21 & 0x1FFFFF)
    ),
    "set_loop1_stride_outtol1": _packed_strides(registers.LOOP1_STRIDE),
    "set_loop2_stride_outtol1": _packed_strides(registers.LOOP2_STRIDE),
    "set_pad_val_outtol1": _word(registers.L1_PAD),
    "set_mte2_nz_para": _word(registers.NZ_PARA),
    "set_quant_pre": _word(registers.QUANT_PRE),
    "set_relu_alpha": _word(registers.RELU_ALPHA),
    "set_fix_clip_relu": _word(registers.CLIP_RELU),
    "set_fpc": _word(registers.FPC),
    "set_loop3_para": _split_word(registers.LOOP3),
    "set_channel_para": _split_word(registers.CHANNEL),
    "set_mov_pad_val": Move(_pad_value),
    **{
        f"set_atomic_{name}": _field(registers.ATOMIC_TYPE, 7, number)
        for number, name in enumerate(("none", "f32", "f16", "s16", "s32", "s8", "bf16"))
    },
    **{
        f"set_atomic_{name}": _field(registers.ATOMIC_OP, 3, number)
        for number, name in enumerate(registers.ATOMIC_OPS)
    },
}
