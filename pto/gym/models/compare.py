"""Whether results agree: with a golden within upstream's bounds, with an engine bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode
from pto.gym.models.rules import Rules
from pto.suite.result import RejectedElement

Array = npt.NDArray[Any]


def bits_differ(name: str, got: Array, expected: Array) -> RejectedElement | None:
    """The first element of other bits."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    return _first(name, got, expected, got.view(unsigned) != expected.view(unsigned))


def differs(
    name: str, kind: DType | None, got: Array, expected: Array, rules: Rules
) -> RejectedElement | None:
    """The first element that upstream's judge would reject."""
    count = rules.compared.get(name, got.size)
    got, expected = got[:count], expected[:count]
    if kind is None or not kind.is_float:
        return _first(name, got, expected, got != expected)
    a, b = (np.asarray(decode(kind, v.view(kind.storage)), np.float64) for v in (got, expected))
    if kind.name == "bf16":
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (_steps(got, expected) <= rules.ulps))
    else:
        near = rules.closeness.get({"f16": "half", "f32": "float"}.get(kind.name, ""), 0.0)
        wrong = ~np.isclose(a, b, rtol=near, atol=near, equal_nan=True)
    return _first(name, a, b, wrong)


def _steps(got: Array, expected: Array) -> npt.NDArray[np.int64]:
    """How many 16-bit floats lie between two."""

    def place(values: Array) -> npt.NDArray[np.int64]:
        raw = values.view(np.uint16).astype(np.int64)
        return np.where(raw & 0x8000, 0x7FFF - raw, raw)

    return np.abs(place(got) - place(expected))


def _first(name: str, got: Array, expected: Array, wrong: Array) -> RejectedElement | None:
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    counts = int(wrong.sum()), int(wrong.size)
    return RejectedElement((at,), str(got[at]), str(expected[at]), *counts, file=name)
