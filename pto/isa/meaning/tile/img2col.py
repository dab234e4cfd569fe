"""TIMG2COL: a feature map as the matrix of a convolution, and the registers that describe it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pto.core.constants import C0_SIZE_BYTE
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, select
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case

FAR = 1 << 31  # limit of the rows and columns of a matrix


def number(case: Case, name: str) -> int:
    """The value of an attribute, else its default, else 0."""
    return int(case.word(name) or 0)


class FeatureMap(NamedTuple):
    """The content of the FMATRIX register."""

    h: int
    w: int
    left: int
    right: int
    top: int
    bottom: int

    @classmethod
    def of(cls, case: Case) -> FeatureMap:
        sides = (f"pad_{side}" for side in ("left", "right", "top", "bottom"))
        return cls(*(number(case, name) for name in ("h", "w", *sides)))


def matrix_of(case: Case) -> tuple[str, bool]:
    """The register, A or B, and whether timg2col sets it itself."""
    words = (case.word("fmatrix") or "FMATRIX_A_MANUAL").split("_")
    return words[1], words[2] == "AUTO"


@dataclass(frozen=True, slots=True)
class Filter:
    """Sizes and strides of the convolution."""

    n: int
    d: int
    c1: int
    filter_h: int
    filter_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    def span(self, plane: FeatureMap) -> tuple[int, int]:
        """The greatest offset of the filter down and across; negative if it does not fit."""
        high = plane.h + plane.top + plane.bottom - self.dilation_h * (self.filter_h - 1) - 1
        wide = plane.w + plane.left + plane.right - self.dilation_w * (self.filter_w - 1) - 1
        return high, wide


def _img2col(case: Case) -> Callable[..., None]:
    feature_map, (matrix, auto) = FeatureMap.of(case), matrix_of(case)
    steps = Filter(*(number(case, name) for name in Filter.__slots__))
    channels, pad = number(case, "channels"), number(case, "pad_value")
    register, beside = f"{registers.FMATRIX} {matrix}", f"{registers.IMG2COL_PADDING} {matrix}"

    def run(x: Mover, src: Tile, pos_m: Any, pos_k: Any, dst: Tile) -> None:
        first = x.number(pos_m), x.number(pos_k)
        if auto:
            _move(x, src, dst, feature_map, steps, first, channels, pad)
            x.put(register, *feature_map)
            return
        has_map, has_padding = x.has(register), x.has(beside)
        plane = FeatureMap(
            *(x.choose(has_map, lambda n=n: x.get(register, n), feature_map[n]) for n in range(6))
        )
        outside = x.choose(has_padding, lambda: x.get(beside), pad)
        _move(x, src, dst, plane, steps, first, channels, outside)

    return run


def _move(
    x: Mover,
    src: Tile,
    dst: Tile,
    plane: FeatureMap,
    steps: Filter,
    first: tuple[int, int],
    channels: int,
    outside: int,
) -> None:
    """Copy the element of src for every (m, k), or the pad: pto-isa TImg2col.hpp."""
    c0, stored = C0_SIZE_BYTE // src.type.itemsize, dst.type.dtype.storage
    count, have = plane.h * plane.w * (steps.n * steps.d * steps.c1 * c0), x.items(src)
    x.require(
        count <= have,
        lambda: fail("PTO-S173", f"the feature map has {count} elements, {src.type} holds {have}"),
    )
    high, wide = steps.span(plane)
    x.require(
        (high >= 0) & (wide >= 0),
        lambda: fail(
            "PTO-S174", f"the filter is larger than the padded map of {plane.h}x{plane.w}"
        ),
    )
    row, col = first
    x.require(
        (row >= 0) & (row < FAR) & (col >= 0) & (col < FAR),
        lambda: fail("PTO-S175", f"position ({row}, {col}) is negative: positions start at 0"),
    )
    out_h, out_w = high // steps.stride_h + 1, wide // steps.stride_w + 1
    most = channels or steps.c1 * c0

    def cell(i: Lanes, tap: Lanes, channel: Lanes) -> Lanes:
        m = i + row
        n, rest = m // (out_h * out_w * steps.d), m % (out_h * out_w * steps.d)
        d, pixel = rest // (out_h * out_w), rest % (out_h * out_w)
        c1 = tap // (steps.filter_h * steps.filter_w)
        kh, kw = tap // steps.filter_w % steps.filter_h, tap % steps.filter_w
        h = pixel // out_w * steps.stride_h + kh * steps.dilation_h - plane.top
        w = pixel % out_w * steps.stride_w + kw * steps.dilation_w - plane.left
        inside = (n < steps.n) & (c1 < steps.c1) & (c1 * c0 + channel < most)
        inside = inside & (h >= 0) & (h < plane.h) & (w >= 0) & (w < plane.w)
        at = (((n * steps.d + d) * steps.c1 + c1) * plane.h + h) * plane.w + w
        value = x.item(src, at * c0 + channel, inside).view(stored)
        return select(inside, value, x.word(outside, stored))

    def taps() -> None:
        """The lanes of one filter tap."""
        x.each(*size, lambda i, j: cell(i, j // c0 + col // c0, j % c0), dst, by=c0)

    def anywhere() -> None:
        x.each(*size, lambda i, j: cell(i, (j + col) // c0, (j + col) % c0), dst)

    size = dst.get_valid()
    x.when(col % c0 == 0, taps, anywhere)


def _set(name: str, words: Callable[[Case], tuple[int, ...]]) -> Move:
    """Load a register of matrix A or B."""

    def make(case: Case) -> Callable[..., None]:
        register, content = f"{name} {matrix_of(case)[0]}", words(case)
        return lambda x, src: x.put(register, *content)

    return Move(make)


_REPEATS = ("repeat_stride", "repeat_time", "repeat_mode", "dst_stride")

IMG2COL = Move(_img2col)
SET_FMATRIX = _set(registers.FMATRIX, FeatureMap.of)
# The order in which the hardware iterates; timg2col covers the valid region of dst in any order.
SET_REPEAT = _set(registers.IMG2COL_RPT, lambda case: tuple(number(case, n) for n in _REPEATS))
SET_PADDING = _set(registers.IMG2COL_PADDING, lambda case: (number(case, "pad_value"),))
