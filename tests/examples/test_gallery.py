"""The gallery against NumPy in f64, at odd sizes, on both profiles and engines, and watched."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from bench import gallery_written_out
from bench.bench_gallery import cases

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
RNG = np.random.default_rng
Case = tuple[tuple[int, ...], list[Any], int, Any, float]  # grid, arguments, result, wanted, error


def normal(*shape: int, seed: int = 0, kind: Any = np.float32) -> Any:
    return RNG(seed).standard_normal(shape).astype(kind)


def cells(shape: tuple[int, int], tile: tuple[int, int]) -> tuple[int, ...]:
    return tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))


def of_matrix(act: Callable[[Any], Any], tile: tuple[int, int], error: float) -> Any:
    def make(m: int, n: int) -> Case:
        x = normal(m, n)
        wanted = act(x.astype(np.float64))
        return cells((m, n), tile), [x, np.full_like(wanted, np.nan, np.float32)], 1, wanted, error

    return make


def gelu(x: Any) -> Any:
    from math import erf

    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rmsnorm(m: int, n: int) -> Case:
    x, w = normal(m, n), normal(n, seed=1)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt(np.square(wide).mean(1, keepdims=True) + 1e-5) * w
    return (-(-m // 16),), [x, w, np.full_like(x, np.nan)], 2, wanted, 1e-5


def layernorm(m: int, n: int) -> Case:
    x, w, b = normal(m, n), normal(n, seed=1), normal(n, seed=2)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    wanted = centred / np.sqrt(np.square(centred).mean(1, keepdims=True) + 1e-5) * w + b
    return (-(-m // 16),), [x, w, b, np.full_like(x, np.nan)], 3, wanted, 1e-5


def column_mean(m: int, n: int) -> Case:
    x = normal(m, n)
    wanted = x.astype(np.float64).mean(0)
    return (-(-n // 128),), [x, np.full(n, np.nan, np.float32)], 1, wanted, 1e-5


def cumulative(axis: int) -> Any:
    def make(m: int, n: int) -> Case:
        x = normal(m, n)
        grid = (-(-n // 256),) if axis == 0 else (-(-m // 64),)
        wanted = x.astype(np.float64).cumsum(axis)
        return grid, [x, np.full_like(x, np.nan)], 1, wanted, 1e-4

    return make


def batched_gemm(b: int, m: int, k: int, n: int) -> Case:
    x, y = normal(b, m, k, kind=np.float16), normal(b, k, n, seed=1, kind=np.float16)
    wanted = np.einsum("bmk,bkn->bmn", x.astype(np.float64), y.astype(np.float64))
    z = np.full((b, m, n), np.nan, np.float32)
    return (*cells((m, n), (64, 128)), b), [x, y, z], 2, wanted, 1e-3


def gemm_int8(m: int, k: int, n: int) -> Case:
    x, w = (RNG(s).integers(-128, 128, shape, np.int8) for s, shape in enumerate([(m, k), (k, n)]))
    bias = RNG(2).integers(-1000, 1000, n, np.int32)
    scale = RNG(3).uniform(1e-4, 1e-3, n).astype(np.float32)
    sums = np.maximum(x.astype(np.int64) @ w + bias, 0)
    wanted = (sums * scale.astype(np.float64)).astype(np.float16).astype(np.float64)
    y = np.full((m, n), np.nan, np.float16)
    return cells((m, n), (32, 64)), [x, w, bias, scale, y], 4, wanted, 2e-3 * wanted.max()


def attention(heads: int, length: int) -> Case:
    q, k, v = (normal(heads, length, 64, seed=s, kind=np.float16) for s in range(3))
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = np.einsum("hid,hjd->hij", wide[0], wide[1]) / 8
    scores[:, ~np.tri(length, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), wide[2])
    blocks = -(-length // 32)
    room = np.zeros((blocks * heads, 32, 32), np.float16)
    kt = np.ascontiguousarray(k.transpose(0, 2, 1))
    args = [q, kt, v, np.full(q.shape, np.nan, np.float32), room]
    return (blocks, heads), args, 3, wanted, 2e-3


def top_k(m: int, n: int, k: int) -> Case:
    x = normal(m, n)
    wanted = np.sort(x, axis=1)[:, ::-1][:, :k].astype(np.float64)
    args = [x, np.full((m, k), np.nan, np.float32), np.zeros((m, k), np.int32)]
    return (m,), args, 1, wanted, 0.0


def gather(m: int, n: int) -> Case:
    table, numbers = normal(50, n), RNG(1).integers(0, 50, m, np.int32)
    y = np.full((m, n), np.nan, np.float32)
    return (-(-m // 16),), [table, numbers, y], 2, table[numbers].astype(np.float64), 0.0


def scatter_add(m: int, n: int) -> Case:
    x, numbers = normal(m, n), RNG(1).integers(0, 20, m, np.int32)
    wanted = np.ones((20, n))
    np.add.at(wanted, numbers, x.astype(np.float64))
    return (-(-m // 16),), [np.ones((20, n), np.float32), numbers, x], 0, wanted, 1e-5


def depthwise(c: int, n: int, taps: int) -> Case:
    x, w = normal(c, n), normal(taps, c, seed=1)
    width = n - taps + 1
    wanted = np.array(
        [np.correlate(x[i].astype(np.float64), w[:, i].astype(np.float64)) for i in range(c)]
    )
    y = np.full((c, width), np.nan, np.float32)
    return cells((c, width), (16, 128)), [x, w, y], 2, wanted, 1e-5


SIZES = [(37, 100), (1, 1), (16, 256), (70, 300)]
KERNELS: dict[str, tuple[str, Any, list[tuple[int, ...]]]] = {
    "gelu_tanh": ("gelu", of_matrix(gelu_tanh, (16, 256), 1e-6), SIZES),
    "gelu_erf": ("gelu", of_matrix(gelu, (16, 256), 1e-6), SIZES),
    "rmsnorm": ("norms", rmsnorm, SIZES),
    "layernorm": ("norms", layernorm, [(37, 100), (1, 2), (70, 300)]),
    "column_mean": ("column_mean", column_mean, SIZES),
    "cumsum_axis0": ("cumulative_sum", cumulative(0), SIZES),
    "cumsum_axis1": ("cumulative_sum", cumulative(1), SIZES),
    "batched_gemm": (
        "batched_gemm",
        batched_gemm,
        [(3, 45, 77, 130), (1, 1, 1, 1), (2, 64, 64, 128)],
    ),
    "gemm_int8": ("gemm_int8", gemm_int8, [(45, 77, 70), (1, 1, 1), (32, 64, 64)]),
    "attention": ("attention", attention, [(2, 77), (1, 1), (3, 64)]),
    "top_k": ("top_k", top_k, [(3, 100, 7), (2, 512, 16), (1, 33, 5)]),
    "gather": ("gather_scatter", gather, [(37, 100), (1, 1), (16, 500)]),
    "scatter_add": ("gather_scatter", scatter_add, [(37, 100), (1, 1), (16, 500)]),
    "depthwise_convolution": (
        "depthwise_convolution",
        depthwise,
        [(19, 150, 5), (1, 3, 3), (16, 128, 1)],
    ),
    "transpose": ("transpose", of_matrix(np.transpose, (64, 64), 0.0), SIZES),
    "leaky_relu": (
        "leaky_relu",
        of_matrix(lambda x: np.where(x > 0, x, x * 0.1), (16, 256), 1e-6),
        SIZES,
    ),
}


def kernel_of(name: str, profile: str) -> Any:
    return getattr(importlib.import_module(f"examples.gallery.{KERNELS[name][0]}"), name).on(
        profile
    )


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ["jit", "reference"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_gallery_is_right_at_odd_sizes(name: str, engine: str, profile: str):
    kernel = kernel_of(name, profile)
    for sizes in KERNELS[name][2]:
        grid, args, at, wanted, error = KERNELS[name][1](*sizes)
        kernel[grid](*args, engine=engine)
        assert np.abs(args[at].astype(np.float64) - wanted).max() <= error, sizes


@pytest.mark.parametrize("name", KERNELS)
def test_what_it_is_compared_with_does_the_same_job(name: str):
    """The forms by instructions, whose speed is that of the gallery's, at odd sizes too."""
    for sizes in KERNELS[name][2]:
        grid, args, at, wanted, error = KERNELS[name][1](*sizes)
        getattr(gallery_written_out, name)[grid](*args)
        assert np.abs(args[at].astype(np.float64) - wanted).max() <= error, sizes


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_gallery_is_clean(name: str, profile: str):
    kernel = kernel_of(name, profile)
    grid, args, *_ = KERNELS[name][1](*KERNELS[name][2][0])
    assert kernel[grid].sanitize(*args).is_clean
    assert not kernel.check()


def test_columns_of_the_greatest_are_told():
    x = normal(3, 100)
    values, columns = np.zeros((3, 7), np.float32), np.zeros((3, 7), np.int32)
    kernel_of("top_k", "a5")[3](x, values, columns)
    assert np.array_equal(np.take_along_axis(x, columns, axis=1), values)


def test_every_kernel_has_less_than_25_lines():
    files = sorted(FOLDER.glob("*.py"))
    assert len(files) > 10
    for path in files:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                first = node.decorator_list[0].lineno
                assert (node.end_lineno or 0) - first + 1 < 25, f"{path.name}: {node.name}"
                assert isinstance(
                    getattr(importlib.import_module(f"examples.gallery.{path.stem}"), node.name),
                    pto.Kernel,
                )


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", KERNELS)
def test_as_many_instructions_as_by_hand_and_the_same_bits(name: str, profile: str):
    _, grid, args = cases()[name]
    results: list[list[bytes]] = []
    counts: list[int] = []
    for kernel in (kernel_of(name, profile), getattr(gallery_written_out, name).on(profile)):
        copies = [np.copy(each) for each in args]
        kernel[grid](*copies)
        results.append([each.tobytes() for each in copies])
        counts.append(len(re.findall(r"pto\.t[a-z0-9_.]+ ins", kernel.ir)))
    assert counts[0] <= counts[1]
    assert results[0] == results[1]
