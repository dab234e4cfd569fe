"""When a result is right: tolerances, or mean and largest relative error by element type.

The relative errors are the public standard for operators of this hardware: mean at most a threshold
of the type, largest at most ten times that. Elements whose expected value is small are counted
instead: at most twice as many of them may be wrong as a computation in the element type gets wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode
from pto.core.errors import fail
from pto.lang.diff.compare import Tolerance, differs

Array = npt.NDArray[Any]
_EPSILON = 1e-7


@dataclass(frozen=True, slots=True)
class Threshold:
    """The limits of one element type."""

    mean: float  # of relative errors
    small: float  # expected values below are small
    error: float  # allowed absolute error of a small value


THRESHOLDS = {
    "f16": Threshold(2.0**-10, 2.0**-11, 2.0**-16),
    "bf16": Threshold(2.0**-7, 2.0**-8, 2.0**-16),
    "f32": Threshold(2.0**-13, 2.0**-14, 2.0**-30),
    "f8e4m3": Threshold(2.0**-3, 2.0**-4, 2.0**-6),
    "f8e5m2": Threshold(2.0**-2, 2.0**-3, 2.0**-5),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one output."""

    wrong: npt.NDArray[np.bool_]  # elements at fault; none if the output is right
    mean_error: float
    max_error: float
    reason: str = ""

    @property
    def is_right(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Precision:
    """The rule of a task: a tolerance, or None for relative errors by element type."""

    tolerance: Tolerance | None = None
    mean: float | None = None  # instead of the threshold of the type

    def compare(
        self,
        kind: DType,
        items: Array,
        expected: Array,
        in_type: Callable[[], Array | None] = lambda: None,
    ) -> Compared:
        """Compare an output with exact values. `in_type` computes them in the element type."""
        got, aim = decode(kind, items), np.asarray(expected)
        if not kind.is_float or (self.tolerance is None and kind.name not in THRESHOLDS):
            return _by_tolerance(kind, got, aim, self.tolerance or Tolerance())
        if self.tolerance is not None:
            return _by_tolerance(kind, got, aim, self.tolerance)
        return self._by_errors(kind, got, aim.astype(np.float64), in_type)

    def _by_errors(
        self, kind: DType, got: Array, aim: Array, in_type: Callable[[], Array | None]
    ) -> Compared:
        limit = THRESHOLDS[kind.name]
        mean = self.mean or limit.mean
        rounded = _finite_range(kind, aim)
        special = ~np.isfinite(rounded) | ~np.isfinite(got)
        with np.errstate(all="ignore"):
            same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
            apart = np.where(special, 0.0, np.abs(got - rounded))
            relative = np.where(special, 0.0, apart / (np.abs(rounded) + _EPSILON))
        mismatched = special & ~same
        small = ~special & (np.abs(rounded) < limit.small)
        normal = relative[~special & ~small]
        mean_error = float(normal.mean()) if normal.size else 0.0
        max_error = float(normal.max()) if normal.size else 0.0
        too_far = ~small & (relative >= 10 * mean)
        missed = small & (apart > limit.error)
        if mismatched.any():
            return Compared(mismatched, mean_error, max_error, "NaN or infinity in other places")
        if too_far.any():
            words = f"largest relative error {max_error:.3g}, allowed {10 * mean:.3g}"
            return Compared(too_far, mean_error, max_error, words)
        if mean_error >= mean:
            words = f"mean relative error {mean_error:.3g}, allowed {mean:.3g}"
            return Compared(~small & (relative >= mean), mean_error, max_error, words)
        count = int(missed.sum())
        if count > 2:
            allowed = 2 * max(1, _missed(limit, rounded, small, in_type()))
            if count > allowed:
                words = (
                    f"{count} small values are more than {limit.error:.3g} off, allowed {allowed}"
                )
                return Compared(missed, mean_error, max_error, words)
        return Compared(np.zeros(got.shape, np.bool_), mean_error, max_error)


def _finite_range(kind: DType, aim: Array) -> Array:
    """Expected values, infinite where the element type cannot hold them."""
    most = float(kind.max)
    with np.errstate(all="ignore"):
        beyond = np.isfinite(aim) & (np.abs(aim) > most * (1 + 2.0**-12))
    return np.where(beyond, np.copysign(np.inf, aim), aim)


def _missed(limit: Threshold, aim: Array, small: Array, other: Array | None) -> int:
    if other is None:
        return 0
    with np.errstate(all="ignore"):
        return int((small & (np.abs(np.asarray(other, np.float64) - aim) > limit.error)).sum())


def _by_tolerance(kind: DType, got: Array, aim: Array, within: Tolerance) -> Compared:
    wrong = differs(kind, got, aim, within)
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype(np.float64) - aim.astype(np.float64))
        relative = apart / (np.abs(aim.astype(np.float64)) + _EPSILON)
    finite = relative[np.isfinite(relative)]
    mean_error = float(finite.mean()) if finite.size else 0.0
    max_error = float(finite.max()) if finite.size else 0.0
    words = f"{int(wrong.sum()):,} of {wrong.size:,} elements differ, compared {within}"
    return Compared(wrong, mean_error, max_error, words if wrong.any() else "")


def of_words(task: str, words: Mapping[str, float] | None) -> Precision:
    """The rule from `precision = {"rtol": 1e-5}`; members: rtol, atol, ulp, or mean."""
    if words is None:
        return Precision()
    others = set(words) - {"rtol", "atol", "ulp", "mean"}
    if others or ("mean" in words and len(words) > 1):
        message = f"precision has {', '.join(sorted(others or words))}"
        raise fail("PTO-U350", f"task {task}: {message}", help="write rtol, atol and ulp, or mean")
    if "mean" in words:
        return Precision(mean=float(words["mean"]))
    given = Tolerance(
        float(words.get("rtol", 0)), float(words.get("atol", 0)), int(words.get("ulp", 0))
    )
    return Precision(given)
