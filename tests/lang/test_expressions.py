"""Tile expressions: what NumPy gives, on every profile and engine, with edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto

F16, F32 = pto.Global[pto.f16], pto.Global[pto.f32]
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
        assert apply.sanitize(x, np.zeros_like(x)).is_clean


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
    assert gemm[2].sanitize(a, b, c).is_clean


def _updated(x: Any) -> Any:
    total = np.zeros_like(x) + x
    total *= 2
    total -= x.max(axis=1, keepdims=True)
    return total / 3 + 1


def _update(t: Any) -> Any:
    total = pto.zeros(64, 128, pto.f32)
    total += t
    total *= 2.0
    total -= t.max(axis=1)
    total /= 3.0
    total[:] = total + 1.0
    return total


def _best(t: Any) -> Any:
    highest = pto.full(64, 1, -1e30, pto.f32)
    highest[:] = pto.max(highest, t.max(axis=1))
    return t * 0.0 + highest


def _ramp(t: Any) -> Any:
    return t * 0.0 + (pto.arange(128).to(pto.f32) + pto.arange(64).to(pto.f32).T)


def _whole_then_part(t: Any) -> Any:
    highest = pto.full(64, 1, -4.0, pto.f32)
    for _ in pto.range(2):
        highest *= 0.5  # all of it, then as far as t goes
        highest[:] = pto.max(highest, t.max(axis=1))
    return t * 0.0 + highest


MORE: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (_update, _updated),
    (
        _whole_then_part,
        lambda x: 0 * x + np.maximum(np.maximum(x.max(1), -2) * 0.5, x.max(1))[:, None],
    ),
    (_best, lambda x: 0 * x + x.max(1, keepdims=True)),
    (
        lambda t: pto.where((t > 0.0) & (t < 1.0) | t.eq(2.0), t, -1.0),
        lambda x: np.where((x > 0) & (x < 1) | (x == 2), x, -1),
    ),
    (
        lambda t: pto.where(t > t.mean(axis=1), 1.0, t),
        lambda x: np.where(x > x.mean(1, keepdims=True), 1, x),
    ),
    (lambda t: t * 0.0 + pto.sum(t, axis=1), lambda x: 0 * x + x.sum(1, keepdims=True)),
    (lambda t: t * 0.0 + pto.max(t, axis=0), lambda x: 0 * x + x.max(0)),
    (lambda t: t + t.argmax(axis=1).to(pto.f32), lambda x: x + x.argmax(1)[:, None]),
    (lambda t: t * 0.0 + t.min(axis=1) * t.max(axis=0), lambda x: x.min(1)[:, None] * x.max(0)),
    (lambda t: (t * 8.0).to(pto.i32).to(pto.f32), lambda x: np.trunc(x * 8)),
    (
        lambda t: t * (t.max(axis=1).to(pto.f16) * 2.0).to(pto.f32),
        lambda x: x * x.max(1, keepdims=True).astype(np.float16) * 2,
    ),
    (lambda t: pto.maximum(t, pto.minimum(t, 0.0)), lambda x: x),
    (lambda t: abs(t) ** 2.0 % 3.0, lambda x: (x * x) % 3),
    (lambda t: 2.0 ** pto.min(t, 1.0), lambda x: 2 ** np.minimum(x, 1)),
]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("number", range(len(MORE)))
def test_sequences_of_instructions_are_those_of_numpy(profile: str, number: int):
    act, wanted = MORE[number]

    @pto.kernel(profile=profile)
    def apply(x: F32, y: F32) -> None:
        i = pto.block_idx() * 64
        t = pto.load(x[i:, :], 64, 128)
        pto.store(y[i:, :], act(t))

    for shape in SHAPES[:3]:
        x = numbers(shape)
        for engine in ("reference", "jit"):
            y = np.full_like(x, np.nan)
            apply(x, y, engine=engine)
            assert np.allclose(y, wanted(x.astype(np.float64)), rtol=2e-5, atol=2e-5), (
                shape,
                engine,
            )
        assert apply.sanitize(x, np.zeros_like(x)).is_clean


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_bits_of_integers(profile: str):
    @pto.kernel(profile=profile)
    def mixed(x: pto.Global[pto.i32], y: pto.Global[pto.i32]) -> None:
        t = pto.load(x, 16, 64)
        pto.store(y, ((t & 255) << 3 | t >> 2) + (~t & t))

    x = np.random.default_rng(5).integers(-1000, 1000, (13, 50), np.int32)
    y = np.zeros_like(x)
    mixed(x, y)
    assert np.array_equal(y, ((x & 255) << 3 | x >> 2) + (~x & x))


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_one_column_of_an_array_is_a_number_for_each_row(profile: str):
    @pto.kernel(profile=profile)
    def scaled(x: F32, y: F32, z: F32) -> None:
        t = pto.load(x, 16, 64)
        pto.store(y, t * pto.load(x[:, 3:4]))
        pto.store(z[:, 1:2], t.sum(axis=1))

    x = numbers((13, 50))
    y, z = np.zeros_like(x), np.zeros((13, 3), np.float32)
    scaled(x, y, z)
    assert np.array_equal(y, x * x[:, 3:4])
    assert np.allclose(z[:, 1], x.sum(axis=1), atol=1e-5) and not z[:, [0, 2]].any()


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
def test_expressions_are_eager_too(profile: str):
    x = numbers((10, 20))
    with pto.eager(profile):
        t = pto.load(x, 16, 32)
        e = pto.exp(t - t.max(axis=1))
        half = [np.ascontiguousarray(each, np.float16) for each in (x, x.T)]
        acc = pto.zeros(10, 10, pto.f32, role="acc")
        for _ in range(2):
            acc = pto.dot(pto.load(half[0]), pto.load(half[1]), acc=acc)
        found, product = (e / e.sum(axis=1)).numpy(), np.zeros((10, 10), np.float32)
        pto.store(product, acc)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(found, e / e.sum(axis=1, keepdims=True), atol=1e-6)
    wide = half[0].astype(np.float64)
    assert np.allclose(product, 2 * wide @ wide.T, atol=1e-4)


def test_on_a5_what_was_computed_is_a_factor():
    @pto.kernel(profile="a5")
    def scores(x: F32, y: F32) -> None:
        p = pto.exp(pto.load(x[0:32, 0:32])).to(pto.f16)
        pto.store(y, pto.dot(p, pto.load(x[0:32, 0:32]).to(pto.f16)))

    x = numbers((32, 32))
    y = np.zeros_like(x)
    scores(x, y)
    p, v = np.exp(x).astype(np.float16), x.astype(np.float16)
    assert np.allclose(y, p.astype(np.float64) @ v.astype(np.float64), atol=1e-3)
    assert scores.sanitize(x, y).is_clean


def test_temporaries_lie_over_what_nobody_needs_any_more():
    @pto.kernel
    def both(x: F32, y: F32, z: F32) -> None:
        t = pto.load(x, 16, 64)
        kept = t + 1.0  # over t
        twice = kept * 2.0  # kept is needed still
        pto.store(y, kept)
        pto.store(z, pto.exp(twice - twice.max(axis=1)))  # over twice

    x = numbers((13, 50))
    y, z = np.zeros_like(x), np.zeros_like(x)
    both(x, y, z)
    assert np.array_equal(y, x + np.float32(1))
    twice = 2 * (x.astype(np.float64) + 1)
    assert np.allclose(z, np.exp(twice - twice.max(axis=1, keepdims=True)), atol=1e-6)
    assert both.ir.count("alloc_tile") == 4, "t, twice, the column and its scratch tile"


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
def test_a_conversion_clamps_or_keeps_low_bits(profile: str) -> None:
    @pto.kernel(profile=profile)
    def both(x: pto.Global[pto.f16], y: pto.Global[pto.i8], z: pto.Global[pto.i8]) -> None:
        t = pto.load(x, 1, 64)
        pto.store(y, t.to(pto.i8, saturate=True))
        pto.store(z, t.to(pto.i8, saturate=False))

    whole = np.arange(64) * 10 - 320
    y, z = np.zeros((2, 1, 64), np.int8)
    for engine in ("reference", "jit"):
        both(whole.astype(np.float16)[None], y, z, engine=engine)
        assert (y == whole.clip(-128, 127)).all()
        assert (z == whole.astype(np.int8)).all()


def _rows(t: Any) -> Any:
    return t - t[3:4, :]


def _rows_in_place(t: Any) -> Any:
    t -= t[3:4, :]
    return t


def _rows_of_a_loop(t: Any) -> Any:
    for i in pto.range(3):
        t = t - t[i : i + 1, :]
    return t


def _late_rows_from_early_ones(t: Any) -> Any:
    t[4:12, :] = t[0:8, :]
    return t


def _late_rows_and_early_ones(t: Any) -> Any:
    late = t[4:12, :]
    late += t[0:8, :]
    return t


def _columns(t: Any) -> Any:
    return t / (abs(t[:, 7:8]) + 1.0)


def _column_of_a_strip(t: Any) -> Any:
    t[8:16, :] = t[8:16, :] * t[8:16, 9:10]
    return t


def _copied_column(t: Any) -> Any:
    c = pto.zeros(16, 1, pto.f32)
    c[:] = t[:, 31:32]
    return t - c


def _elements(t: Any) -> Any:
    s = 0.0
    part = t[4:12, 8:16]
    for i in pto.range(8):
        s = s + part[i, 3] * t[i, i]
    t[2, 5] = s
    part[0, 1] = t.max(axis=1)[9, 0]
    t[-1, -1] = 7.0
    return t


def _with(x: Any, change: Callable[[Any], None]) -> Any:
    y = x.copy()
    change(y)
    return y


def _late_rows(y: Any) -> None:
    y[4:12] = y[0:8].copy()


def _late_sums(y: Any) -> None:
    y[4:12] += y[0:8].copy()


def _strip(y: Any) -> None:
    y[8:] *= y[8:, 9:10].copy()


def _some_elements(y: Any) -> None:
    total = sum(y[4 + i, 11] * y[i, i] for i in range(8))
    y[4, 9], y[2, 5], y[-1, -1] = y[9].max(), total, 7.0


def _three_rows(x: Any) -> Any:
    for i in range(3):
        x = x - x[i : i + 1]
    return x


WINDOWS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (_rows, lambda x: x - x[3:4]),
    (_rows_in_place, lambda x: x - x[3:4]),
    (_rows_of_a_loop, _three_rows),
    (_late_rows_from_early_ones, lambda x: _with(x, _late_rows)),
    (_late_rows_and_early_ones, lambda x: _with(x, _late_sums)),
    (_columns, lambda x: x / (abs(x[:, 7:8]) + 1)),
    (_column_of_a_strip, lambda x: _with(x, _strip)),
    (_copied_column, lambda x: x - x[:, 31:32]),
    (_elements, lambda x: _with(x, _some_elements)),
]


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_windows_on_a_tile_are_operands_as_in_numpy(profile: str, number: int):
    act, wanted = WINDOWS[number]

    @pto.kernel(profile=profile)
    def k(x: F32, y: F32) -> None:
        pto.store(y, act(pto.load(x, 16, 64)))

    x = numbers((16, 64))
    for engine in ("reference", "jit"):
        y = np.zeros_like(x)
        k.run(x, y, engine=engine)
        np.testing.assert_allclose(y, wanted(x.astype(np.float64)), rtol=1e-5, atol=1e-5)
    assert not k.sanitize(x, np.zeros_like(x)).findings


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
def test_one_column_of_a_tile_is_stored(profile: str):
    @pto.kernel(profile=profile)
    def k(x: F32, y: F32) -> None:
        i = pto.block_idx() * 16
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64)[:, 31:32])

    x = numbers((37, 64))
    y = np.zeros((37, 1), np.float32)
    k[3](x, y)
    np.testing.assert_array_equal(y, x[:, 31:32])


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
def test_a_product_added_in_place_is_added_by_the_matrix_unit(profile: str):
    """`acc += a @ b` has the instructions of `pto.dot(a, b, acc=acc)`, in a loop with tails."""

    @pto.kernel(profile=profile)
    def added(x: F16, w: F16, y: F32) -> None:
        acc = pto.zeros(32, 32, pto.f32, role="acc")
        for k in pto.range(0, x.shape[1], 32):
            acc += pto.load(x[:, k:], 32, 32) @ pto.load(w[k:, :], 32, 32)
        pto.store(y, acc)

    @pto.kernel(profile=profile)
    def named(x: F16, w: F16, y: F32) -> None:
        acc = pto.zeros(32, 32, pto.f32, role="acc")
        for k in pto.range(0, x.shape[1], 32):
            acc = pto.dot(pto.load(x[:, k:], 32, 32), pto.load(w[k:, :], 32, 32), acc=acc)
        pto.store(y, acc)

    rng = np.random.default_rng(3)
    x, w = (rng.integers(-3, 4, n).astype(np.float16) for n in ((20, 70), (70, 25)))
    y, z = (np.zeros((20, 25), np.float32) for _ in range(2))
    added(x, w, y)
    named(x, w, z)
    np.testing.assert_array_equal(y, x.astype(np.float64) @ w.astype(np.float64))
    np.testing.assert_array_equal(z, y)
    assert instructions(added.ir) == instructions(named.ir)
    assert added.ir.count("alloc_tile") == named.ir.count("alloc_tile")


def test_a_product_that_was_added_in_place_is_not_there_any_more():
    @pto.kernel(profile="a5")
    def k(x: pto.Global[pto.f16], y: F32) -> None:
        t = pto.load(x, 32, 32)
        acc = pto.dot(t, t)
        product = t @ t
        acc += product
        pto.store(y, acc)
        pto.store(y, product)

    with pytest.raises(pto.PtoError, match="PTO-U086"):
        k(np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float32))
    with pto.eager("a5"):
        t = pto.load(np.eye(32, dtype=np.float16), 32, 32)
        acc = pto.dot(t, t)
        acc += t @ t
        np.testing.assert_array_equal((acc * 1.0).numpy(), 2 * np.eye(32))
