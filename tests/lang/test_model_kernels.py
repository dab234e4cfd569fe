"""Fourteen kernels of models against NumPy in f64, on both engines and both profiles."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.lang import model_kernels as kernels

# Grid, arguments, and for each array that is written its index, the values wanted, how far apart.
Case = tuple[tuple[int, ...], list[Any], list[tuple[int, Any, float]]]
RNG = np.random.default_rng(0)


def normal(*shape: int, kind: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(kind)


def wide(*arrays: Any) -> list[Any]:
    return [each.astype(np.float64) for each in arrays]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def empty(*shape: int, kind: Any = np.float32) -> Any:
    return np.zeros(shape, kind)


def gemm_int8_weights() -> Case:
    x, w = normal(40, 100, kind=np.float16), RNG.integers(-99, 99, (100, 70)).astype(np.int8)
    scale = np.abs(normal(70)) / 100
    a, b = wide(x, w)
    room = empty(4, 64, 64, kind=np.float16)
    return (2, 2), [x, w, scale, room, empty(40, 70)], [(4, a @ b * scale, 1e-4)]


def top2_gating() -> Case:
    x, w = normal(40, 64, kind=np.float16), normal(64, 20, kind=np.float16)
    a, b = wide(x, w)
    p = softmax(a @ b)
    order = np.argsort(-p, axis=1)[:, :2]
    best = np.take_along_axis(p, order, 1)
    given = [x, w, empty(40, 2), empty(40, 2, kind=np.int32)]
    return (3,), given, [(2, best / best.sum(1, keepdims=True), 1e-4), (3, order, 0)]


def paged_attention() -> Case:
    lengths, table = np.array([70, 32, 5], np.int32), RNG.permutation(12).astype(np.int32)
    table = table.reshape(3, 4)
    q, k, v = (normal(n, m, 64, kind=np.float16) for n, m in ((3, 16), (12, 32), (12, 32)))
    wanted = []
    for b, length in enumerate(lengths):
        keys, values = (each[table[b]].reshape(-1, 64)[:length] for each in wide(k, v))
        wanted.append(softmax(q[b].astype(np.float64) @ keys.T / 8) @ values)
    room = empty(3, 16, 32, kind=np.float16)
    return (3,), [q, k, v, table, lengths, room, empty(3, 16, 64)], [(6, np.stack(wanted), 3e-3)]


def selective_scan() -> Case:
    steps, channels = 6, 50
    x, dt = normal(steps, channels), np.abs(normal(steps, channels))
    a, b, c = -np.abs(normal(channels, 16)), normal(steps, 16), normal(steps, 16)
    h, wanted = np.zeros((channels, 16)), []
    for t in range(steps):
        d = dt[t].astype(np.float64)[:, None]
        h = np.exp(d * a) * h + d * x[t][:, None] * b[t]
        wanted.append((h * c[t]).sum(1))
    return (2,), [x, dt, a, b, c, empty(steps, channels)], [(5, np.stack(wanted), 1e-5)]


def rmsnorm_rope() -> Case:
    x, w, angle = normal(20, 64), normal(64), normal(20, 32)
    cos, sin = np.cos(angle), np.sin(angle)
    t = x / np.sqrt(np.square(x.astype(np.float64)).mean(1, keepdims=True) + 1e-5) * w
    a, b = t[:, :32], t[:, 32:]
    wanted = np.hstack([a * cos - b * sin, b * cos + a * sin])
    return (2,), [x, w, cos, sin, empty(20, 64)], [(4, wanted, 1e-5)]


def strided_convolution() -> Case:
    x, w = normal(45, 70), normal(4, 70)
    a, b = wide(x, w)
    wanted = sum(a[k : k + 41 : 2] * b[k] for k in range(4))
    return (2, 2), [x, w, empty(21, 70)], [(2, wanted, 1e-5)]


def histogram() -> Case:
    x = RNG.uniform(-1, 1, (40, 200)).astype(np.float32)
    wanted = np.histogram(x, bins=16, range=(-1.0, 1.0))[0]
    return (3,), [x, empty(16, kind=np.int32), -1.0, 1.0], [(1, wanted, 0)]


def batched_matmul() -> Case:
    a, b = normal(3, 40, 100, kind=np.float16), normal(3, 100, 70, kind=np.float16)
    x, y = wide(a, b)
    return (2, 2, 3), [a, b, empty(3, 40, 70)], [(2, x @ y, 1e-3)]


def cross_entropy() -> Case:
    x, targets = normal(20, 100), RNG.integers(0, 100, 20).astype(np.int32)
    a = x.astype(np.float64)
    wanted = np.log(np.exp(a).sum(1)) - a[np.arange(20), targets]
    return (2,), [x, targets, empty(20)], [(2, wanted, 1e-5)]


def fft() -> Case:
    re, im = normal(16, 70), normal(16, 70)
    angle = -2 * np.pi * np.arange(16)[:, None] / 16
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    wanted = np.fft.fft(re + 1j * im, axis=0)
    given = [re, im, cos, sin, empty(16, 70), empty(16, 70)]
    return (2,), given, [(4, wanted.real, 1e-5), (5, wanted.imag, 1e-5)]


def top_50() -> Case:
    x = normal(6, 500)
    order = np.argsort(-x, axis=1)[:, :50]
    given = [x, empty(6, 50), empty(6, 50, kind=np.int32)]
    return (2,), given, [(1, np.take_along_axis(x, order, 1), 0), (2, order, 0)]


def adam() -> Case:
    w, g, m, v = normal(20, 100), normal(20, 100), normal(20, 100), np.abs(normal(20, 100))
    a, b, mean, square = wide(w, g, m, v)
    mean, square = mean * 0.9 + b * 0.1, square * 0.999 + b * b * 0.001
    a = a - 0.01 * (mean / (1 - 0.9**3)) / (np.sqrt(square / (1 - 0.999**3)) + 1e-8)
    given = [w, g, m, v, 0.01 / (1 - 0.9**3), 1 / (1 - 0.999**3)]
    return (2,), given, [(0, a, 1e-5), (2, mean, 1e-6), (3, square, 1e-6)]


def fused_transpose() -> Case:
    from math import erf

    x, bias = normal(40, 100), normal(100)
    t = x.astype(np.float64) + bias
    wanted = (t / 2 * (1 + np.vectorize(erf)(t / 2**0.5))).T
    return (2, 2), [x, bias, empty(100, 40)], [(2, wanted, 2e-6)]


def k_means() -> Case:
    x, centres = normal(50, 32, kind=np.float16), normal(10, 32, kind=np.float16)
    a, c = wide(x, centres)
    labels = np.square(a[:, None] - c).sum(2).argmin(1)
    one_hot = np.eye(10)[labels]
    given = [x, centres, empty(50, kind=np.int32), empty(10, 32), empty(10)]
    return (2,), given, [(2, labels, 0), (3, one_hot.T @ a, 1e-4), (4, one_hot.sum(0), 0)]


CASES: list[Callable[[], Case]] = [
    gemm_int8_weights,
    top2_gating,
    paged_attention,
    selective_scan,
    rmsnorm_rope,
    strided_convolution,
    histogram,
    batched_matmul,
    cross_entropy,
    fft,
    top_50,
    adam,
    fused_transpose,
    k_means,
]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_kernel_of_a_model_is_that_of_numpy(make: Callable[[], Case], profile: str):
    kernel = getattr(kernels, make.__name__).on(profile)
    grid, given, wanted = make()
    found = []
    for engine in ("reference", "jit"):
        arrays = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        kernel[grid](*arrays, engine=engine)
        found.append(arrays)
        for at, expected, apart in wanted:
            assert np.allclose(arrays[at], expected, rtol=0, atol=apart)
    for at, _, _ in wanted:
        assert np.array_equal(found[0][at], found[1][at]), "the engines agree in every bit"


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_kernel_of_a_model_is_short_and_clean(make: Callable[[], Case]):
    kernel = getattr(kernels, make.__name__)
    tree = ast.parse(inspect.getsource(kernels))
    defined = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    node = defined[make.__name__]
    assert node.end_lineno is not None and node.end_lineno - node.lineno < 20
    grid, given, _ = make()
    assert kernel[grid].sanitize(*given) == []
