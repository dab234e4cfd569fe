"""A product and a sum, rounded once: on arrays, in compiled code, and in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from pto.core.primitives import fused
from pto.isa.meaning import mathlib
from tests.run.jit.both import same
from tests.run.jit.lane_functions import compiled

RNG = np.random.default_rng(4)


def triples(count: int) -> Any:
    """Some of which cancel but for a few of the last bits."""
    a = RNG.standard_normal(count) * 2.0 ** RNG.integers(-30, 30, count)
    b = RNG.standard_normal(count)
    c = -(a * b) * (1 + RNG.integers(-4, 5, count) * 2.0**-52)
    c[::3] = RNG.standard_normal(c[::3].size)
    c[1::7] = 0
    return a, b, c


def test_it_is_rounded_once() -> None:
    a, b, c = triples(3200)
    found = fused(a, b, c)
    for x, y, z, got in zip(a, b, c, found, strict=True):
        assert float(Fraction(x) * Fraction(y) + Fraction(z)) == got
    same(compiled(fused, np.float64, 3, np.float64)(a, b, c), found)


def test_exponentials_of_f32() -> None:
    """Every bit of what is rounded to f32, and f32 beside NumPy's f64."""
    x = np.concatenate([RNG.standard_normal(1 << 16) * 20, [np.inf, -np.inf, np.nan, 0.0] * 4])
    x = x.astype(np.float32)
    run = compiled(mathlib.exp, np.float32, 1, np.float32)
    with np.errstate(all="ignore"):
        same(run(x), np.exp(x.astype(np.float64)).astype(np.float32))
        wide = x[: 1 << 12].astype(np.float64)
        definition = mathlib._exp_of_small
        same(compiled(definition, np.float64, 1, np.float64)(wide), definition(wide))
