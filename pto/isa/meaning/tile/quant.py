"""Quantisation: scales and offsets per row, and exponents shared by groups of 32 (MX)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pto.core.constants import MX_BLOCK_SIZE
from pto.core.convert import Round
from pto.core.dtypes import F8E4M3, F32, FLOAT4_E2M1X2, I8, U8, U32, DType, decode
from pto.core.errors import fail
from pto.core.layout import BLayout
from pto.core.primitives import absolute, const, greater_of, select, signbit
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, gaps
from pto.isa.rules.rule import Case

# ---- one scale a row


def _per_row(x: Mover, tile: Tile, i: Lanes) -> Lanes:
    """Column 0 of a tile of scales; missing rows repeat the last one (TQuant.hpp of cpu)."""
    return x.read(tile, x.least(i, tile.get_valid()[0] - 1), 0)


def _per_word(x: Mover, tile: Tile, i: Lanes) -> Lanes:
    """Word i of the memory of a tile of scales, whatever its region is (TQuant.hpp of a5)."""
    rows, cols = tile.type.shape
    if tile.type.layout.blayout is BLayout.COL_MAJOR:
        return x.read(tile, i % rows, i // rows)
    return x.read(tile, i // cols, i % cols)


def _require_words(x: Mover, dst: Tile, *tiles: Tile | None) -> None:
    rows, cols = dst.get_valid()
    for tile in tiles:
        if tile is not None:
            words = tile.type.rows * tile.type.cols
            x.require(
                (rows <= words) | (cols == 0),
                lambda tile=tile: fail(
                    "PTO-S041", f"{tile.type} holds fewer scales than dst has rows, {rows}"
                ),
            )


def _require_rows(x: Mover, dst: Tile, *tiles: Tile | None) -> None:
    rows, cols = dst.get_valid()
    for tile in tiles:
        if tile is not None:
            some = (tile.get_valid()[0] > 0) | (rows == 0) | (cols == 0)
            x.require(
                some,
                lambda tile=tile: fail(
                    "PTO-V150", f"{tile.type} has no valid rows, but {rows} rows need its values"
                ),
            )


def _quantise(case: Case) -> Callable[..., None]:
    """Quantise: rounded after the product, after the sum, and finally to nearest even."""
    kind = U8 if case.word("quant_type") == "INT8_ASYM" else I8
    stored = element(case, "dst").storage
    by_word = case.profile.row_scales == "words"
    per_row, require = (_per_word, _require_words) if by_word else (_per_row, _require_rows)

    def step(
        x: Mover, src: Tile, scale: Tile, offset: Tile | None, dst: Tile, tmp: Tile | None
    ) -> None:
        require(x, dst, scale, offset)
        x.within(src, *dst.get_valid())

        def cell(i: Lanes, j: Lanes) -> Lanes:
            values = lanes.mul(x.read(src, i, j), per_row(x, scale, i))
            if offset is not None:
                values = lanes.add(values, per_row(x, offset, i))
            return lanes.convert(values, F32, kind, Round.RINT, True).view(stored)

        x.each(*dst.get_valid(), cell, dst)

    return step


def _dequantise(x: Mover, src: Tile, scale: Tile, offset: Tile, dst: Tile) -> None:
    _require_rows(x, dst, scale, offset)
    x.within(src, *dst.get_valid())

    def cell(i: Lanes, j: Lanes) -> Lanes:
        wide = lanes.convert(x.read(src, i, j), src.type.dtype, F32, Round.RINT, False)
        centred = lanes.sub(wide, _per_row(x, offset, i))
        return lanes.mul(centred, _per_row(x, scale, i))

    x.each(*dst.get_valid(), cell, dst)


# ---- one exponent per group: magnitudes are compared as bits, so NaN is the greatest

_INF = 0x7F80_0000  # f32; the last is 2**-127
_NAN = 0x7FC0_0000  # f32; the last is 2**-127
_HALF = 0x0040_0000  # f32; the last is 2**-127


def _without_nan(sizes: Lanes) -> Lanes:
    return select(sizes > _INF, const(sizes, 0), sizes)


def _upper_half(sizes: Lanes) -> Lanes:
    """Truncated to bf16."""
    return sizes & 0xFFFF_0000


_SIMULATED = {("MXFP8", "ocp"): _without_nan, ("MXFP8", "nv"): _without_nan,
    ("MXFP4_E2M1", "ocp"): _upper_half}  # fmt: skip


def _exponents_ocp(greatest: Lanes, below: int) -> Lanes:
    """The exponent field minus `below`, at least 0; 0xFF for NaN."""
    field = greatest >> 23
    exponent = select(field > below, field - below, const(field, 0))
    return select(greatest > _INF, const(field, 0xFF), exponent)


def _exponents_nv(greatest: Lanes, most: float) -> Lanes:
    """The exponent of greatest / most, rounded up; 0xFE for inf."""
    bits = (greatest.view(np.float32) * np.float32(1 / np.float32(most))).view(np.uint32)
    field, fraction = bits >> 23, bits & 0x7F_FFFF
    tiny = (field == 0) & (fraction <= _HALF)
    up = (fraction > 0) & (field < 0xFE) & ~tiny
    infinite = select(fraction == 0, const(field, 0xFE), const(field, 0xFF))
    return select(field == 0xFF, infinite, select(up, field + 1, field))


_EXPONENTS: dict[tuple[str, str], Callable[[Lanes], Lanes]] = {
    ("MXFP8", "ocp"): lambda m: _exponents_ocp(m, 8),
    ("MXFP8", "nv"): lambda m: _exponents_nv(m, 448.0),
    ("MXFP4_E2M1", "ocp"): lambda m: _exponents_ocp(m, 2),
    ("MXFP4_E2M1", "nv"): lambda m: _exponents_nv(m, 6.0),
}


def _scaling(exponents: Lanes) -> Lanes:
    """2**(127 - e), NaN for 0xFF."""
    power = select(exponents == 0xFE, const(exponents, _HALF), (254 - exponents) << 23)
    return select(exponents == 0xFF, const(exponents, _NAN), power).view(np.float32)


def _e4m3(values: Lanes) -> Lanes:
    """To nearest even, saturating; NaN stays."""
    return lanes.convert(values, F32, F8E4M3, Round.RINT, True, True).view(np.uint8)


def _e4m3_simulated(values: Lanes, nv: bool) -> Lanes:
    """Codes of the simulator: NV keeps the sign of values below half the smallest."""
    codes = _e4m3(values)
    drops = codes == 0x80
    if nv:
        drops = drops & ~(absolute(values) < np.float32(2**-10))
    return select(drops, const(codes, 0), codes)


_MAGNITUDES = decode(FLOAT4_E2M1X2, np.arange(8, dtype=np.uint8))[::2]


def _e2m1(values: Lanes) -> Lanes:
    """4-bit codes: to nearest even, saturating; NaN becomes the greatest value."""
    size = absolute(values)
    codes = select(signbit(values), np.uint8(8), np.uint8(0))
    for code, (low, high) in enumerate(pairwise(_MAGNITUDES), 1):
        middle = np.float32((low + high) / 2)
        above = size > middle if code % 2 else size >= middle  # ties go to the even code
        codes = codes + select(above, np.uint8(1), np.uint8(0))
    return select(values != values, np.uint8(7), codes)


class _Groups:
    """Groups of 32 along an axis of src, and the bits of their greatest magnitudes."""

    def __init__(self, case: Case) -> None:
        kind, algorithm = case.word("quant_type") or "MXFP8", case.word("quantScaleAlg") or "ocp"
        self.axis = int((case.word("grpAxis") or "axis1")[-1])
        self.simulated = case.profile.shared_exponents == "simulator"
        self.packs, self._dtype = kind != "MXFP8", element(case, "src")
        self._nv, self.codes = algorithm == "nv", _EXPONENTS[kind, algorithm]
        self._cut = _SIMULATED.get((kind, algorithm)) if self.simulated else None

    def read(self, x: Mover, src: Tile, i: Lanes, j: Lanes, where: Any = None) -> Lanes:
        value = x.read(src, i, j, where)
        if self._dtype is F32:
            return value
        return lanes.convert(value, self._dtype, F32, Round.RINT, False)

    def greatest(self, x: Mover, src: Tile, shape: tuple[int, int]) -> Callable[..., Lanes]:
        """The greatest magnitudes, computed once; a short last group is padded with zeros."""
        length, across = src.get_valid()[self.axis], self.axis == 1

        def one(i: Lanes, j: Lanes) -> Lanes:
            def longer(k: Lanes, best: Lanes) -> tuple[Lanes]:
                at = (j if across else i) * MX_BLOCK_SIZE + k
                r, c = (i, at) if across else (at, j)
                size = self.read(x, src, r, c, at < length).view(np.uint32) & 0x7FFF_FFFF
                size = size if self._cut is None else self._cut(size)
                return (greater_of(best, select(at < length, size, const(size, 0))),)

            return x.fold(MX_BLOCK_SIZE, [np.zeros(1, np.uint32)], longer)[0]

        height, width = src.type.shape
        most = (height, -(-width // MX_BLOCK_SIZE))
        most = most if across else (-(-height // MX_BLOCK_SIZE), width)
        return x.hold(*shape, one, U32, most)

    def encoded(self, x: Mover, src: Tile, greatest: Callable[..., Lanes]) -> Callable[..., Lanes]:
        """An item of dst: one element, or a pair."""

        def scaled(i: Lanes, j: Lanes) -> Lanes:
            at = (i, j // MX_BLOCK_SIZE) if self.axis == 1 else (i // MX_BLOCK_SIZE, j)
            return lanes.mul(self.read(x, src, i, j), _scaling(self.codes(greatest(*at))))

        def item(i: Lanes, j: Lanes) -> Lanes:
            if self.packs:
                return _e2m1(scaled(i, j * 2)) | _e2m1(scaled(i, j * 2 + 1)) << 4
            if self.simulated:
                return _e4m3_simulated(scaled(i, j), self._nv)
            return _e4m3(scaled(i, j))

        return item


class _Result(NamedTuple):
    """The content of an output tile: cell(i, j) of a shape, stored at [i,j] if the valid region has
    this shape.

    Otherwise, or with `in_order`, the values are stored in one stream.
    """

    tile: Tile
    shape: tuple[int, int]
    cell: Callable[..., Lanes]
    in_order: bool = False

    def _has_region(self) -> Any:
        (rows, cols), (height, width) = self.tile.get_valid(), self.shape
        return (rows == height) & (cols == width)

    def check(self, x: Mover) -> None:
        tile, (rows, cols) = self.tile, self.shape
        plain, capacity = tile.nbytes == tile.type.nbytes, x.items(tile)
        fits, regular = rows * cols <= capacity, self._has_region()
        if self.in_order:
            x.require(plain, lambda: gaps(tile))
        elif not plain:
            x.require(regular, lambda: gaps(tile))
        x.require(
            fits | regular,
            lambda: fail(
                "PTO-S044", f"{tile.type} has room for {capacity} values, not {rows * cols}"
            ),
        )

    def put(self, x: Mover) -> None:
        rows, cols = self.shape

        def stream() -> None:
            x.place(rows, cols, lambda i, j: (i * cols + j, self.cell(i, j), None), self.tile)

        def each() -> None:
            x.each(rows, cols, self.cell, self.tile)

        if self.in_order:
            stream()
        else:
            x.when(self._has_region(), each, stream)


def _zigzag(x: Mover, shape: tuple[int, int], cell: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """Boxes of 16x2, row by row: the order of the cube for NZ data."""
    rows, cols = shape
    x.require(
        (rows % 16 == 0) & (cols % 2 == 0),
        lambda: fail(
            "PTO-S044", f"exponents of {rows}x{cols} do not fill the 16x2 boxes of storeMode nz"
        ),
    )
    across = cols // 2

    def at(_: Lanes, k: Lanes) -> Lanes:
        box = k // 32
        return cell(box // across * 16 + k // 2 % 16, box % across * 2 + k % 2)

    return at


def _interleaved(
    x: Mover, shape: tuple[int, int], cell: Callable[..., Lanes]
) -> tuple[tuple[int, int], Callable[..., Lanes]]:
    """Rows 2p and 2p+1 of the exponents interleaved, element by element (TQUANT_DN.md)."""
    rows, cols = shape
    x.require(
        rows % 2 == 0,
        lambda: fail("PTO-S044", f"{rows} rows of exponents do not pair up to be interleaved"),
    )
    return (rows // 2, cols * 2), lambda i, j: cell(i * 2 + j % 2, j // 2)


def _quantise_groups(case: Case) -> Callable[..., None]:
    groups, interleave = _Groups(case), case.word("interleave") == "true"

    def some(
        x: Mover, src: Tile, dst: Tile, exp: Tile, max: Tile, scaling: Tile, zz: Tile | None
    ) -> None:
        rows, cols = src.get_valid()
        if groups.packs:
            x.require(
                cols % 2 == 0,
                lambda: fail(
                    "PTO-T003",
                    f"a byte holds two values, but the number of columns, {cols}, is odd",
                ),
            )
        lines = (rows, _up(cols)) if groups.axis == 1 else (_up(rows), cols)
        greatest = groups.greatest(x, src, lines)

        def exponent(i: Lanes, j: Lanes) -> Lanes:
            return groups.codes(greatest(i, j)).astype(np.uint8)

        def largest(i: Lanes, j: Lanes) -> Lanes:
            return _as_type(greatest(i, j).view(np.float32), max.type.dtype)

        def factor(i: Lanes, j: Lanes) -> Lanes:
            return _as_type(_scaling(groups.codes(greatest(i, j))), scaling.type.dtype)

        outputs = _interleaved(x, lines, exponent) if interleave else (lines, exponent)
        items = (rows, cols // 2 if groups.packs else cols)
        results = [
            _Result(dst, items, groups.encoded(x, src, greatest)),
            _Result(exp, *outputs),
            _Result(max, lines, largest, groups.simulated),
            _Result(scaling, lines, factor, groups.simulated),
        ]
        if zz is not None:
            results.append(_Result(zz, (1, lines[0] * lines[1]), _zigzag(x, lines, exponent)))
        for result in results:
            result.check(x)
        for result in results:
            result.put(x)

    def step(x: Mover, src: Tile, *rest: Any) -> None:
        rows, cols = src.get_valid()
        x.when((rows > 0) & (cols > 0), lambda: some(x, src, *rest))

    return step


def _up(length: int) -> int:
    return (length + MX_BLOCK_SIZE - 1) // MX_BLOCK_SIZE


def _as_type(values: Lanes, dst: DType) -> Lanes:
    return values if dst is F32 else lanes.convert(values, F32, dst, Round.RINT, False)


QUANTISE = Move(_quantise)
DEQUANTISE = Move(lambda case: _dequantise)
QUANTISE_GROUPS = Move(_quantise_groups)
