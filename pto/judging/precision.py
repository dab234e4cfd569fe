"""When a result is right: tolerances, or mean and largest relative error by element type.

The relative errors are the public standard for operators of this hardware: the mean is below a
threshold of the type, the largest below ten times that. Where they are not, elements are counted
apart: small expected values, results near zero by cancellation, and others. A result is right if in
each group at most twice as many are wrong as in a computation in the element type, and the mean of
the others is below the threshold, or twice that of such a computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode, encode
from pto.core.errors import Diagnostic, PtoError
from pto.lang.diff.compare import Tolerance, differs

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
_EPSILON = 1e-7


class TaskError(PtoError):
    """The task is wrong, not the candidate."""


def wrong_task(
    task: str, message: str, help: str = "docs/guide/judge.md shows a task"
) -> TaskError:
    return TaskError(Diagnostic("PTO-U350", f"task {task}: {message}", help=help))


@dataclass(frozen=True, slots=True)
class Threshold:
    """The limits of one element type."""

    mean: float  # of relative errors
    small: float  # expected values below are small
    error: float  # allowed absolute error of a small value
    cancelled: float  # results below may be what cancellation left


THRESHOLDS = {
    "f16": Threshold(2.0**-10, 2.0**-11, 2.0**-16, 2.0**-5),
    "bf16": Threshold(2.0**-7, 2.0**-8, 2.0**-16, 2.0**-3),
    "f32": Threshold(2.0**-13, 2.0**-14, 2.0**-30, 2.0**-8),
    "f8e4m3": Threshold(2.0**-3, 2.0**-4, 2.0**-6, 2.0**-1),
    "f8e5m2": Threshold(2.0**-2, 2.0**-3, 2.0**-5, 2.0**0),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one output."""

    wrong: Mask  # elements at fault; none if the output is right
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
    means: Mapping[str, float] = field(default_factory=dict[str, float])  # other thresholds

    def compare(
        self,
        kind: DType,
        items: Array,
        expected: Array,
        in_type: Callable[[], Array | None] = lambda: None,
    ) -> Compared:
        """Compare an output with exact values. `in_type` computes them in the element type."""
        got, aim = decode(kind, items), np.asarray(expected)
        if self.tolerance is not None:
            return _by_tolerance(kind, got, aim, self.tolerance)
        mean = self.means.get(kind.name)
        if kind.name not in THRESHOLDS or mean == 0:
            return _by_tolerance(kind, got, aim, Tolerance(atol=mean or 0.0))
        return _by_errors(kind, got, aim.astype(np.float64), mean, in_type)


def _by_errors(
    kind: DType, got: Array, aim: Array, mean: float | None, in_type: Callable[[], Array | None]
) -> Compared:
    limit = THRESHOLDS[kind.name]
    mean = limit.mean if mean is None else mean
    rounded = decode(kind, encode(kind, aim, saturate=False))
    opposite = np.isinf(got) & np.isinf(rounded) & (got != rounded)
    special = (np.isnan(got) != np.isnan(rounded)) | opposite
    if special.any():
        return Compared(special, 0.0, 0.0, "NaN or infinity in other places")
    with np.errstate(all="ignore"):
        got, rounded = _saturated(kind, got, rounded), _saturated(kind, rounded, got)
        same = (got == rounded) | np.isnan(got)
        apart = np.where(same, 0.0, np.abs(got - rounded))
        relative = np.where(same, 0.0, apart / (np.abs(rounded) + _EPSILON))
    compared = ~np.isnan(rounded)
    mean_error = float(relative[compared].mean()) if compared.any() else 0.0
    max_error = float(relative.max(initial=0.0))
    if mean_error < mean and max_error < 10 * mean:
        return Compared(np.zeros(got.shape, np.bool_), mean_error, max_error)
    small = np.abs(rounded) < limit.small
    near = (np.abs(got) < limit.cancelled) & (np.abs(rounded) < limit.cancelled) & ~small
    other = _errors_in_type(rounded, in_type())
    groups = {
        "small values": (small, apart > limit.error, other[0] > limit.error),
        "values near zero": (near, relative > 10 * mean, other[1] > 10 * mean),
        "values": (~small & ~near, relative > 10 * mean, other[1] > 10 * mean),
    }
    for name, (where, missed, missed_in_type) in groups.items():
        count, base = int((where & missed).sum()), int((where & missed_in_type).sum())
        if count > 2 * (base if name == "values" else max(1, base)):
            limits = f"more than {10 * mean:.3g} of their value"
            limits = f"more than {limit.error:.3g}" if name == "small values" else limits
            words = f"{count:,} {name} are {limits} off, {base:,} if computed in {kind}"
            return Compared(where & missed, mean_error, max_error, words)
    where = ~small & ~near & compared
    mean_found, base = (
        float(errors[where].mean()) if where.any() else 0.0 for errors in (relative, other[1])
    )
    if mean_found >= mean and mean_found > 2 * base:
        words = f"mean relative error {mean_found:.3g}, allowed {mean:.3g}"
        return Compared(where & (relative >= mean), mean_error, max_error, words)
    return Compared(np.zeros(got.shape, np.bool_), mean_error, max_error)


def _saturated(kind: DType, values: Array, others: Array) -> Array:
    """Infinite values as the largest of the type, where the other side is finite."""
    is_beyond = np.isinf(values) & np.isfinite(others)
    return np.where(is_beyond, np.copysign(float(kind.max), values), values)


def _errors_in_type(rounded: Array, values: Array | None) -> tuple[Array, Array]:
    """Absolute and relative errors of a computation in the element type."""
    if values is None:
        return np.zeros(rounded.shape), np.zeros(rounded.shape)
    with np.errstate(all="ignore"):
        apart = np.abs(np.asarray(values, np.float64) - rounded)
        return apart, apart / (np.abs(rounded) + _EPSILON)


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
    """The rule from `precision = {"rtol": 1e-5}`: rtol, atol, ulp, or thresholds by type."""
    if not words:
        return Precision()
    if set(words) <= {"rtol", "atol", "ulp"}:
        tolerances = {n: float(words.get(n, 0)) for n in ("rtol", "atol")}
        return Precision(Tolerance(**tolerances, ulp=int(words.get("ulp", 0))))
    if set(words) & {"rtol", "atol", "ulp"}:
        message = f"precision has {', '.join(sorted(words))}"
        raise wrong_task(task, message, "write rtol, atol and ulp, or thresholds by type")
    return Precision(means={n: float(v) for n, v in words.items()})
