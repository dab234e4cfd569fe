"""Products of operands that are larger than L0: they stay in L1, and k is cut into slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pto

Array = npt.NDArray[Any]
ENGINES = ("reference", "jit")


@pto.kernel(profile="a2a3")
def alone(
    a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any], m: int, k: int, n: int
) -> None:
    pto.store(c, pto.load(a, m, k) @ pto.load(b, k, n))


@pto.kernel(profile="a2a3")
def summed(
    a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any], m: int, k: int, n: int
) -> None:
    acc = pto.zeros(m, n, pto.f32, role="acc")
    for at in pto.range(0, a.shape[1], k):
        acc += pto.load(a[:, at:], m, k) @ pto.load(b[at:, :], k, n)
    pto.store(c, acc)


def sliced(a: Array, b: Array, step: int, slice: int) -> Array:
    """The sum over k by slices: each from zero in order of k, then added to those before it."""
    total = None
    x, y = a.astype(np.float32), b.astype(np.float32)
    for start in range(0, a.shape[1], step):
        for at in range(start, min(start + step, a.shape[1]), slice):
            part = np.zeros((a.shape[0], b.shape[1]), np.float32)
            for k in range(at, min(at + slice, start + step, a.shape[1])):
                part += x[:, k, None] * y[k]
            total = part if total is None else total + part
    assert total is not None
    return total


def operands(m: int, k: int, n: int) -> tuple[Array, Array]:
    random = np.random.default_rng(m + k + n)
    a, b = random.standard_normal((m, k)), random.standard_normal((k, n))
    return a.astype(np.float16), b.astype(np.float16)


def extracts(text: str) -> int:
    return text.count("pto.textract ")


# By hand: half of L0A and of L0B is 32 KB, so f16 slices of 256 columns have 64 rows, those of 128
# columns 128; a side of 16 takes longer slices, and the other side decides.
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("m", "k", "n", "slice"),
    [(128, 256, 256, 64), (128, 320, 128, 128), (16, 192, 256, 64), (256, 144, 32, 64)],
)
def test_a_large_product_is_the_sum_of_slices(
    engine: str, m: int, k: int, n: int, slice: int
) -> None:
    a, b = operands(m, k, n)
    c = np.zeros((m, n), np.float32)
    alone.run(a, b, c, m, k, n, engine=engine)
    np.testing.assert_array_equal(c, sliced(a, b, k, slice))
    assert extracts(alone.ir) == 2 * -(-k // slice)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [512, 600, 200])
def test_products_are_added_slice_by_slice_to_the_end_of_k(engine: str, k: int) -> None:
    a, b = operands(128, k, 256)
    c = np.zeros((128, 256), np.float32)
    summed.run(a, b, c, 128, 256, 256, engine=engine)
    np.testing.assert_array_equal(c, sliced(a, b, 256, 64))
    assert not summed.sanitize(a, b, c, 128, 256, 256).findings


def test_operands_that_fit_are_moved_whole() -> None:
    alone.module(*_shapes(128, 128, 256), 128, 128, 256)
    assert extracts(alone.ir) == 0
    assert alone.ir.count("pto.tmov ") == 2


def _shapes(m: int, k: int, n: int, kind: Any = np.float16, into: Any = np.float32) -> list[Array]:
    return [np.zeros((m, k), kind), np.zeros((k, n), kind), np.zeros((m, n), into)]


@pytest.mark.parametrize(
    ("kind", "into", "k", "slice"),
    [(np.int8, np.int32, 512, 128), (np.float32, np.float32, 128, 32)],
)
def test_the_slice_has_as_many_bytes_in_every_type(
    kind: Any, into: Any, k: int, slice: int
) -> None:
    """128 columns at 256: half of L0B is 128 bytes a column."""
    a, b, c = _shapes(128, k, 256, kind, into)
    random = np.random.default_rng(0)
    a[:], b[:] = random.integers(-9, 9, a.shape), random.integers(-9, 9, b.shape)
    alone.run(a, b, c, 128, k, 256)
    assert extracts(alone.ir) == 2 * k // slice
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


def test_eager_mode_multiplies_slices_too() -> None:
    a, b = operands(64, 256, 256)
    with pto.eager("a2a3"):
        product: Any = pto.load(a, 64, 256) @ pto.load(b, 256, 256)
        np.testing.assert_array_equal(product.numpy(), sliced(a, b, 256, 64))


def test_a_named_product_stays_beside_the_accumulator() -> None:
    """`p` is used twice, so that it is no part of the sum."""
    a, b = operands(16, 256, 256)

    @pto.kernel(profile="a2a3")
    def twice(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
        p = pto.load(a, 16, 256) @ pto.load(b, 256, 256)
        acc = pto.zeros(16, 256, pto.f32, role="acc")
        acc += pto.load(a, 16, 256) @ pto.load(b, 256, 256)
        pto.store(c[0:16, :], p)
        pto.store(c[16:32, :], acc)

    c = np.zeros((32, 256), np.float32)
    twice(a, b, c)
    np.testing.assert_array_equal(c, np.tile(sliced(a, b, 256, 64), (2, 1)))
