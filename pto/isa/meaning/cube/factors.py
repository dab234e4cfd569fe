"""L1 to L0A and L0B: fractals of 512 bytes, optionally transposed, and MX scales.

A left tile [m,k] and a right tile [n,k] have the same layout: strips of 32 bytes of k, one row of m
or n after the other (K1 M1 M0 K0 and K1 N1 N0 K0). Transposing swaps the two axes of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pto.core.constants import (
    C0_SIZE_BYTE,
    CUBE_BLOCK_SIZE,
    FRACTAL_NZ_ROW,
    MX_BLOCK_SIZE,
    MX_COL_LEN,
    MX_ROW_LEN,
)
from pto.core.dtypes import FLOAT4_E2M1X2, DType, pack_nibbles, unpack_nibbles
from pto.core.errors import fail
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.isa.meaning.cube.fractal import Array
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import burst
from pto.isa.meaning.memory.burst import BurstLoop
from pto.isa.meaning.memory.dma import element
from pto.isa.meaning.memory.words import Bursts, up
from pto.isa.rules.rule import Case

FRAGMENT: Final = MX_ROW_LEN * MX_COL_LEN  # bytes: scales of 16 rows and 64 values of k
# scales of the tile at address a of L0A are at a >> 4: pto.tget_scale_addr, pto-isa pto_tile.hpp
SCALE_SHIFT: Final = 4
SCALES: Final = {Space.L0A: Space.SCALE_A, Space.L0B: Space.SCALE_B}


@dataclass(frozen=True, slots=True)
class FractalWindow:
    """A window of the source: rows in 16s, columns in 32 bytes.

    Strides in fractals from strip to strip.
    """

    row: int
    col: int
    rows: int
    cols: int
    src_stride: int
    dst_stride: int

    def check(self, x: Bursts) -> None:
        numbers = (self.row, self.col, self.rows, self.cols, self.src_stride, self.dst_stride)
        x.counts("a start, step or stride", *numbers)


class OperandLoads(Bursts):
    """The interface of bursts, extended by the loads of matrix operands."""

    __slots__ = ()

    def turned(self, source: Pointer, dst: Pointer, kind: DType, at: FractalWindow) -> None:
        """Load the fractals of the transposed matrix."""
        if at.rows == 0 or at.cols == 0:
            return
        pitch, width = at.src_stride * CUBE_BLOCK_SIZE, at.rows * CUBE_BLOCK_SIZE
        reads = burst.side(self.name, "reads", source, (at.cols,), (pitch,), width)
        strips = _transposed(self.name, reads.bytes, kind, at)
        count, width = strips.shape
        pitch = at.dst_stride * CUBE_BLOCK_SIZE
        burst.put(burst.side(self.name, "writes", dst, (count,), (pitch,), width), strips)

    def scales_at(self, tile: Pointer) -> Pointer:
        """The address of the scales of the tile at a pointer into L0A or L0B."""
        return scales_at(self.core, tile)


def _load(
    x: OperandLoads, src: Pointer, dst: Pointer, kind: DType, at: FractalWindow, transpose: Any
) -> None:
    """Copy fractals of L1 to fractals of L0A or L0B."""
    at.check(x)
    source = x.behind(x.owned(src), (at.col * at.src_stride + at.row) * CUBE_BLOCK_SIZE)
    loop = BurstLoop(at.cols, at.src_stride * CUBE_BLOCK_SIZE, at.dst_stride * CUBE_BLOCK_SIZE)
    x.when(
        transpose,
        lambda: x.turned(source, dst, kind, at),
        lambda: x.move(source, dst, at.rows * CUBE_BLOCK_SIZE, [loop]),
    )


def _transposed(name: str, fractals: Array, kind: DType, at: FractalWindow) -> Array:
    """Strips of the transposed matrix, one row of bytes each."""
    rows = at.rows * FRACTAL_NZ_ROW
    items = fractals.reshape(at.cols, rows, C0_SIZE_BYTE).transpose(1, 0, 2).reshape(rows, -1)
    if kind.is_packed:
        values = unpack_nibbles(np.ascontiguousarray(items))
    else:
        values = np.ascontiguousarray(items).view(kind.storage)
    wide = values.shape[1] // at.cols  # elements in 32 bytes
    if rows % wide:
        raise fail(
            "PTO-S163",
            f"'{name}' op transposes {rows} rows of {kind}, not a multiple of {wide}",
            help=f"a transposed fractal takes {wide} source rows",
        )
    turned = np.ascontiguousarray(values.T)
    if kind.is_packed:
        turned = pack_nibbles(kind, turned)
    count, cols = rows // wide, values.shape[1]
    raw = turned.view(np.uint8).reshape(cols, count, C0_SIZE_BYTE)
    return raw.transpose(1, 0, 2).reshape(count, cols * C0_SIZE_BYTE)


def _window(
    kind: DType, rows: int, depth: int, transpose: bool, row: int, col: int
) -> FractalWindow:
    """The fractals of a logical rows x depth operand, where rows are m or n.

    The pitch of the source is implied. For a transposed load both sides are padded to the size of a
    transposed fractal, 16 elements or 32 bytes: micro-instruction manual, mte_l1_l0b.
    """
    per_block = C0_SIZE_BYTE * kind.values_per_item // kind.itemsize
    if not transpose:
        strip = up(rows, FRACTAL_NZ_ROW)
        return FractalWindow(row, col, strip, up(depth, per_block), strip, strip)
    step = max(FRACTAL_NZ_ROW, per_block)
    fractals, blocks = step // FRACTAL_NZ_ROW, step // per_block
    strip, across = up(depth, step) * fractals, up(rows, step)
    return FractalWindow(row, col, strip, across * blocks, strip, across * fractals)


def _mte_load(rows_first: bool) -> Do:
    """mte_l1_l0a gives m and k, mte_l1_l0b gives k and n."""

    def make(case: Case) -> Callable[..., None]:
        kind, transpose = element(case, "source"), case.word("transpose") == "true"

        def run(
            x: OperandLoads, src: Pointer, dst: Pointer, a: int, b: int, *start: int | None
        ) -> None:
            rows, depth = (a, b) if rows_first else (b, a)
            x.counts("a side of the loaded tile", a, b, least=1)
            row, col = map(x.number, start)
            at = _window(kind, rows, depth, transpose, row, col)
            _load(x, src, dst, kind, at, transpose)

        return run

    return Do(make, words=OperandLoads)


def _load_cbuf(case: Case) -> Callable[..., None]:
    kind, transpose = element(case, "source"), case.word("transpose") == "true"
    return lambda x, src, dst, *steps: _load(x, src, dst, kind, FractalWindow(*steps), transpose)


def _load_cbuf_s4(x: OperandLoads, src: Pointer, dst: Pointer, *steps: int) -> None:
    """Load 4-bit elements, whatever type the pointer has; transpose is an operand."""
    *window, transpose = steps
    _load(x, src, dst, FLOAT4_E2M1X2, FractalWindow(*window), transpose != 0)


MTE_L1_L0A = _mte_load(rows_first=True)
MTE_L1_L0B = _mte_load(rows_first=False)
LOAD_CBUF = Do(_load_cbuf, words=OperandLoads)
LOAD_CBUF_S4 = Do(lambda case: _load_cbuf_s4, words=OperandLoads)

# ---- MX scales


def scales_at(core: Machine, tile: Pointer) -> Pointer:
    """The address of the scales of the tile at a pointer into L0A or L0B."""
    memory = core.memory(SCALES[tile.memory.space])
    return Pointer(memory, tile.address >> SCALE_SHIFT, None)


def fragments(rows: int, depth: int) -> tuple[int, int]:
    """The number of 32-byte fragments along m or n, and along k."""
    return up(rows, MX_ROW_LEN), up(depth, MX_BLOCK_SIZE * MX_COL_LEN)


def _mte_scales(rows_first: bool) -> Do:
    """Copy fragments from L1; both sides store them along k first."""

    def run(
        x: OperandLoads, src: Pointer, dst: Pointer, a: int, b: int, *start: int | None
    ) -> None:
        row, col = map(x.number, start or (0, 0))
        x.require(
            (row == 0) & (col == 0),
            lambda: fail(
                "PTO-X174",
                f"'{x.name}' op starts at ({row}, {col}), but the ISA does not define the"
                " scale for this position",
                help="move the source pointer to the first scale, and start at (0, 0)",
            ),
        )
        rows, depth = (a, b) if rows_first else (b, a)
        x.counts("a side of the tile of the loaded scales", a, b, least=1)
        along, across = fragments(rows, depth)
        x.move(x.owned(src), x.scales_at(dst), along * across * FRAGMENT, ())

    return Do(lambda case: run, words=OperandLoads)


def _load_cbuf_to_cb_mx(x: OperandLoads, src: Pointer, dst: Pointer, *steps: int) -> None:
    """x counts fragments along n, y along k; strides are fragments from one x to the next."""
    at = FractalWindow(*steps)
    at.check(x)
    origin = x.behind(x.owned(src), (at.row * at.src_stride + at.col) * FRAGMENT)
    loop = BurstLoop(at.rows, at.src_stride * FRAGMENT, at.dst_stride * FRAGMENT)
    x.move(origin, x.scales_at(dst), at.cols * FRAGMENT, [loop])


MTE_L1_L0A_MX = _mte_scales(rows_first=True)
MTE_L1_L0B_MX = _mte_scales(rows_first=False)
LOAD_CBUF_TO_CB_MX = Do(lambda case: _load_cbuf_to_cb_mx, words=OperandLoads)
