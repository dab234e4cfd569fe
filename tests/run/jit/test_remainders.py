"""Rests of divisions in compiled code: those of NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.isa.meaning.lanes import fmod, remainder
from tests.run.jit.both import same
from tests.run.jit.lane_functions import LANES as _LANES
from tests.run.jit.lane_functions import compiled

_KINDS = (
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    np.float64,
    np.int8,
    np.int32,
    np.uint16,
    np.uint8,
    np.int16,
    np.uint32,
)


def _pairs(kind: np.dtype[Any], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 256, 2 * _LANES * kind.itemsize, dtype=np.uint8).view(kind).copy()
    if kind.kind in "iu":
        found[::3] = rng.integers(0, 5, found[::3].size)
        found[5], found[_LANES + 5] = np.iinfo(kind).min, np.array(-1).astype(kind)
    else:
        edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1]).astype(kind)
        found[::3] = (rng.standard_normal(found[::3].size) * 3).astype(kind)
        found[1::7] = rng.choice(edges, found[1::7].size)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fn", [fmod, remainder])
@pytest.mark.parametrize("kind", [np.dtype(k) for k in _KINDS], ids=str)
def test_rests(fn: Any, kind: np.dtype[Any]) -> None:
    run = compiled(fn, kind, 2, kind)
    for seed in range(100):
        pairs = _pairs(kind, seed)
        same(run(pairs[:_LANES], pairs[_LANES:]), fn(pairs[:_LANES], pairs[_LANES:]))
