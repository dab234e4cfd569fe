"""TIMG2COL: a feature map as the matrix of a convolution, and the registers that describe it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.constants import C0_SIZE_BYTE
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.patch import paste
from pto.isa.row.attributes import Int
from pto.isa.rules.rule import Case


def _number(case: Case, name: str) -> int:
    value = case.op.attrs.get(name)
    if isinstance(value, Int):
        return value.value
    return int(case.word(name) or 0)


@dataclass(frozen=True, slots=True)
class Plane:
    """What the FMATRIX register holds."""

    h: int
    w: int
    left: int
    right: int
    top: int
    bottom: int

    @classmethod
    def of(cls, case: Case) -> Plane:
        sides = (f"pad_{side}" for side in ("left", "right", "top", "bottom"))
        return cls(*(_number(case, name) for name in ("h", "w", *sides)))


def _matrix(case: Case) -> tuple[str, bool]:
    """Which register, A or B, and whether timg2col sets it by itself."""
    words = (case.word("fmatrix") or "FMATRIX_A_MANUAL").split("_")
    return words[1], words[2] == "AUTO"


@dataclass(frozen=True, slots=True)
class Filter:
    """Sizes and steps of the convolution beside the map itself."""

    n: int
    d: int
    c1: int
    filter_h: int
    filter_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    def out(self, plane: Plane) -> tuple[int, int]:
        """Rows and columns of the result."""
        high = plane.h + plane.top + plane.bottom - self.dilation_h * (self.filter_h - 1) - 1
        wide = plane.w + plane.left + plane.right - self.dilation_w * (self.filter_w - 1) - 1
        return high // self.stride_h + 1, wide // self.stride_w + 1


def _img2col(case: Case) -> Callable[..., None]:
    types = [case.type(name) for name in ("src", "dst")]
    own, (matrix, auto) = Plane.of(case), _matrix(case)
    steps = Filter(*(_number(case, name) for name in Filter.__slots__))
    channels, pad = _number(case, "channels"), _number(case, "pad_value")

    def run(core: Machine, src: Any, pos_m: int | None, pos_k: int | None, dst: Any) -> None:
        source, target = map(as_tile, (src, dst), types)
        rows, cols = target.get_valid()
        plane, outside = own, pad
        if auto:
            registers.put(core, f"{registers.FMATRIX} {matrix}", own)
        else:
            plane = registers.get(core, f"{registers.FMATRIX} {matrix}") or own
            known = registers.get(core, f"{registers.IMG2COL_PADDING} {matrix}")
            outside = pad if known is None else known
        m, k = np.arange(rows) + (pos_m or 0), np.arange(cols) + (pos_k or 0)
        offsets, inside = _offsets(source, plane, steps, m[:, None], k[None, :], channels)
        storage = target.type.dtype.storage
        values = np.full((rows, cols), outside & (256**storage.itemsize - 1), storage)
        values[inside] = source.items[offsets[inside]]
        paste(target, 0, 0, values)

    return run


def _offsets(
    src: Tile, plane: Plane, steps: Filter, m: Lanes, k: Lanes, channels: int
) -> tuple[Lanes, Lanes]:
    """Element of src for every (m, k), and whether there is one: tile.yaml#pto.timg2col."""
    c0 = C0_SIZE_BYTE // src.type.itemsize
    count = steps.n * steps.d * steps.c1 * plane.h * plane.w * c0
    if count > src.items.size:
        raise fail(
            "PTO-S173",
            f"the feature map has {count} elements, {src.type} holds {src.items.size}",
        )
    out_h, out_w = steps.out(plane)
    if out_h < 1 or out_w < 1:
        raise fail("PTO-S174", f"the filter is larger than the padded map of {plane.h}x{plane.w}")
    n, rest = m // (steps.d * out_h * out_w), m % (steps.d * out_h * out_w)
    d, spot = rest // (out_h * out_w), rest % (out_h * out_w)
    c1, tap = k // (steps.filter_h * steps.filter_w * c0), k // c0
    kh, kw = tap // steps.filter_w % steps.filter_h, tap % steps.filter_w
    h = spot // out_w * steps.stride_h + kh * steps.dilation_h - plane.top
    w = spot % out_w * steps.stride_w + kw * steps.dilation_w - plane.left
    most = channels or steps.c1 * c0
    inside = (n < steps.n) & (c1 < steps.c1) & (c1 * c0 + k % c0 < most)
    inside = inside & (h >= 0) & (h < plane.h) & (w >= 0) & (w < plane.w)
    place = (((n * steps.d + d) * steps.c1 + c1) * plane.h + h) * plane.w + w
    return place * c0 + k % c0, np.broadcast_to(inside, place.shape)


def _set(name: str, value: Callable[[Case], Any]) -> Do:
    """Load a register of matrix A or B."""

    def make(case: Case) -> Callable[..., None]:
        register, content = f"{name} {_matrix(case)[0]}", value(case)
        return lambda core, src: registers.put(core, register, content)

    return Do(make)


_REPEATS = ("repeat_stride", "repeat_time", "repeat_mode", "dst_stride")

IMG2COL = Do(_img2col)
SET_FMATRIX = _set(registers.FMATRIX, Plane.of)
# How the hardware walks; timg2col covers the valid region of dst whatever it is.
SET_REPEAT = _set(registers.IMG2COL_RPT, lambda case: tuple(_number(case, n) for n in _REPEATS))
SET_PADDING = _set(registers.IMG2COL_PADDING, lambda case: _number(case, "pad_value"))
