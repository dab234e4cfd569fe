"""Rests of divisions in compiled code: those of NumPy, bit for bit."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.isa.meaning.lanes import fmod, remainder
from pto.run.jit.emit import instructions
from pto.run.jit.emit.unit import Unit
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import Text
from tests.run.jit.both import same

_LANES = 16
_KINDS = (np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int32, np.uint16)


def _compiled(fn: Any, kind: np.dtype[Any]) -> tuple[Unit, str]:
    instructions.load()
    unit, x = Unit(), Text()
    spot, name = lanes.Lanes(x, _LANES, unit.declare), unit.new_name()
    starts = (0, _LANES * kind.itemsize)
    a, b = (spot.symbol(kind, x.load(spot.type(kind), x.at("%ctx", n))) for n in starts)
    found = fn(a, b)
    x.store(found.type, found.name, "%frame")
    x.do("ret i32 0")
    unit.add(name, x.function(f"define i32 @{name}(ptr %ctx, ptr %frame)"))
    return unit, name


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
    unit, name = _compiled(fn, kind)
    for seed in range(100):
        pairs, out = _pairs(kind, seed), np.zeros(_LANES, kind)
        unit.function(name)(ctypes.c_void_p(pairs.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        same(out, fn(pairs[:_LANES], pairs[_LANES:]))
