"""Matrix products of tiles: this file selects the elements; `cube/contraction.py` multiplies.

m and k are the valid rows and columns of the left tile, n the valid columns of the right one; each
tile is read in its own layout. Packed fp4 tiles count pairs along k, or values (`_counts_values`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.constants import MX_BLOCK_SIZE
from pto.core.convert import convert
from pto.core.dtypes import E8M0, F32, F64, DType, decode
from pto.core.errors import fail
from pto.core.layout import NN_MX, ZZ_MX, Layout
from pto.core.tile import Tile, TileType
from pto.isa.meaning.cube.contraction import Array, contract, rounded_to_tf32, values_of
from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.patch import cut, paste
from pto.isa.rules.rule import Case


def _product(case: Case) -> Callable[..., None]:
    """All forms of product: the row's operand names select bias, accumulator and scales."""
    names = case.row.operand_names
    types = [case.type(name) for name in names]
    has = set(names)
    lhs, rhs = ("lhs", "rhs") if "lhs" in has else ("a", "b")
    added = next((name for name in ("acc_in", "c_in", "bias") if name in has), None)

    def run(core: Machine, *operands: Any) -> None:
        tile = dict(zip(names, map(as_tile, operands, types), strict=True))
        dst = tile["dst"]
        m, k, n = _sizes(tile[lhs], tile[rhs], dst)
        by_value = "a_scale" in has and counts_values(tile[lhs].type, tile["a_scale"].type)
        items = -(-k // 2) if by_value else k
        a, b = _factors(core, tile[lhs], m, items, 1), _factors(core, tile[rhs], items, n, 0)
        if by_value:
            a, b = a[:, :k], b[:k]
        start = scales = None
        if added is not None:
            start = cut(tile[added], 0, 0, 1 if added == "bias" else m, n)
        if "a_scale" in has:
            groups = -(-a.shape[1] // MX_BLOCK_SIZE)
            left = _scales(tile["a_scale"], m, groups, ZZ_MX)
            scales = left, _scales(tile["b_scale"], groups, n, NN_MX)
        into = dst.type.dtype
        multiply = _scaled_integers if scales and into.is_integer else contract
        paste(dst, 0, 0, multiply(a, b, into, start=start, scales=scales))

    return run


def _sizes(lhs: Tile, rhs: Tile, dst: Tile) -> tuple[int, int, int]:
    """m, k and n; every operand must be large enough for them, whatever its valid region is."""
    (m, k), (_, n) = lhs.get_valid(), rhs.get_valid()
    (inner, _), (high, wide) = rhs.type.shape, dst.type.shape
    if k > inner or m > high or n > wide:
        raise fail(
            "PTO-S063",
            f"a product of {m}x{k} and a tile of {inner} rows, of which {n} columns are valid, "
            f"does not fit {high}x{wide}",
            help="the valid region of the left tile is m x k, n are the valid columns of the right",
        )
    return m, k, n


def counts_values(lhs: TileType, scale: TileType) -> bool:
    """True if the columns of a left tile of fp4 are values, so that half its bytes are in use.

    The tile of scales decides: it has one scale per 32 values (decisions_isa.md, Shapes of packed
    float4 tiles).
    """
    return lhs.dtype.is_packed and scale.cols == -(-lhs.cols // MX_BLOCK_SIZE)


def _factors(core: Machine, tile: Tile, rows: int, cols: int, along: int) -> Array:
    """The elements as numbers; a packed item gives two along axis `along`, which is k."""
    kind, items = tile.type.dtype, cut(tile, 0, 0, rows, cols)
    if kind is F32:
        return _narrowed(core, items)
    return values_of(items, kind) if along else values_of(items.T, kind).T


def _narrowed(core: Machine, values: Array) -> Array:
    """f32 operands, rounded as the mode registers define."""
    if registers.get(core, registers.HF32):
        raise fail(
            "PTO-X170",
            "HF32 is on, but the ISA does not define the precision of HF32 operands",
            help="switch it off with pto.sethf32mode {enable = false}",
        )
    if not registers.ctrl_bit(core, registers.TF32):
        return values
    away = registers.ctrl_bit(core, registers.TF32_AWAY)
    mantissa = core.profile.tf32_mantissa
    return rounded_to_tf32(np.ascontiguousarray(values), away=away, mantissa=mantissa)


def _scales(tile: Tile, rows: int, cols: int, layout: Layout) -> Array:
    """2^(byte - 127) for every group.

    If the tile has another element type (PTOAS writes f16), only its address counts: its bytes are
    scales in boxes of 16 x 2, the order of the matrix unit.
    """
    kind: DType = tile.type.dtype
    if kind.itemsize == 1 and tile.type.rows >= rows and tile.type.cols >= cols:
        return decode(E8M0, cut(tile, 0, 0, rows, cols).view(E8M0.storage))
    places = layout.index_map(rows, cols, 1)
    raw = tile.memory.view(tile.address, int(places.max(initial=-1)) + 1)
    return decode(E8M0, raw[places])


def _scaled_integers(
    lhs: Array, rhs: Array, into: DType, *, start: Array | None, scales: Any
) -> Array:
    """MX of i8 (manual): terms exact in f64, summed in order of k, rounded to an integer once."""
    left = lhs * np.repeat(scales[0], MX_BLOCK_SIZE, axis=1)[:, : lhs.shape[1]]
    right = rhs * np.repeat(scales[1], MX_BLOCK_SIZE, axis=0)[: rhs.shape[0]]
    total = np.zeros((lhs.shape[0], rhs.shape[1]))
    for k in range(lhs.shape[1]):
        total += left[:, k, None] * right[k]
    product = convert(total, F64, into)
    return product if start is None else product + start


PRODUCT = Do(_product)
