"""Tile expressions: what NumPy gives, on every profile and engine, with edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto

F32 = pto.Global[pto.f32]
SHAPES = [(16, 128), (37, 100), (5, 33), (1, 1)]


def instructions(text: str) -> list[str]:
    """The tile instructions of a program, in order."""
    return re.findall(r"pto\.(t[a-z0-9_.]+) ins", text)


def numbers(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


UNARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda t: pto.exp(t - t.max(axis=1)), lambda x: np.exp(x - x.max(1, keepdims=True))),
    (lambda t: t - t.max(axis=0), lambda x: x - x.max(0)),
    (lambda t: t.max(axis=1) - t, lambda x: x.max(1, keepdims=True) - x),
    (lambda t: t.min(axis=0) - t, lambda x: x.min(0) - x),
    (lambda t: t * t.sum(axis=0) + t.sum(axis=1), lambda x: x * x.sum(0) + x.sum(1, keepdims=True)),
    (lambda t: t / (abs(t).mean(axis=1) + 1.0), lambda x: x / (abs(x).mean(1, keepdims=True) + 1)),
    (lambda t: t - t.mean(axis=0), lambda x: x - x.mean(0)),
    (lambda t: 1.0 - t, lambda x: 1 - x),
    (lambda t: 1.0 / (2.0 + abs(t)), lambda x: 1 / (2 + abs(x))),
    (lambda t: -t * 0.5 - 1, lambda x: -x * 0.5 - 1),
    (
        lambda t: pto.max(t, 0.25) + pto.min(0.5, t),
        lambda x: np.maximum(x, 0.25) + np.minimum(x, 0.5),
    ),
    (lambda t: pto.max(t, t.mean(axis=1)), lambda x: np.maximum(x, x.mean(1, keepdims=True))),
    (
        lambda t: pto.sqrt(abs(t)) * pto.rsqrt(abs(t) + 1.0),
        lambda x: np.sqrt(abs(x) / (abs(x) + 1)),
    ),
    (lambda t: pto.log(pto.relu(t) + 1.0), lambda x: np.log(np.maximum(x, 0) + 1)),
    (lambda t: pto.leaky_relu(t, 0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    (lambda t: pto.where(t > 0.0, t, 0.1 * t), lambda x: np.where(x > 0, x, 0.1 * x)),
    (lambda t: t.to(pto.f16).to(pto.f32), lambda x: x.astype(np.float16).astype(np.float32)),
    (lambda t: t.T.T, lambda x: x),
    (lambda t: t * t.sum(), lambda x: x * x.sum()),
]


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("number", range(len(UNARY)))
def test_expressions_of_one_tile_are_those_of_numpy(profile: str, number: int):
    act, wanted = UNARY[number]

    @pto.kernel(profile=profile)
    def apply(x: F32, y: F32) -> None:
        i = pto.block_idx() * 64
        t = pto.load(x[i:, :], 64, 128)
        pto.store(y[i:, :], act(t))

    for shape in SHAPES:
        x = numbers(shape)
        for engine in ("reference", "jit"):
            y = np.full_like(x, np.nan)
            apply(x, y, engine=engine)
            assert np.allclose(y, wanted(x.astype(np.float64)), rtol=2e-5, atol=2e-5), (
                shape,
                engine,
            )
        assert not apply.sanitize(x, np.zeros_like(x))


def test_a_softmax_has_the_instructions_of_one_written_out():
    @pto.kernel
    def softmax(x: F32, y: F32) -> None:
        i = pto.block_idx() * 16
        t = pto.load(x[i:, :], 16, 128)
        e = pto.exp(t - t.max(axis=1))
        pto.store(y[i:, :], e / e.sum(axis=1))

    x = numbers((100, 128))
    text = str(pto.print_module(softmax.module(x, x)))
    assert instructions(text) == (
        ["tload", "trowmax", "trowexpandsub", "texp", "trowsum", "trowexpanddiv", "tstore"]
    )


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
def test_a_product_with_tails_in_three_dimensions(profile: str):
    @pto.kernel(profile=profile)
    def gemm(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: F32) -> None:
        i, j = pto.block_idx() * 32, 0
        acc = pto.zeros(32, 64, pto.f32, role="acc")
        for k in pto.range(0, a.shape[1], 32):
            acc = pto.dot(pto.load(a[i:, k:], 32, 32), pto.load(b[k:, j:], 32, 64), acc=acc)
        pto.store(c[i:, j:], acc)

    rng = np.random.default_rng(0)
    a = rng.standard_normal((45, 77)).astype(np.float16)
    b = rng.standard_normal((77, 53)).astype(np.float16)
    for engine in ("reference", "jit"):
        c = np.zeros((45, 53), np.float32)
        gemm[2](a, b, c, engine=engine)
        assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)
    assert not gemm[2].sanitize(a, b, c)
