"""Products of L0A and L0B into L0C. The arithmetic and its order are in `contraction.py`.

Only the logical m x n elements of L0C are written. Unit flags order pipes and have no effect here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pto.core.constants import MX_BLOCK_SIZE, MX_COL_LEN, MX_ROW_LEN
from pto.core.dtypes import E8M0, F32, DType, decode
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.cube import contraction
from pto.isa.meaning.cube.factors import FRAGMENT, fragments, scales_at
from pto.isa.meaning.cube.fractal import Array, accumulator, logical, padded, read_nz, write_strips
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.memory.dma import element
from pto.isa.rules.rule import Case

MOST: Final = 4095  # of m, n and k: fields of 12 bits


@dataclass(frozen=True, slots=True)
class Sizes:
    m: int
    n: int
    k: int
    is_vector: bool  # the left tile is one contiguous row

    def check(self, name: str) -> None:
        for dimension in ("m", "n", "k"):
            if not 1 <= getattr(self, dimension) <= MOST:
                size = getattr(self, dimension)
                raise fail("PTO-S164", f"'{name}' op: {dimension} is {size}, not from 1 to {MOST}")


@dataclass(frozen=True, slots=True)
class Product:
    """The facts of one instruction that its types determine."""

    name: str
    lhs: DType
    rhs: DType
    dst: DType
    is_scaled: bool

    @classmethod
    def of(cls, case: Case) -> Product:
        lhs, rhs, dst = (element(case, n) for n in ("lhs", "rhs", "dst"))
        if lhs.is_float and dst.is_integer:
            raise fail(
                "PTO-T161",
                f"'{case.row.name}' op: the product of {lhs} and {rhs} in {dst} is not defined "
                "by the ISA",
            )
        return cls(case.row.name, lhs, rhs, dst, case.row.needs == "mx")

    def run(
        self,
        core: Machine,
        tiles: tuple[Pointer, Pointer, Pointer],
        sizes: Sizes,
        start: Pointer | str | None,
        tf32: str | None,
        saturate: bool,
    ) -> None:
        """dst = lhs x rhs, plus the old accumulator ("acc") or the bias at a pointer."""
        sizes.check(self.name)
        lhs, rhs, dst = tiles
        target = accumulator(self.name, "writes", dst, self.dst, sizes.m, sizes.n, padded(sizes.m))
        left = self._factors(self._left(lhs, sizes), self.lhs, sizes.k, tf32, saturate)
        items = self._right(rhs, sizes)
        right = self._factors(items, self.rhs, sizes.k, tf32, saturate).T
        result = contraction.contract(
            left,
            right,
            self.dst,
            start=self._start(start, target, sizes.n),
            scales=self._scales(core, lhs, rhs, sizes) if self.is_scaled else None,
            saturate=saturate,
        )
        write_strips(target, result)

    def _left(self, tile: Pointer, sizes: Sizes) -> Array:
        count = -(-sizes.k // self.lhs.values_per_item)
        if sizes.is_vector:
            return tile.bytes(0, count * self.lhs.itemsize).view(self.lhs.numpy)[None, :]
        return read_nz(self.name, tile, self.lhs, sizes.m, count, padded(sizes.m))

    def _right(self, tile: Pointer, sizes: Sizes) -> Array:
        count = -(-sizes.k // self.rhs.values_per_item)
        return read_nz(self.name, tile, self.rhs, sizes.n, count, padded(sizes.n))

    def _factors(
        self, items: Array, kind: DType, depth: int, tf32: str | None, saturate: bool
    ) -> Array:
        values = contraction.values_of(items, kind)[:, :depth]
        if saturate:
            values = contraction.finite(values, kind)
        if tf32 is None or kind is not F32:
            return values
        return contraction.rounded_to_tf32(np.ascontiguousarray(values), away=tf32 == "round_away")

    def _start(self, start: Pointer | str | None, target: Array, cols: int) -> Array | None:
        if start is None:
            return None
        if isinstance(start, Pointer):
            return start.bytes(0, cols * self.dst.itemsize).view(self.dst.numpy)
        return logical(target, cols)

    def _scales(
        self, core: Machine, lhs: Pointer, rhs: Pointer, sizes: Sizes
    ) -> tuple[Array, Array]:
        left, right = scales_at(core, lhs), scales_at(core, rhs)
        groups = -(-sizes.k // MX_BLOCK_SIZE)
        if sizes.is_vector:
            row = decode(E8M0, left.bytes(0, groups))[None, :]
        else:
            row = _scale_rows(left, sizes.m, sizes.k)[:, :groups]
        return row, _scale_rows(right, sizes.n, sizes.k)[:, :groups].T


def _scale_rows(pointer: Pointer, rows: int, depth: int) -> Array:
    """(row, group of k) -> scale, from fragments of 16 rows and two groups, along k first."""
    along, across = fragments(rows, depth)
    raw = pointer.bytes(0, along * across * FRAGMENT)
    boxes = raw.reshape(along, across, MX_ROW_LEN, MX_COL_LEN).transpose(0, 2, 1, 3)
    return decode(E8M0, boxes.reshape(along * MX_ROW_LEN, across * MX_COL_LEN)[:rows])


def _saturates(case: Case) -> Callable[[Machine], bool]:
    """True if the instruction saturates: sat or nosat, else CTRL decides."""
    mode = case.word("sat_mode")
    if mode is not None:
        return lambda core: mode == "sat"
    return lambda core: not registers.ctrl_bit(core, registers.KEEP_SPECIALS)


def _mad(accumulates: bool, bias: bool) -> Do:
    def make(case: Case) -> Callable[..., None]:
        product, saturates = Product.of(case), _saturates(case)
        tf32 = case.word("tf32_mode")
        as_matrix = "disable_gemv" in case.op.attrs

        def run(core: Machine, lhs: Pointer, rhs: Pointer, dst: Pointer, *operands: Any) -> None:
            *table, m, n, k = operands
            sizes = Sizes(m, n, k, m == 1 and not as_matrix)
            start = table[0] if bias else "acc" if accumulates else None
            product.run(core, (lhs, rhs, dst), sizes, start, tf32, saturates(core))

        return run

    return Do(make)


def _raw(case: Case) -> Callable[..., None]:
    """A product with its operands packed in one word; the row lists the fields.

    CTRL has tf32 and sat.
    """
    product, saturates = Product.of(case), _saturates(case)

    def run(core: Machine, lhs: Pointer, rhs: Pointer, dst: Pointer, *operands: Any) -> None:
        *table, word = operands
        bits = word & registers.MASK
        m, k, n = (bits >> shift & 0xFFF for shift in (0, 12, 24))
        sizes = Sizes(m, n, k, m == 1 and not bits >> 61 & 1)
        start = _raw_start(product.name, bits, table)
        product.run(core, (lhs, rhs, dst), sizes, start, _raw_tf32(core), saturates(core))

    return run


def _raw_start(name: str, bits: int, table: list[Pointer]) -> Pointer | str | None:
    if bits >> 63 & 1:
        return None
    if not bits >> 62 & 1:
        return "acc"
    if not table:
        raise fail("PTO-S165", f"'{name}' op: xt selects a bias, but there is no bias operand")
    return table[0]


def _raw_tf32(core: Machine) -> str | None:
    if not registers.ctrl_bit(core, registers.TF32):
        return None
    return "round_away" if registers.ctrl_bit(core, registers.TF32_AWAY) else "round_even"


MAD = _mad(accumulates=False, bias=False)
MAD_ACC = _mad(accumulates=True, bias=False)
MAD_BIAS = _mad(accumulates=False, bias=True)
MAD_RAW = Do(_raw)
