"""Quantisation: scales and offsets per row, and exponents shared by groups of 32 (MX)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.convert import Round, convert
from pto.core.dtypes import F8E4M3, F32, FLOAT4_E2M1X2, I8, U8, DType
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do, Move
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, put, region, stream
from pto.isa.rules.rule import Case

F32s = npt.NDArray[np.float32]
GROUP = 32  # PTO manual, Data Format: Constants Reference: MX_BLOCK_SIZE


# ---- one scale a row


def _per_row(x: Mover, tile: Tile, i: Lanes) -> Lanes:
    """Column 0; rows a shorter tile does not have repeat its last one (TQuant.hpp of cpu)."""
    return x.read(tile, x.least(i, tile.get_valid()[0] - 1), 0)


def _require_rows(x: Mover, dst: Tile, *tiles: Tile | None) -> None:
    rows, cols = dst.get_valid()
    for tile in tiles:
        if tile is not None:
            some = (tile.get_valid()[0] > 0) | (rows == 0) | (cols == 0)
            x.require(
                some,
                lambda tile=tile: fail(
                    "PTO-V150", f"{tile.type} has no valid rows, and {rows} rows need its values"
                ),
            )


def _quantise(case: Case) -> Callable[..., None]:
    """Rounded after the product, after the sum, and to nearest even at last."""
    kind = U8 if case.word("quant_type") == "INT8_ASYM" else I8
    stored = element(case, "dst").storage

    def step(
        x: Mover, src: Tile, scale: Tile, offset: Tile | None, dst: Tile, tmp: Tile | None
    ) -> None:
        _require_rows(x, dst, scale, offset)
        x.within(src, *dst.get_valid())

        def cell(i: Lanes, j: Lanes) -> Lanes:
            values = lanes.mul(x.read(src, i, j), _per_row(x, scale, i))
            if offset is not None:
                values = lanes.add(values, _per_row(x, offset, i))
            return lanes.convert(values, F32, kind, Round.RINT, True).view(stored)

        x.each(*dst.get_valid(), cell, dst)

    return step


def _dequantise(case: Case) -> Callable[..., None]:
    src_type = element(case, "src")

    def step(x: Mover, src: Tile, scale: Tile, offset: Tile, dst: Tile) -> None:
        _require_rows(x, dst, scale, offset)
        x.within(src, *dst.get_valid())

        def cell(i: Lanes, j: Lanes) -> Lanes:
            wide = lanes.convert(x.read(src, i, j), src_type, F32, Round.RINT, False)
            centred = lanes.sub(wide, _per_row(x, offset, i))
            return lanes.mul(centred, _per_row(x, scale, i))

        x.each(*dst.get_valid(), cell, dst)

    return step


# ---- one exponent a group


def _exponents_ocp(greatest: F32s, below: int) -> npt.NDArray[np.uint8]:
    """The exponent field less `below`, at least 0; 0xFF for NaN."""
    field = (greatest.view(np.uint32) >> 23).astype(np.int64)
    found = np.maximum(field - below, 0)
    return np.where(np.isnan(greatest), 0xFF, found).astype(np.uint8)


def _exponents_nv(greatest: F32s, most: float) -> npt.NDArray[np.uint8]:
    """The exponent of greatest / most, rounded up; inf is 0xFE."""
    bits = (greatest * np.float32(1 / np.float32(most))).view(np.uint32)
    field, fraction = (bits >> 23).astype(np.int64), bits & np.uint32(0x7FFFFF)
    tiny = (field == 0) & (fraction <= 0x400000)
    up = (fraction > 0) & (field < 0xFE) & ~tiny
    found = np.where(field == 0xFF, np.where(fraction == 0, 0xFE, 0xFF), field + up)
    return found.astype(np.uint8)


_EXPONENTS: dict[tuple[str, str], Callable[[F32s], npt.NDArray[np.uint8]]] = {
    ("MXFP8", "OCP"): lambda m: _exponents_ocp(m, 8),
    ("MXFP8", "NV"): lambda m: _exponents_nv(m, 448.0),
    ("MXFP4_E2M1", "OCP"): lambda m: _exponents_ocp(m, 2),
    ("MXFP4_E2M1", "NV"): lambda m: _exponents_nv(m, 6.0),
}


def _scaling(exponents: npt.NDArray[np.uint8]) -> F32s:
    """2**(127 - e), NaN for 0xFF."""
    power = np.ldexp(np.float32(1), 127 - exponents.astype(np.int32))
    return np.where(exponents == 0xFF, np.float32(np.nan), power).astype(np.float32)


def _encode(values: F32s, kind: str) -> npt.NDArray[np.uint8]:
    """To nearest even, saturating. NaN stays in e4m3; e2m1 has none and takes its greatest."""
    if kind == "MXFP8":
        return convert(values, F32, F8E4M3, Round.RINT, True, keep_nan=True).view(np.uint8)
    values = np.where(np.isnan(values), np.float32(np.inf), values)
    return convert(values, F32, FLOAT4_E2M1X2, Round.RINT, True)


def _groups(values: F32s) -> F32s:
    """(line, group, member) of the lines along axis 1; a short last group ends in zeros."""
    lines, length = values.shape
    count = -(-length // GROUP)
    padded = np.zeros((lines, count * GROUP), np.float32)
    padded[:, :length] = values
    return padded.reshape(lines, count, GROUP)


class _Shared:
    """Values with an exponent for each group along axis 1, or 0: data and one value a group."""

    def __init__(
        self,
        values: F32s,
        axis: int,
        exponents: Callable[[F32s], npt.NDArray[np.uint8]],
        greatest_of: Callable[[F32s], F32s],
    ) -> None:
        lines = values if axis == 1 else values.T
        groups = _groups(lines)
        greatest = greatest_of(np.abs(groups))
        codes = exponents(greatest)
        factors = _scaling(codes)
        scaled = (groups * factors[:, :, None]).reshape(len(lines), -1)[:, : lines.shape[1]]
        turn = np.ascontiguousarray if axis == 1 else lambda part: np.ascontiguousarray(part.T)
        self.scaled: F32s = turn(scaled)
        self.greatest: F32s = turn(greatest)
        self.factors: F32s = turn(factors)
        self.exponents: npt.NDArray[np.uint8] = turn(codes)


def _plainly(sizes: F32s) -> F32s:
    return sizes.max(axis=2)


def _without_nan(sizes: F32s) -> F32s:
    return np.fmax.reduce(sizes, axis=2, initial=np.float32(0))


def _upper_half(sizes: F32s) -> F32s:
    """The greatest, cut to bf16."""
    return (sizes.view(np.uint32) & np.uint32(0xFFFF0000)).max(axis=2).view(np.float32)


_SIMULATED = {("MXFP8", "ocp"): _without_nan, ("MXFP8", "nv"): _without_nan,
    ("MXFP4_E2M1", "ocp"): _upper_half}  # fmt: skip


def _zeros(codes: npt.NDArray[np.uint8], values: F32s, nv: bool) -> npt.NDArray[np.uint8]:
    """E4M3 codes as the simulator has them: NV keeps the sign of less than half the smallest."""
    drops = (codes == 0x80) & ~(nv & (np.abs(values) < np.float32(2**-10)))
    return np.where(drops, np.uint8(0), codes)


def _place(tile: Tile, values: Lanes, in_order: bool = False) -> None:
    """At [i,j] where the tile's valid region has the values' shape, else in memory order."""
    if tile.get_valid() == values.shape and not in_order:
        rows, cols = tile.get_valid()
        put(tile, rows, cols, values)
        return
    stream(tile)[: values.size] = values.reshape(-1)


def _require_room(tile: Tile, values: Lanes) -> None:
    if tile.get_valid() == values.shape:
        return
    have = stream(tile).size
    if values.size > have:
        raise fail("PTO-S044", f"{tile.type} has room for {have} values, not {values.size}")


def _interleaved(exponents: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Rows 2p and 2p+1 of the exponents side by side, element by element (TQUANT_DN.md)."""
    pairs, cols = exponents.shape[0] // 2, exponents.shape[1]
    return exponents.reshape(pairs, 2, cols).transpose(0, 2, 1).reshape(pairs, 2 * cols)


def _zigzag(exponents: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Boxes of 16x2, row by row: what the cube takes beside NZ data."""
    rows, groups = exponents.shape
    if rows % 16 or groups % 2:
        raise fail(
            "PTO-S044", f"exponents of {rows}x{groups} do not fill the 16x2 boxes of storeMode nz"
        )
    boxes = exponents.reshape(rows // 16, 16, groups // 2, 2)
    return boxes.transpose(0, 2, 1, 3).reshape(1, -1)


def _quantise_groups(case: Case) -> Callable[..., None]:
    kind, axis = case.word("quant_type") or "MXFP8", int((case.word("grpAxis") or "axis1")[-1])
    algorithm = case.word("quantScaleAlg") or "ocp"
    exponents = _EXPONENTS[kind, algorithm.upper()]
    src_type = element(case, "src")
    interleave = case.word("interleave") == "true"
    simulated = case.profile.shared_exponents == "simulator"
    greatest_of = _SIMULATED.get((kind, algorithm), _plainly) if simulated else _plainly

    def step(
        core: Machine, src: Tile, dst: Tile, exp: Tile, max: Tile, scaling: Tile, zz: Tile | None
    ) -> None:
        rows, cols = src.get_valid()
        if rows == 0 or cols == 0:
            return
        shared = _Shared(_as_f32(region(src, rows, cols), src_type), axis, exponents, greatest_of)
        shown = _interleaved(shared.exponents) if interleave else shared.exponents
        codes = _encode(shared.scaled, kind)
        if simulated and kind == "MXFP8":
            codes = _zeros(codes, shared.scaled, algorithm == "nv")
        results: list[tuple[Tile, Lanes]] = [
            (dst, codes),
            (exp, shown),
            (max, _as_type(shared.greatest, max.type.dtype)),
            (scaling, _as_type(shared.factors, scaling.type.dtype)),
        ]
        if zz is not None:
            results.append((zz, _zigzag(shared.exponents)))
        for tile, values in results:
            _require_room(tile, values)
        for tile, values in results:
            in_order = simulated and (tile is max or tile is scaling)
            _place(tile, values.view(tile.type.dtype.storage), in_order)

    return step


def _as_f32(values: Lanes, src: DType) -> Any:
    return values if src is F32 else lanes.convert(values, src, F32, Round.RINT, False)


def _as_type(values: F32s, dst: DType) -> Lanes:
    return values if dst is F32 else lanes.convert(values, F32, dst, Round.RINT, False)


QUANTISE = Move(_quantise)
DEQUANTISE = Move(_dequantise)
QUANTISE_GROUPS = Do(_quantise_groups, stays="groups of 32 share an exponent: on arrays")
