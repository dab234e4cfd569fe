"""Functions and operators that people expect, against NumPy on both engines and profiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import isa

F32 = pto.Global[pto.f32]
X = (np.arange(16 * 64, dtype=np.float32).reshape(16, 64) - 500) / 100
X[0, :4] = [0.0, -0.0, np.nan, 80.0]
Y = np.linspace(-1, 1, 64, dtype=np.float32)
ERFC = np.vectorize(math.erfc, otypes=[np.float64])
ERF = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def negative(t: Any) -> Any:
    return pto.clamp(t, -4.5, 0.0)


def small(x: Any) -> Any:
    """gelu(x) e ** (x * x / 2), for x below zero."""
    return x / 2 * ERFC(-x / 2**0.5) * np.exp(x * x / 2)


def in_f32(x: Any) -> Any:
    return np.asarray(x, np.float32).astype(np.float64)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# Tile and row to tile; the same in NumPy, in f64; how far apart they may be.
CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], float]] = {
    "tanh": (lambda t, r: pto.tanh(t), lambda x, r: np.tanh(x), 2e-7),
    "sigmoid": (lambda t, r: pto.sigmoid(t), lambda x, r: sigmoid(x), 2e-7),
    "silu": (lambda t, r: pto.silu(t), lambda x, r: x * sigmoid(x), 2e-6),
    "gelu": (lambda t, r: pto.gelu(t), lambda x, r: x / 2 * (1 + ERF(x / 2**0.5)), 3e-6),
    "gelu, small values": (
        lambda t, r: pto.gelu(negative(t)) * pto.exp(0.5 * negative(t) ** 2),
        lambda x, r: small(np.clip(x, -4.5, 0)),
        4e-6,
    ),
    "gelu by tanh": (
        lambda t, r: pto.gelu(t, approximate="tanh"),
        lambda x, r: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        3e-6,
    ),
    "erf": (lambda t, r: pto.erf(t), lambda x, r: ERF(x), 5e-7),
    "erf near zero": (
        lambda t, r: pto.erf(t * 1e-20) * 1e20,
        lambda x, r: x * 2 / np.pi**0.5,
        5e-5,
    ),
    "where of two numbers": (
        lambda t, r: pto.where(t > r, 1.5, -2.0),
        lambda x, r: np.where(x > r, 1.5, -2),
        0,
    ),
    "clamp": (lambda t, r: pto.clamp(t, -1.0, 2.0), lambda x, r: np.clip(x, -1, 2), 0),
    "clamp from below": (lambda t, r: pto.clamp(t, low=r), lambda x, r: np.maximum(x, r), 0),
    "NumPy's number first": (lambda t, r: np.float32(2) * t, lambda x, r: 2 * x, 0),
    "NumPy's number last": (lambda t, r: t - np.float64(0.5), lambda x, r: x - 0.5, 1e-6),
    "NumPy's number compared": (
        lambda t, r: pto.where(np.float32(1) < t, t, np.float32(0)),
        lambda x, r: np.where(x > 1, x, 0),
        0,
    ),
    "sin": (lambda t, r: pto.sin(t * 370.0), lambda x, r: np.sin(in_f32(x * 370)), 1.5e-7),
    "cos": (lambda t, r: pto.cos(t * 370.0), lambda x, r: np.cos(in_f32(x * 370)), 1.5e-7),
    "cos near zero": (lambda t, r: pto.cos(t * 1e-9), lambda x, r: x * 0 + 1, 0),
    "exp2": (lambda t, r: pto.exp2(t * 0.1), lambda x, r: np.exp2(in_f32(x * 0.1)), 1e-4),
    "log2": (lambda t, r: pto.log2(abs(t) + 1.0), lambda x, r: np.log2(abs(x) + 1), 1e-6),
    "floor": (lambda t, r: pto.floor(t), lambda x, r: np.floor(x), 0),
    "ceil": (lambda t, r: pto.ceil(t), lambda x, r: np.ceil(x), 0),
    "round": (lambda t, r: pto.round(t * 2.0), lambda x, r: np.rint(in_f32(x * 2)), 0),
    "floor of f16": (
        lambda t, r: pto.floor(t.to(pto.f16)).to(pto.f32),
        lambda x, r: np.floor(x.astype(np.float16)),
        0,
    ),
    "whole quotients": (
        lambda t, r: t // 0.25 - 3.0 // (abs(t) + 1.0),
        lambda x, r: np.floor(x / 0.25) - np.floor(in_f32(3 / in_f32(abs(x) + 1))),
        0,
    ),
    "fractions cut": (
        lambda t, r: t.to(pto.i32).to(pto.f32),
        lambda x, r: np.trunc(x),
        0,
    ),
    "fractions cut to i16": (
        lambda t, r: t.to(pto.i16).to(pto.f32),
        lambda x, r: np.trunc(x),
        0,
    ),
    "mask as numbers": (
        lambda t, r: (t > r).to(pto.f32) * 3.0 + (~(t > 0.0) & (t > -2.0)).astype(pto.f32),
        lambda x, r: 3 * (x > r) + (~(x > 0) & (x > -2)),
        0,
    ),
    "mask counted": (
        lambda t, r: t * 0.0 + (t > 0.0).to(pto.f32).sum(axis=1),
        lambda x, r: x * 0 + (x > 0).sum(axis=1, keepdims=True),
        0,
    ),
    "one below another": (
        lambda t, r: pto.concatenate([t[9:16, :], t[0:9, :]]),
        lambda x, r: np.vstack([x[9:], x[:9]]),
        0,
    ),
    "side by side": (
        lambda t, r: pto.concatenate([t[:, 40:64], t[:, 0:40]], axis=1),
        lambda x, r: np.hstack([x[:, 40:], x[:, :40]]),
        0,
    ),
    "side by side at any place": (
        lambda t, r: pto.concatenate([t[:, 0:8].sum(axis=1), t[:, 0:56], t[:, 0:7]], axis=1),
        lambda x, r: np.hstack([x[:, :8].sum(axis=1, keepdims=True), x[:, :56], x[:, :7]]),
        1e-5,
    ),
    "columns side by side": (
        lambda t, r: t * 0.0 + pto.concatenate([t.max(axis=1), t.min(axis=1)], axis=1).sum(axis=1),
        lambda x, r: x * 0 + (x.max(axis=1) + x.min(axis=1))[:, None],
        1e-6,
    ),
    "columns one below another": (
        lambda t, r: t + pto.concatenate([t[0:8, :].max(axis=1), t[8:16, :].min(axis=1)]),
        lambda x, r: x + np.hstack([x[:8].max(axis=1), x[8:].min(axis=1)])[:, None],
        1e-6,
    ),
    "in another shape": (
        lambda t, r: (t.reshape(32, 32) * 2.0).reshape(-1, 64),
        lambda x, r: x * 2,
        0,
    ),
    "windows in another shape": (
        lambda t, r: pto.concatenate([t[:, 0:32].reshape(8, 64), t[:, 32:64].reshape(8, 64)]),
        lambda x, r: np.vstack([x[:, :32].reshape(8, 64), x[:, 32:].reshape(8, 64)]),
        0,
    ),
    "in one row": (
        lambda t, r: pto.reshape(t.reshape(1, -1).max(axis=1) + t.reshape(1, 1024), 16, 64),
        lambda x, r: in_f32(x.max() + x),
        0,
    ),
    "a row as a column": (
        lambda t, r: t + r.reshape(64, 1)[0:16, :],
        lambda x, r: in_f32(x + r[:16, None]),
        0,
    ),
    "not of a mask": (
        lambda t, r: pto.where(~(t > 0.0), 1.0, 2.0),
        lambda x, r: np.where(~(x > 0), 1, 2),
        0,
    ),
    "not inside and": (
        lambda t, r: pto.where(~(t > 1.0) & (t > -1.0) | ~(t < 4.0), 1.0, 2.0),
        lambda x, r: np.where(~(x > 1) & (x > -1) | ~(x < 4), 1, 2),
        0,
    ),
    "not twice": (
        lambda t, r: pto.where(~~(t > 0.0), t, 0.0),
        lambda x, r: np.where(x > 0, x, 0),
        0,
    ),
}


def run(make: Any, x: Any, profile: str) -> list[Any]:
    def k(x: F32, row: F32, y: F32) -> None:
        pto.store(y, make(pto.load(x, 16, 64), pto.load(row, 64)))

    kernel: Any = pto.kernel(profile=profile)(k)
    found = []
    for engine in ("reference", "jit"):
        y = np.zeros((16, 64), np.float32)
        kernel.run(x, Y, y, engine=engine)
        found.append(y)
    assert kernel.sanitize(x, Y, np.zeros((16, 64), np.float32)) == []
    return found


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", CASES)
def test_a_function_is_that_of_numpy(name: str, profile: str):
    make, expected, apart = CASES[name]
    x = X if "mask" in name or "not" in name else np.nan_to_num(X)
    both = run(make, x, profile)
    assert np.array_equal(both[0], both[1], equal_nan=True), "the engines agree in every bit"
    with np.errstate(all="ignore"):
        wanted = expected(x.astype(np.float64), Y.astype(np.float64))
    assert np.allclose(both[0], wanted, rtol=0, atol=apart, equal_nan=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(axis: int):
    x = np.nan_to_num(X)
    for found in run(lambda t, r: pto.softmax(t, axis=axis), x, "a5"):
        assert np.allclose(found, softmax(x.astype(np.float64), axis), rtol=0, atol=1e-6)


def test_a_turned_window_is_the_window_of_the_turned_array():
    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.load(x[0:16, 8:40].T, 32, 16))

    y = np.zeros((32, 16), np.float32)
    pto.kernel(k)(X, y)
    assert np.array_equal(y, X[:, 8:40].T, equal_nan=True)


def test_windows_go_in_steps_and_have_windows():
    def k(x: F32, y: F32, n: pto.Scalar[pto.i32]) -> None:
        rows = x[n::3, :]  # 1, 4, 7, 10, 13
        pto.store(y[0:5, 0:64], pto.load(rows, 5, 64))
        pto.store(y[5:8, 0:64], pto.load(x[2:7:2, :], 3, 64))
        pto.store(y[8:10, 0:8], pto.load(x[0:16, 8:40][n : n + 2, 4:12], 2, 8))
        pto.store(y[10:26, 0:10], pto.load(x[:, 3:31:3], 16, 10))

    x = np.nan_to_num(X)
    for engine in ("reference", "jit"):
        y = np.zeros((26, 64), np.float32)
        pto.kernel(k).run(x, y, 1, engine=engine)
        assert np.array_equal(y[:5], x[1::3]) and np.array_equal(y[5:8], x[2:7:2])
        assert np.array_equal(y[8:10, :8], x[1:3, 12:20]) and not y[8:, 10:].any()
        assert np.array_equal(y[10:, :10], x[:, 3:31:3])
    assert pto.kernel(k).sanitize(x, y, 1) == []


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda x: x[::-1, :], "goes upwards"),
        (lambda x: x[0:8, :][::2], "steps of one"),
        (lambda x: x[0][1, 2], "2 indices"),
        (lambda x: x[20::2, :], "so it is empty"),
    ],
)
def test_windows_that_are_not_there(act: Any, told: str):
    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.load(act(x), 4, 64))

    with pytest.raises(pto.PtoError, match=told) as caught:
        pto.kernel(k)(X, X.copy())
    assert caught.value.code == "PTO-S201"


def test_an_indexed_window_is_turned():
    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.load(x[1, :, 8:24].T, 16, 8))

    x, y = X.reshape(2, 8, 64), np.zeros((16, 8), np.float32)
    pto.kernel(k)(x, y)
    assert np.array_equal(y, x[1, :, 8:24].T)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_integers_are_compared(profile: str):
    def k(x: pto.Global[pto.i32], y: pto.Global[pto.i32]) -> None:
        t = pto.load(x, 1, 32)
        for n, mask in enumerate((t < 3, t <= 3, t > 3, t >= 3, t == 3, t != 3)):
            pto.store(y[n, :], pto.where(mask, 1, 0))

    x = np.arange(-12, 20, dtype=np.int32).reshape(1, 32)
    x[0, :2] = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    wanted = np.vstack([x < 3, x <= 3, x > 3, x >= 3, x == 3, x != 3])
    for engine in ("reference", "jit"):
        y = np.zeros((6, 32), np.int32)
        pto.kernel(profile=profile)(k).run(x, y, engine=engine)
        assert np.array_equal(y, wanted)


def test_a_number_in_a_window_is_one_row():
    @pto.kernel(profile="a5")
    def rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x, 16, 64)
        u = t + 0.0
        u[0, :] = 5.0
        u[-1] = t[2, :]
        for r in pto.range(3, 5):
            u[r, :] = t[r, :] * t[0]
        pto.store(y, u - t[1])

    x = np.random.default_rng(3).standard_normal((16, 64), dtype=np.float32)
    y, want = np.zeros_like(x), x.copy()
    rows(x, y)
    want[0], want[-1], want[3:5] = 5.0, x[2], x[3:5] * x[0]
    assert np.array_equal(y, want - x[1])


def test_equality_is_by_element_on_either_side_and_between_tiles():
    @pto.kernel(profile="a5")
    def compared(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t, u = (pto.load(x[n], 1, 64) for n in range(2))
        pto.store(y[0], pto.where(t == u, 1.0, 0.0))
        pto.store(y[1], pto.where(2.0 == t, 1.0, 0.0))  # noqa: SIM300
        pto.store(y[2], pto.where(t != t, 1.0, 0.0))
        kept = {t: u}
        pto.store(y[3], kept[t].astype(pto.i32).to(pto.f32))

    x = np.array([[1.0, 2.0, np.nan, -0.0] * 16, [1.0, 3.0, 7.0, 0.0] * 16], np.float32)
    y = np.zeros((4, 64), np.float32)
    compared(x, y)
    assert np.array_equal(y, [x[0] == x[1], x[0] == 2.0, np.isnan(x[0]), x[1]])


def test_arange_has_the_bounds_of_numpy():
    def k(y: pto.Global[pto.i32], n: pto.Scalar[pto.i32]) -> None:
        pto.store(y[0, :], pto.arange(8))
        pto.store(y[1, :], pto.arange(16, 24))
        pto.store(y[2, :], pto.arange(n, n + 8))

    y = np.zeros((3, 8), np.int32)
    pto.kernel(k)(y, 5)
    assert np.array_equal(y, [np.arange(8), np.arange(16, 24), np.arange(5, 13)])


def test_a_product_meets_a_loaded_tile_of_its_width():
    def k(x: F32, w: F32, b: F32, y: F32) -> None:
        product = pto.dot(pto.load(x, 16, 64), pto.load(w, 64, 10))  # lines of 16
        pto.store(y, product + pto.load(b, 16, 10) - pto.load(b[0, :], 10))  # lines of 32

    rng = np.random.default_rng(3)
    x, w, b = (rng.integers(-4, 5, n).astype(np.float32) for n in ((16, 64), (64, 10), (16, 10)))
    y = np.zeros((16, 10), np.float32)
    pto.kernel(k)(x, w, b, y)
    assert np.array_equal(y, x @ w + b - b[0])


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_sorts_keep_infinities_and_nan(kind: Any, profile: str):
    def k(x: pto.Global, y: pto.Global) -> None:
        t = pto.load(x, 1, 8)
        pto.store(y[0:1, :], pto.sort(t))
        pto.store(y[1:2, :], pto.topk(t, 8)[0])
        pto.store(y[2:3, :], t.to(pto.f32).to(t.dtype, saturate=False))

    inf, nan = np.inf, np.nan
    x = np.array([[1, inf, -2, nan, -inf, 0, inf, 3]]).astype(kind)
    y = np.zeros((3, 8), kind)
    pto.kernel(k, profile=profile)(x, y)
    wanted = [[-inf, -2, 0, 1, 3, inf, inf, nan], [inf, inf, 3, 1, 0, -2, -inf, nan]]
    wanted.append(x[0].astype(np.float64).tolist())
    assert np.array_equal(y.astype(np.float64), wanted, equal_nan=True)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_product_meets_a_loaded_tile_of_fewer_rows(profile: str):
    def k(x: F32, w: F32, b: F32, y: F32) -> None:
        product, t = pto.dot(pto.load(x, 5, 24), pto.load(w, 24, 10)), pto.load(b, 5, 10)
        most = pto.where(product > t, product, t)  # a box of 16x16, and lines of 32
        total = pto.zeros_like(product)
        total += t
        total[:] = pto.max(total, most)
        low = pto.zeros_like(t.sum(axis=0)) - 3.0
        pto.store(y, total + pto.max(low, t))

    rng = np.random.default_rng(5)
    x, w, b = (rng.integers(-4, 5, n).astype(np.float32) for n in ((5, 24), (24, 10), (5, 10)))
    y = np.zeros((5, 10), np.float32)
    pto.kernel(k, profile=profile)(x, w, b, y)
    assert np.array_equal(y, np.maximum(x @ w, b) + np.maximum(-3, b))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("kind", [pto.i8, pto.f16])
def test_an_accumulator_is_as_large_as_its_products(kind: Any, profile: str):
    """Boxes have sides of 16, of bytes 32, and a loaded row has lines of 32."""
    total = pto.i32 if kind is pto.i8 else pto.f32

    def k(x: pto.Global, w: pto.Global, b: pto.Global, y: pto.Global) -> None:
        acc = pto.zeros(5, 10, total, role="acc")
        for i in pto.range(0, x.shape[1], 16):
            acc = pto.dot(pto.load(x[:, i:], 5, 16), pto.load(w[i:, :], 16, 10), acc=acc)
        pto.store(y, acc + pto.load(b, 1, 10))

    rng = np.random.default_rng(6)
    x, w, b = (rng.integers(-4, 5, n) for n in ((5, 40), (40, 10), (1, 10)))
    own, wide = (np.int8, np.int32) if kind is pto.i8 else (np.float16, np.float32)
    y = np.zeros((5, 10), wide)
    pto.kernel(k, profile=profile)(x.astype(own), w.astype(own), b.astype(wide), y)
    assert np.array_equal(y, x @ w + b)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_tiles_whose_lines_were_rounded_up_meet_by_their_valid_elements(profile: str):
    def k(x: F32, w: F32, y: F32) -> None:
        a, b = pto.load(x, 5, 40), pto.load(w, 5, 40)
        ordered, turned = pto.sort(a, axis=0), b.T.T
        pto.store(y[0:5, :], pto.where(ordered < turned, a, ordered))
        pto.store(y[5:10, :], pto.where(a != a, b, pto.cumsum(b, axis=1)))
        b += pto.flip(a, axis=1)
        turned[:] = pto.where(turned > a, turned, b)
        pto.store(y[10:15, :], b)
        pto.store(y[15:20, :], turned)

    x, w = np.random.default_rng(7).integers(-9, 10, (2, 5, 40)).astype(np.float32)
    y = np.zeros((20, 40), np.float32)
    pto.kernel(k, profile=profile)(x, w, y)
    ordered, added = np.sort(x, axis=0), w + x[:, ::-1]
    chosen = np.where(ordered < w, x, ordered), np.cumsum(w, axis=1)
    assert np.array_equal(y, np.vstack([*chosen, added, np.where(w > x, w, added)]))


def test_where_of_tiles_of_other_sizes_is_a_finding():
    def k(x: F32, y: F32) -> None:
        t = pto.load(x, 16, 64)
        pto.store(y, pto.where(t > 0.0, t, pto.load(x[0:8, :], 8, 64)))

    with pytest.raises(pto.PtoError, match="16x64 and 8x64") as told:
        pto.kernel(k)(np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32))
    assert told.value.code == "PTO-U083"


def test_static_range_is_unrolled():
    def k(x: F32, y: F32) -> None:
        t = pto.load(x, 16, 64)
        for i in pto.static_range(1, 4):
            t = t + float(i)
        pto.store(y, t)

    kernel = pto.kernel(k)
    y = np.zeros((16, 64), np.float32)
    kernel(np.zeros_like(y), y)
    assert (y == 6.0).all()
    assert "scf" not in kernel.ir and kernel.ir.count("pto.tadds") == 3


def test_an_unknown_approximation_is_a_finding():
    with pytest.raises(pto.PtoError, match='"tanh"'), pto.eager("a5"):
        pto.gelu(pto.load(X, 16, 64), approximate="sinh")


def test_an_element_by_its_indices():
    def k(x: F32, y: F32, n: pto.Scalar[pto.i32]) -> None:
        isa.store_scalar(y, 0, 1, isa.load_scalar(x, n, 5) + isa.load_scalar(x, n * 64 + 6))
        isa.store_scalar(y, 0, 0, isa.load_scalar(x[2:, 8:].T, 1, n))

    for engine in ("reference", "jit"):
        y = np.zeros((1, 2), np.float32)
        pto.kernel(k).run(X, y, 3, engine=engine)
        assert y.tolist() == [[X[5, 9], X[3, 5] + X[3, 6]]]


@pytest.mark.parametrize(("indices", "told"), [((1, 64), "index 64"), ((1, 2, 3), "3 indices")])
def test_an_element_that_is_not_there(indices: tuple[int, ...], told: str):
    def k(x: F32, y: F32) -> None:
        isa.store_scalar(y, 0, isa.load_scalar(x, *indices))

    with pytest.raises(pto.PtoError, match=told) as caught:
        pto.kernel(k)(X, np.zeros(4, np.float32))
    assert caught.value.code == "PTO-S201"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("rounding", "wanted"),
    [
        (None, [-3, -2, -2, -1, 0, 0, 0, 1, 2, 2, 3]),
        ("trunc", [-3, -2, -2, -1, 0, 0, 0, 1, 2, 2, 3]),
        ("even", [-4, -2, -2, -2, 0, 0, 0, 2, 2, 2, 4]),
        ("away", [-4, -3, -2, -2, -1, 0, 1, 2, 2, 3, 4]),
        ("floor", [-4, -3, -2, -2, -1, 0, 0, 1, 2, 2, 3]),
        ("ceil", [-3, -2, -2, -1, 0, 0, 1, 2, 2, 3, 4]),
    ],
)
def test_the_rounding_of_a_conversion_is_an_argument(
    rounding: str | None, wanted: list[int], profile: str
):
    def k(x: pto.Global[pto.f32], y: pto.Global[pto.i32]) -> None:
        pto.store(y, pto.load(x, 1, 11).to(pto.i32, rounding=rounding))

    x = np.array([[-3.5, -2.5, -2, -1.5, -0.5, 0, 0.5, 1.5, 2, 2.5, 3.5]], np.float32)
    for engine in ("reference", "jit"):
        y = np.zeros((1, 11), np.int32)
        pto.kernel(profile=profile)(k).run(x, y, engine=engine)
        assert y[0].tolist() == wanted


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_floats_become_the_nearest_narrower_float(profile: str):
    def k(x: pto.Global[pto.f32], y: pto.Global[pto.f16]) -> None:
        pto.store(y, pto.load(x, 1, 64).to(pto.f16))

    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(1, 64)
    y = np.zeros((1, 64), np.float16)
    pto.kernel(profile=profile)(k)(x, y)
    assert np.array_equal(y, x.astype(np.float16))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ["jit", "reference"])
@pytest.mark.parametrize(
    ("kind", "to"), [("i8", "f32"), ("u8", "f32"), ("i8", "bf16"), ("u8", "i32"), ("i16", "i32")]
)
def test_exact_steps_replace_a_conversion_that_the_profile_lacks(
    kind: str, to: str, engine: str, profile: str
):
    @pto.kernel(profile=profile)
    def k(x: pto.Global, y: pto.Global) -> None:
        pto.store(y, pto.load(x, 16, 32).to(y.dtype))

    other = getattr(pto, to)
    low, high = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}[kind]
    x = np.linspace(low, high, 512).astype(getattr(pto, kind).numpy).reshape(16, 32)
    y = np.zeros((16, 32), other.numpy)
    k(x, y, engine=engine)
    assert np.array_equal(y.astype(np.float64), x.astype(other.numpy).astype(np.float64))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("engine", ["jit", "reference"])
@pytest.mark.parametrize("kind", ["i16", "i32"])
def test_the_absolute_value_of_integers(kind: str, engine: str, profile: str):
    @pto.kernel(profile=profile)
    def k(x: pto.Global, y: pto.Global) -> None:
        pto.store(y, abs(pto.load(x, 16, 32)))

    x = np.arange(-256, 256).astype(getattr(pto, kind).numpy).reshape(16, 32)
    y = np.zeros_like(x)
    k(x, y, engine=engine)
    assert np.array_equal(y, np.abs(x))


@pytest.mark.parametrize("engine", ["jit", "reference"])
@pytest.mark.parametrize("shape", [(16, 1), (1, 32)])
def test_a_row_or_column_is_spread_where_no_instruction_takes_its_type(
    shape: tuple[int, int], engine: str
):
    """tcolexpandmax has no i64, which tmax and tcolexpand have."""

    @pto.kernel(profile="a5")
    def k(x: pto.Global[pto.i64], z: pto.Global[pto.i64], y: pto.Global[pto.i64]) -> None:
        pto.store(y, pto.max(pto.load(x, 16, 32), pto.load(z, *shape)))

    x = (np.arange(512, dtype=np.int64) * 10**12 - 10**14).reshape(16, 32)
    z = np.linspace(-(10**14), 10**15, max(shape)).astype(np.int64).reshape(shape)
    y = np.zeros_like(x)
    k(x, z, y, engine=engine)
    assert np.array_equal(y, np.maximum(x, z))


@pytest.mark.parametrize("rows", [1, 5, 16, 21, 32])
def test_tiles_cut_at_the_end_of_an_array_are_put_together_and_reshaped(rows: int):
    def k(x: F32, y: F32, z: F32) -> None:
        t = pto.load(x[0:, :], 32, 64)
        pto.store(y[0:, :], pto.concatenate([t, t * 2.0, t + 1.0]))
        pto.store(z[0:, :], t.reshape(64, 32))

    x = np.random.default_rng(5).standard_normal((rows, 64), dtype=np.float32)
    for engine in ("reference", "jit"):
        y, z = np.zeros((3 * rows, 64), np.float32), np.zeros((2 * rows, 32), np.float32)
        pto.kernel(k).run(x, y, z, engine=engine)
        assert np.array_equal(y, np.vstack([x, x * 2, x + 1]))
        assert np.array_equal(z, x.reshape(-1, 32))
    assert pto.kernel(k).sanitize(x, y, z) == []


@pytest.mark.parametrize(
    ("act", "code", "told"),
    [
        (lambda t: t.to(pto.i32, rounding="nearest"), "PTO-U205", "even, away, floor, ceil"),
        (lambda t: t.reshape(16, 32), "PTO-U083", "1024 elements"),
        (lambda t: t.reshape(128, 8), "PTO-U083", "whole blocks of 32"),
        (lambda t: t[:, 0:20].reshape(5, 64), "PTO-U083", "16x20 to 5x64"),
        (lambda t: pto.concatenate([t, t[:, 0:32]]), "PTO-U083", "16x64 and 16x32"),
        (lambda t: pto.concatenate([t, t], axis=2), "PTO-U088", "axis 2"),
        (lambda t: pto.concatenate(t), "PTO-T209", "a list of tiles, got Tile"),
        (lambda t: pto.concatenate([t, t.to(pto.i32)]), "PTO-U082", "f32 and i32"),
        (lambda t: (t > 0.0) * 2.0, "PTO-U081", "*"),
        (lambda t: t.to(pto.i32) // 2, "PTO-U081", "to(pto.f32) // 3.0"),
    ],
)
def test_mistakes_in_conversions_and_arrangements(act: Any, code: str, told: str):
    def k(x: F32, y: F32) -> None:
        pto.store(y, act(pto.load(x, 16, 64)))

    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(k)(X, np.zeros((16, 64), np.float32))
    assert caught.value.code == code and told in str(caught.value)
