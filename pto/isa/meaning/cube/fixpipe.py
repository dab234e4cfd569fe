"""The fixpipe: accumulator tiles of L0C to global memory, L1 or UB. `quantise.py` converts values.

A whole transfer, including halves and repetitions, is prepared and checked before anything is
written. Unit flags order pipes and have no effect here; sid and l2 of a store are hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import DType, pack_nibbles
from pto.core.errors import fail
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.isa.meaning.cube.fractal import Array, accumulator, logical
from pto.isa.meaning.cube.load import SEGMENT, parameters
from pto.isa.meaning.cube.quantise import Finish, Scale
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.burst import BurstSide
from pto.isa.meaning.memory.dma import element
from pto.isa.row.enums import ENUMS
from pto.isa.rules.rule import Case

_QUANT_ROW, _RELU_ROW = 128, 64  # bytes: parameters of 16 channels
_ATOMIC_NUMBERS: Final = ENUMS["acc_store_atomic_type"]
Split = str | int  # "split_m", "split_n", or the sub-block that receives the whole tile


@dataclass(frozen=True, slots=True)
class FixpipeShape:
    """m x n elements and their layout in L0C and in the destination."""

    m: int
    n: int
    src_stride: int  # rows of 16 elements, from one block of 16 columns to the next
    dst_stride: int  # destination elements
    layout: str = "nz2nd"
    step: int = 1  # nz2dn: rows of 16 elements from one m to the next
    split: bool = False  # nz2nz of f32: blocks of 8 columns instead of 16
    count: int = 1  # loop3
    src_step: int = 0  # rows of 16 elements
    dst_step: int = 0  # destination elements

    def check(self, name: str) -> None:
        numbers = (self.m, self.n, self.src_stride, self.dst_stride, self.step)
        repeat = (self.count, self.src_step, self.dst_step)
        if min(*numbers, *repeat) < 0:
            raise fail("PTO-S160", f"'{name}' op: a size or stride is negative: {self}")
        if self.m * self.n * self.count > burst.MOST_BYTES:
            raise fail(
                "PTO-M162",
                f"'{name}' op moves {self.m} x {self.n} x {self.count} elements, too many",
            )


Write = tuple[BurstSide, Array]  # bursts that lie inside their memory, and their bytes


@dataclass(frozen=True, slots=True)
class Fixpipe:
    """The facts of one instruction that its types determine."""

    name: str
    src: DType
    dst: DType

    @classmethod
    def of(cls, case: Case) -> Fixpipe:
        return cls(case.row.name, element(case, "source"), element(case, "destination"))

    def run(
        self,
        core: Machine,
        src: Pointer,
        dst: Pointer,
        shape: FixpipeShape,
        finish: Finish,
        half: Split = 0,
        atomic: tuple[DType, str] | None = None,
    ) -> None:
        shape.check(self.name)
        if atomic is not None and atomic[0].itemsize != self.dst.itemsize:
            raise fail(
                "PTO-T163",
                f"'{self.name}' op combines elements of {atomic[0]}, but the destination is"
                f" {self.dst}",
            )
        writes: list[Write] = []
        row = FRACTAL_NZ_ROW * self.src.itemsize
        for n in range(shape.count if shape.m and shape.n else 0):
            start = Pointer(src.memory, src.address + n * shape.src_step * row, self.src)
            items = finish.apply(self._read(start, shape), self.src, self.dst)
            for part, target in self._parts(core, items, dst, half):
                moved = self._offset(n * shape.dst_step)
                target_part = Pointer(target.memory, target.address + moved, self.dst)
                writes.extend(self._placed(part, target_part, shape))
        for side, values in writes:
            if atomic is None:
                burst.put(side, values)
            else:
                burst.update(side, values.view(atomic[0].numpy), *atomic)

    def _read(self, src: Pointer, shape: FixpipeShape) -> Array:
        items = accumulator(
            self.name, "reads", src, self.src, shape.m, shape.n, shape.src_stride, shape.step
        )
        return logical(items, shape.n)

    def _parts(
        self, core: Machine, items: Array, dst: Pointer, half: Split
    ) -> Iterator[tuple[Array, Pointer]]:
        """The tile and its destination; one half for each vector sub-block if the tile is split."""
        if isinstance(half, int):
            yield items, burst.owned(core, dst, half)
            return
        axis = 0 if half == "split_m" else 1
        if items.shape[axis] % 2:
            raise fail(
                "PTO-S166",
                f"'{self.name}' op cannot split {items.shape[axis]} into two equal halves",
            )
        for sub, part in enumerate(np.split(items, 2, axis)):
            yield part, burst.owned(core, dst, sub)

    def _placed(self, items: Array, dst: Pointer, shape: FixpipeShape) -> Iterator[Write]:
        if shape.layout == "nz2nz":
            yield from self._strips(items, dst, shape)
            return
        rows = items.T if shape.layout == "nz2dn" else items
        yield self._rows(rows, dst, (rows.shape[0],), (self._offset(shape.dst_stride),))

    def _strips(self, items: Array, dst: Pointer, shape: FixpipeShape) -> Iterator[Write]:
        """Blocks of columns in order, all rows of one block before the next."""
        wide = C0_SIZE_BYTE * self.dst.values_per_item // self.dst.itemsize
        if self.dst.itemsize == 4 and not shape.split:
            wide = FRACTAL_NZ_ROW
        rows, cols = items.shape
        pitch, row = self._offset(shape.dst_stride), self._offset(wide)
        full = cols // wide
        if full:
            inner = items[:, : full * wide].reshape(rows, full, wide).transpose(1, 0, 2)
            yield self._rows(inner, dst, (full, rows), (pitch, row))
        if cols % wide:
            rest = Pointer(dst.memory, dst.address + full * pitch, self.dst)
            yield self._rows(items[:, full * wide :], rest, (rows,), (row,))

    def _rows(
        self, items: Array, dst: Pointer, counts: tuple[int, ...], strides: tuple[int, ...]
    ) -> Write:
        if self.dst.is_packed:
            raw = pack_nibbles(self.dst, items)
        else:
            raw = np.ascontiguousarray(items).view(np.uint8)
        return burst.side(self.name, "writes", dst, counts, strides, raw.shape[-1]), raw

    def _offset(self, elements: int) -> int:
        """The size in bytes of a number of destination elements."""
        if elements % self.dst.values_per_item:
            raise fail(
                "PTO-S167",
                f"'{self.name}' op: {elements} elements of {self.dst} are not whole bytes",
            )
        return elements // self.dst.values_per_item * self.dst.itemsize


# ---- the structured forms


def _saturation(case: Case) -> Callable[[Machine], tuple[bool, bool]]:
    """(saturate, keep NaN), from the attribute or else from CTRL."""
    mode = case.word("sat_mode")
    if mode is not None:
        return lambda core: (mode != "nosat", mode == "sat_preserve_nan")
    return _ctrl_saturation


def _ctrl_saturation(core: Machine) -> tuple[bool, bool]:
    saturate = not registers.ctrl_bit(core, registers.KEEP_SPECIALS)
    return saturate, registers.ctrl_bit(core, registers.KEEP_NAN)


def _table(core: Machine, name: str, table: Pointer, row: int, nbytes: int) -> Array:
    """Parameters of channels, at an address of the fixpipe buffer."""
    entry = parameters(core, table)
    burst.aligned(name, entry, row)
    return entry.bytes(0, nbytes).copy()


def _finish_of(
    core: Machine, name: str, quant: str | None, relu: str, channels: int, *payloads: Any
) -> Finish:
    """The conversion; `payloads` are the scale (a number, a word or a table), the slope (number or
    a table), the limit, and the behaviour of overflow."""
    payload, slope, clip, (saturate, keep_nan) = payloads
    mode = None
    scale = None
    alpha = None
    if quant not in (None, "no_convert"):
        mode = quant.removesuffix("_vec").removesuffix("_scalar")
        if isinstance(payload, Pointer):
            words = _table(core, name, payload, _QUANT_ROW, channels * 8)
            scale = Scale.words(words.view(np.uint64))
        else:
            scale = payload if isinstance(payload, Scale) else Scale.number(payload)
    if relu == "vector_relu":
        alpha = _table(core, name, slope, _RELU_ROW, channels * 4).view(np.float32)
    elif relu == "scalar_relu":
        alpha = np.float32(slope).reshape(1)
    return Finish(mode, scale, relu, alpha, clip, saturate, keep_nan)


def _mte_l0c(case: Case) -> Callable[..., None]:
    """mte_l0c_l1, mte_l0c_gm and mte_l0c_ub."""
    fixpipe, saturation = Fixpipe.of(case), _saturation(case)
    quant, relu = case.word("pre_quant_mode"), case.word("pre_relu_mode") or "no_relu"
    layout, dst_mode = case.word("mode") or "nz2nd", case.word("dst_mode")
    to_gm = getattr(case.type("destination"), "space", None) is Space.GM
    atomic = written_atomic(case)

    def run(core: Machine, src: Pointer, dst: Pointer, *operands: Any) -> None:
        (m, n, src_stride, dst_stride) = operands[:4]
        payloads = operands[4:7]
        rest = operands[7:]
        *sub_blocks, split, loop0, count, src_step, dst_step = rest
        step = 1 if loop0 is None else loop0
        repeat = (1, 0, 0) if count is None else (count, src_step, dst_step)
        shape = FixpipeShape(m, n, src_stride, dst_stride, layout, step, bool(split), *repeat)
        channels = max(shape.n, 0)
        chosen = _finish_of(core, fixpipe.name, quant, relu, channels, *payloads, saturation(core))
        half: Split = 0 if dst_mode is None else dst_mode
        if dst_mode == "single":
            half = _sub_block(fixpipe.name, sub_blocks[0])
        how = (atomic or registers.selected_atomic(core)) if to_gm else None
        fixpipe.run(core, src, dst, shape, chosen, half, how)

    return run


def _sub_block(name: str, sub: int) -> int:
    if sub not in (0, 1):
        raise fail("PTO-S168", f"'{name}' op writes UB of sub-block {sub}, not of 0 or 1")
    return sub


def written_atomic(case: Case) -> tuple[DType, str] | None:
    word, op = case.word("atomic_type"), case.word("atomic_op")
    if word is None or op is None:
        return None
    return registers.ATOMIC_TYPES[_ATOMIC_NUMBERS.number(word)], op


MTE_L0C = Do(_mte_l0c)

# ---- the low-level forms: everything in two words and in registers


@dataclass(frozen=True, slots=True)
class ConfigWords:
    """Fields of config0 and config1: micro-instruction manual, copy_matrix_cc_to_gm."""

    low: int
    high: int

    def field(self, shift: int, bits: int) -> int:
        return self.high >> shift & ((1 << bits) - 1)

    @property
    def quant(self) -> int:
        return self.field(29, 1) << 5 | self.field(34, 5)

    def shape(self, core: Machine) -> FixpipeShape:
        loop3 = registers.get(core, registers.LOOP3)
        layout = "nz2nd" if self.field(43, 1) else "nz2dn" if self.field(62, 1) else "nz2nz"
        plain = FixpipeShape(
            m=self.low >> 16 & 0xFFFF,
            n=self.low >> 4 & 0xFFF,
            src_stride=self.field(0, 16),
            dst_stride=self.low >> 32 & 0xFFFFFFFF,
            layout=layout,
            split=bool(self.field(42, 1)),
        )
        if layout == "nz2nz":
            return plain
        step = registers.get(core, registers.CHANNEL) >> 48 if layout == "nz2dn" else 1
        count, src_step = loop3 & 0xFFFF, loop3 >> 16 & 0xFFFF
        return replace(plain, step=step, count=count, src_step=src_step, dst_step=loop3 >> 32)


def _raw_finish(core: Machine, fixpipe: Fixpipe, words: ConfigWords, channels: int) -> Finish:
    quant = ENUMS["quant_pre_mode"].word(words.quant)
    relu = ENUMS["relu_pre_mode"].word(words.field(39, 3))
    if quant is None or relu in (None, "pwl"):
        raise fail(
            "PTO-S169",
            f"'{fixpipe.name}' op: quantisation {words.quant} or relu {words.field(39, 3)} is not "
            "defined by the ISA",
        )
    fpc, buffer = registers.get(core, registers.FPC), core.memory(Space.FIXPIPE)
    scale: Any = Scale.word(np.array([registers.get(core, registers.QUANT_PRE)], np.uint64))
    if quant.endswith("_vec"):
        scale = Pointer(buffer, (fpc >> 8 & 0xFF) * _QUANT_ROW, None)
    bits = registers.get(core, registers.RELU_ALPHA) & 0xFFFFFFFF
    slope: Any = np.uint32(bits).view(np.float32)
    if relu == "vector_relu":
        slope = Pointer(buffer, SEGMENT | (fpc & 0xFF) * _RELU_ROW, None)
    clip = _raw_clip(core, fixpipe.dst) if words.field(30, 2) else None
    payloads = scale, slope, clip, _ctrl_saturation(core)
    return _finish_of(core, fixpipe.name, quant, relu or "no_relu", channels, *payloads)


def _raw_clip(core: Machine, dst: DType) -> Any:
    """The clip value: f16 bits, or 16 bits of an integer, signed unless the destination is
    unsigned.
    """
    bits = registers.get(core, registers.CLIP_RELU) & 0xFFFF
    if dst.is_float:
        return np.array([bits], np.uint16).view(np.float16)[0]
    return (bits ^ 0x8000) - 0x8000 if dst.is_signed else bits


def _copy_matrix(case: Case) -> Callable[..., None]:
    fixpipe = Fixpipe.of(case)
    space = getattr(case.type("destination"), "space", None)

    def run(core: Machine, src: Pointer, dst: Pointer, config0: int, config1: int) -> None:
        words = ConfigWords(config0 & registers.MASK, config1 & registers.MASK)
        shape = words.shape(core)
        finish = _raw_finish(core, fixpipe, words, shape.n)
        how = registers.selected_atomic(core) if space is Space.GM else None
        half = _raw_half(fixpipe.name, words) if space is Space.UB else 0
        fixpipe.run(core, src, dst, shape, finish, half, how)

    return run


def _raw_half(name: str, words: ConfigWords) -> Split:
    dual = words.field(16, 2)
    if dual == 3:
        raise fail("PTO-S169", f"'{name}' op: dual destination {dual} is not defined by the ISA")
    return (words.field(18, 1), "split_m", "split_n")[dual]


COPY_MATRIX = Do(_copy_matrix, host_only="layout and scales are fields of two words: on arrays")
