"""Comparisons into packed bits, and selection by such bits.

Row i of a mask starts at row i of the mask tile, whatever its element type; column j is bit j of
it, lowest bit first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, region, require_arithmetic, scalar, stream
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

Bytes = npt.NDArray[np.uint8]
_STREAM = 64  # lanes of a register from which on rows do not start anew


def _compare(case: Case) -> Callable[..., None]:
    require_arithmetic(case)
    test = lanes.MODES[case.word("cmpMode") or "eq"]

    def step(core: Machine, src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = src0.get_valid()
        if rows and cols:
            store_rows(dst, test(region(src0, rows, cols), region(src1, rows, cols)))

    return step


def _compare_scalar(case: Case) -> Callable[..., None]:
    require_arithmetic(case)
    test, size = lanes.MODES[case.word("cmpMode") or "eq"], element(case, "src").itemsize
    is_scalar = isinstance(case.type("scalar"), t.Scalar)
    become = scalar(case.type("scalar"), element(case, "src"))
    dense = case.profile.vector.scalar_compare_mask == "dense"
    lanes_in_register = case.profile.vector.lanes(size)

    def step(core: Machine, src: Tile, value: Any, dst: Tile) -> None:
        rows, cols = src.get_valid()
        if rows == 0 or cols == 0:
            return
        other = become(value) if is_scalar else region(value, 1, 1)
        bits = test(region(src, rows, cols), other)
        if dense and size < 8:
            _store_dense(dst, bits, lanes_in_register)
        else:
            store_rows(dst, bits)

    return step


def store_rows(mask: Tile, bits: Lanes) -> None:
    """Whole elements of the mask: bits past the columns are 0, elements past them stay."""
    rows, cols = bits.shape
    size = mask.type.itemsize
    height, width = mask.type.shape
    if rows > height or cols > width * size * 8:
        raise fail(
            "PTO-S042",
            f"{mask.type} has {height} rows of {width * size * 8} bits, not {rows}x{cols}",
        )
    packed = np.packbits(bits, axis=1, bitorder="little")
    items = -(-packed.shape[1] // size)
    if items * size != packed.shape[1]:
        packed = np.pad(packed, ((0, 0), (0, items * size - packed.shape[1])))
    put(mask, rows, items, packed.view(mask.type.dtype.storage))


def _store_dense(mask: Tile, bits: Lanes, lanes_in_register: int) -> None:
    """As PTO-Gym's tcmps has it: no row pitch, in pieces of what the vector unit stores at once.

    32-bit elements: the bits of the whole region in one stream, in pieces of two registers.
    Narrower ones: each row starts a new piece of one register.
    """
    rows, cols = bits.shape
    if lanes_in_register <= _STREAM:
        bits, piece = bits.reshape(1, rows * cols), 2 * lanes_in_register
    else:
        piece = lanes_in_register
    packed = np.packbits(bits, axis=1, bitorder="little")
    pitch = -(-bits.shape[1] // piece) * piece // 8
    dense = np.zeros((bits.shape[0], pitch), np.uint8)
    dense[:, : packed.shape[1]] = packed
    target = stream(mask).view(np.uint8)
    if dense.size > target.size:
        raise fail("PTO-S042", f"{mask.type} has {target.size} bytes, the mask {dense.size}")
    target[: dense.size] = dense.reshape(-1)


def _row_bits(case: Case, name: str) -> int | None:
    mask = case.tile(name)
    return None if mask is None else mask.cols * mask.itemsize * 8


def _scalar_row_bits(case: Case) -> int | None:
    """What `_compare_scalar` writes; None where the run decides."""
    src = case.tile("src")
    if src is None or case.profile.vector.scalar_compare_mask != "dense" or src.itemsize == 8:
        return _row_bits(case, "dst")
    lanes_in_register, cols = case.profile.vector.lanes(src.itemsize), src.valid[1]
    if cols is None or lanes_in_register <= _STREAM:
        return cols
    return -(-cols // lanes_in_register) * lanes_in_register


def mask_bits(mask: Tile, rows: int, cols: int) -> npt.NDArray[np.bool_]:
    """The first rows x cols bits of a mask."""
    size = mask.type.itemsize
    held = region(mask, rows, -(-cols // (8 * size)))
    if held.strides[1] != size:
        held = np.ascontiguousarray(held)
    found = np.unpackbits(held.view(np.uint8), axis=1, count=cols, bitorder="little")
    return found.view(np.bool_)


def _select(core: Machine, mask: Tile, src0: Tile, src1: Tile, tmp: Tile, dst: Tile) -> None:
    rows, cols = dst.get_valid()
    if rows and cols:
        bits = mask_bits(mask, rows, cols)
        put(dst, rows, cols, lanes.select(bits, region(src0, rows, cols), region(src1, rows, cols)))


def _select_scalar(case: Case) -> Callable[..., None]:
    become = scalar(case.type("scalar"), element(case, "dst"))

    def step(core: Machine, mask: Tile, src: Tile, tmp: Tile, value: Any, dst: Tile) -> None:
        rows, cols = dst.get_valid()
        if rows and cols:
            bits = mask_bits(mask, rows, cols)
            put(dst, rows, cols, lanes.select(bits, region(src, rows, cols), become(value)))

    return step


COMPARE = Do(_compare)
COMPARE_SCALAR = Do(_compare_scalar)
SELECT = Do(lambda case: _select)
SELECT_SCALAR = Do(_select_scalar)

# The operand that is a mask, and the bits from one of its rows to the next, by body.
PACKING: dict[int, tuple[str, Callable[[Case], int | None]]] = {
    id(COMPARE): ("dst", lambda case: _row_bits(case, "dst")),
    id(COMPARE_SCALAR): ("dst", _scalar_row_bits),
    id(SELECT): ("mask", lambda case: _row_bits(case, "mask")),
    id(SELECT_SCALAR): ("mask", lambda case: _row_bits(case, "mask")),
}
