"""The fixpipe's conversion of accumulator values, on plain arrays: scale, relu, narrow, clip.

A mode is a value of `pre_quant` without its suffix. The micro-instruction manual
(mte_l0c_gm) lists the modes and the bits of a parameter word. Stores of accumulator
tiles with quantisation use the same conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pto.core.convert import Round
from pto.core.dtypes import F16, F32, DType
from pto.core.errors import fail
from pto.core.primitives import const, isnan, less_of, rint, select
from pto.isa.meaning.lanes import convert
from pto.target.facts import FIXPIPE, Scaling

Array = npt.NDArray[Any]
F32s = npt.NDArray[np.float32]

_SCALE_BITS: Final = np.uint64(0xFFFFE000)  # a channel's scale has 19 bits
CASTS: Final = ("f32_f16", "f32_bf16")  # these modes have a parameter but do not scale
_THROUGH_F16: Final = "qf162"

# Scaled integers are rounded into this range before the offset: the goldens of pto-isa's tests
# clip to 9 bits for 8-bit results and to 17 bits for 16-bit ones.
_STAGE: Final = {4: (-256, 255), 8: (-256, 255), 16: (-65536, 65535)}


@dataclass(frozen=True, slots=True)
class Scale:
    """Parameters of a quantisation, one for all channels or one per channel (column)."""

    scale: F32s
    offset: npt.NDArray[np.int64]
    signed: npt.NDArray[np.bool_] | None  # None: the sign of the destination type

    @classmethod
    def number(cls, value: float) -> Scale:
        """A scale from a float: no offset, the sign of the destination."""
        return cls(np.float32(value).reshape(1), np.zeros(1, np.int64), None)

    @classmethod
    def word(cls, words: npt.NDArray[np.uint64]) -> Scale:
        """A scale from a scalar parameter word: a whole f32, offset in [45:37], sign in [46]."""
        low = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        return cls(low.view(np.float32), _offset(words), _sign(words))

    @classmethod
    def words(cls, words: npt.NDArray[np.uint64]) -> Scale:
        """Scales from one word per channel: bits [31:13], an f32 with 10 mantissa bits."""
        scale = (words & _SCALE_BITS).astype(np.uint32).view(np.float32)
        return cls(scale, _offset(words), _sign(words))


def _offset(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The offset: nine bits, two's complement; ops-nn aclnnTransQuantParam packs -256 to 255 so."""
    field = (words >> np.uint64(37) & np.uint64(0x1FF)).astype(np.int64)
    return (field ^ 0x100) - 0x100


def _sign(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    return (words >> np.uint64(46) & np.uint64(1)).astype(np.bool_)


def limited(values: Array, low: Any, high: Any) -> Array:
    """Values clamped to a range; NaN stays NaN."""
    return select(values < low, low, select(values > high, high, values))


def rectified(values: Array, scaling: Scaling) -> Array:
    """Negative values replaced by 0."""
    positive = values > 0 if scaling.relu_of_nan == "zero" else (values > 0) | isnan(values)
    return select(positive, values, const(values, 0))


def _numbers(values: Array) -> Array:
    """NaN replaced by 0."""
    return select(values != values, values.dtype.type(0), values)


@dataclass(frozen=True, slots=True)
class Finish:
    """The whole conversion from an accumulator to items of `dst`."""

    mode: str | None = None  # mode of pre_quant; None: no quantisation
    scale: Scale | None = None
    relu: str = "no_relu"
    alpha: F32s | None = None  # slope of scalar_relu, or one per channel of vector_relu
    clip: Any = None
    saturate: bool = True
    keep_nan: bool = False
    scaling: Scaling = FIXPIPE

    def apply(self, values: Array, src: DType, dst: DType) -> Array:
        """Items of `dst` in the same shape; a packed type gives unpacked 4-bit codes."""
        if src is dst and self.mode is None and self.relu == "no_relu":
            return self._clipped(values.view(dst.numpy))
        if self.mode is not None and "hybrid" in self.mode:
            raise fail("PTO-T162", f"rounding of {self.mode} is not defined by the ISA")
        return self._integers(values, src, dst) if dst.is_integer else self._floats(values, dst)

    def _scaled(self, values: Array) -> F32s:
        """The accumulator times the scale in f32; some modes round to f16 first."""
        wide = values.astype(np.float32)
        if self.mode is None or self.scale is None or self.mode in CASTS:
            return wide
        if self.mode.startswith(_THROUGH_F16):
            wide = convert(wide, F32, F16, Round.RINT, False).astype(np.float32)
        return wide * self.scale.scale

    def _floats(self, values: Array, dst: DType) -> Array:
        """Convert floats to `dst`: to nearest even; ties away from zero for hifloat8."""
        rectified = self._rectified(self._scaled(values))
        items = convert(rectified, F32, dst, Round.NONE, self.saturate, self.keep_nan)
        return self._clipped(items)

    def _integers(self, values: Array, src: DType, dst: DType) -> Array:
        """Scale, round to nearest even, add the offset, saturate; then relu and clip."""
        low, high = self._range(dst)
        if self.mode is None:
            scaled = values.astype(np.float64)
        else:
            scaled = self._shifted(self._scaled(values), dst)
        inside = limited(rint(_numbers(scaled)), low, high)
        integers = limited(rint(self._rectified(inside)), low, high).astype(np.int64)
        if self.clip is not None:
            integers = less_of(integers, int(self.clip))
        mask = (1 << dst.bits) - 1
        codes = (integers & mask).astype(dst.storage)
        return codes if dst.is_packed else codes.view(dst.numpy)

    def _shifted(self, scaled: F32s, dst: DType) -> Array:
        """The scaled elements plus the offset of their words."""
        offset = None if self.scale is None else self.scale.offset
        if self.scaling.offset == "unsigned":
            return scaled if offset is None else scaled + (offset & 0x1FF).astype(np.float32)
        stage = _STAGE.get(dst.bits, (dst.min, dst.max))
        rounded = rint(limited(_numbers(scaled.astype(np.float64)), *stage))
        return rounded if offset is None else rounded + offset.astype(np.float64)

    def _range(self, dst: DType) -> tuple[Any, Any]:
        """The range of the result: the parameter decides the sign of bytes, not the pointer."""
        if dst.bits != 8 or self.scale is None or self.scale.signed is None:
            return np.float64(dst.min), np.float64(dst.max)
        signed = self.scale.signed
        least = select(signed, np.float64(-128), np.float64(0))
        return least, select(signed, np.float64(127), np.float64(255))

    def _rectified(self, x: Array) -> Array:
        """Negative values replaced by 0, or multiplied by a slope."""
        if self.relu == "no_relu":
            return x
        below = x * 0 if self.alpha is None else x * self.alpha
        if self.relu == "normal_relu":
            return rectified(x, self.scaling)
        return select(x >= 0, x, below)

    def _clipped(self, items: Array) -> Array:
        """min(item, clip), after narrowing: golden fixpipe-clip-ub-cv."""
        if self.clip is None:
            return items
        limit = items.dtype.type(self.clip)
        return select(items > limit, limit, items)
