"""f16 and bf16, all 65,536 of each: what compiled code computes for them is exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.dtypes import BF16, F16, I8, I16, I32, U8, U16, DType
from pto.core.floats import Round
from pto.core.primitives import on_arrays
from pto.isa.meaning import halves, mathlib
from pto.isa.meaning.lanes import convert, fmod, maximum, minimum, narrow
from tests.run.jit.both import same
from tests.run.jit.lane_functions import compiled

KINDS = (np.float16, ml_dtypes.bfloat16)
EXACT: dict[str, Any] = {  # in f64, whose error is 2^-50: one rounding
    "exp": np.exp,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "recip": lambda x: 1 / x,
    "tanh": np.tanh,
}


def every(kind: Any) -> Any:
    return np.arange(65536, dtype=np.uint16).view(kind)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXACT)
def test_elementary_functions(name: str, kind: Any) -> None:
    x = every(kind)
    wanted = narrow(EXACT[name](x.astype(np.float64)), x)
    if hasattr(halves, name):
        same(getattr(halves, name)(x), wanted)
    same(compiled(getattr(mathlib, name), kind, 1, kind)(x), wanted)


_EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -7.0, 1 / 3)
_POWERS = (*_EDGES, 1.5, 10.0, 127.0, -133.0, 0.003, 2e4, -3e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_powers_of_all_by_some(kind: Any) -> None:
    """As the definition has them, in f64; of each type all 2^32 pairs were tried once."""
    run, x = compiled(mathlib.power, kind, 2, kind), every(kind)
    for power in (*_POWERS, *np.random.default_rng(5).uniform(-9, 9, 9)):
        y = np.full_like(x, power)
        same(run(x, y), mathlib.power(x, y))


@pytest.mark.filterwarnings("ignore")
def test_rsqrt_of_every_mantissa_of_f32() -> None:
    """Two exponents are all: a power of four changes nothing but the exponent."""
    run = compiled(mathlib.rsqrt, np.float32, 1, np.float32)
    for first in range(0x3F800000, 0x40800000, 1 << 20):
        x = np.arange(first, first + (1 << 20), dtype=np.uint32).view(np.float32)
        wide = x.astype(np.float64)
        near = 1 / np.sqrt(wide)
        lost = near * (1 - wide * near * near) / 2  # Newton's: what f64 had lost, nearly
        assert np.array_equal(run(x), (near + lost).astype(np.float32))
    edges = np.array([0, -0.0, np.inf, -1, np.nan, 1e-45, 3e38, 2] * 2, np.float32)
    same(run(edges), (1 / np.sqrt(edges.astype(np.float64))).astype(np.float32))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fn", [maximum, minimum])
def test_extremes(fn: Any, kind: Any) -> None:
    """Beside each kind of number: NaN wins, and zeros have an order."""
    x, run = every(kind), compiled(fn, kind, 2, kind)
    for other in (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, -np.nan, 1e-6, -1e-6):
        y = np.full_like(x, other)
        wide, beside = x.astype(np.float64), float(y[0])
        equal = (wide == beside) & (np.signbit(wide) <= np.signbit(beside))
        larger = (wide > beside) | equal
        best = np.where(larger if fn is maximum else ~larger, wide, beside)
        best = np.where(np.isnan(wide) | np.isnan(beside), np.nan, best)
        for got in (run(x, y), run(y, x)):
            same(got, best.astype(kind))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_rests(kind: Any) -> None:
    x, run = every(kind), compiled(fmod, kind, 2, kind)
    for other in (3.0, -2.5, 0.1, 65280.0, 6e-8, 0.0, np.inf, np.nan):
        y = np.full_like(x, other)
        wanted = np.fmod(x.astype(np.float64), y.astype(np.float64))  # a rest is exact
        same(run(x, y), wanted.astype(np.float32).astype(kind))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("mode", [Round.RINT, Round.TRUNC, Round.FLOOR])
@pytest.mark.parametrize("dst", [I8, U8, I16, U16, I32], ids=str)
@pytest.mark.parametrize("src", [F16, BF16], ids=str)
def test_conversions_to_integers(src: DType, dst: DType, mode: Round, saturate: bool) -> None:
    """The tables of `test_conversions_exhaustive.py` are the reference's."""

    def change(a: Any) -> Any:
        return convert(a, src, dst, mode, saturate)

    x = every(src.numpy)
    same(
        compiled(change, src.numpy, 1, dst.numpy)(x),
        on_arrays(convert)(x, src, dst, mode, saturate),
    )
