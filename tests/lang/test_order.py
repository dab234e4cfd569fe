"""Running sums, flips and sorts of tiles, and broadcasting, against NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import pto

F32 = pto.Global[pto.f32]
Function = Callable[..., Any]

FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "cumsum": (pto.cumsum, np.cumsum),
    "flip": (pto.flip, np.flip),
    "sort": (pto.sort, np.sort),
    "argsort": (pto.argsort, lambda x, axis: np.argsort(x, axis, kind="stable").astype(np.int32)),
    "descending": (
        lambda t, axis: pto.argsort(t, axis, descending=True),
        lambda x, axis: np.argsort(-x, axis, kind="stable").astype(np.int32),
    ),
}


def values(*shape: int) -> Any:
    """Numbers that repeat, infinities and NaN."""
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32) / 4
    x.flat[[3, 5, 7]] = np.inf, -np.inf, np.nan
    return x


def run(make: Function, wanted: Any, profile: str, *arrays: Any) -> None:
    """Both engines give the bits wanted, and the sanitizer is silent."""

    def two(x: Any, z: Any, y: Any) -> None:
        pto.store(y, make(pto.load(x, *arrays[0].shape), pto.load(z, *arrays[1].shape)))

    def one(x: Any, y: Any) -> None:
        pto.store(y, make(pto.load(x, *arrays[0].shape)))

    for each in (one, two):
        each.__annotations__ = dict.fromkeys(("x", "z", "y"), pto.Global[Any])
    kernel: Any = pto.kernel(profile=profile)(one if len(arrays) == 1 else two)
    for engine in ("reference", "jit"):
        y = np.zeros_like(wanted)
        kernel.run(*arrays, y, engine=engine)
        assert np.array_equal(y, wanted, equal_nan=wanted.dtype.kind == "f")
    assert kernel.sanitize(*arrays, np.zeros_like(wanted)) == []


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "axis", "profile"),
    [((9, 40), 0, "a2a3"), ((5, 60), 1, "a5"), ((1, 20), -1, "a2a3"), ((10, 1), -2, "a5")],
    ids=str,
)
def test_order_is_that_of_numpy(name: str, shape: tuple[int, int], axis: int, profile: str):
    make, expected = FUNCTIONS[name]
    x = values(*shape)
    run(lambda t: make(t, axis), expected(x, axis), profile, x)


@pytest.mark.parametrize("kind", [np.float16, np.int16])
def test_narrow_types_are_sorted_in_f32(kind: Any):
    x = np.random.default_rng(1).integers(-300, 300, (3, 64)).astype(kind)
    for profile in ("a2a3", "a5"):
        run(pto.sort, np.sort(x), profile, x)


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(("k", "largest"), [(1, True), (50, True), (3, False)])
def test_topk(profile: str, k: int, largest: bool):
    x = values(4, 70)

    @pto.kernel(profile=profile)
    def best(x: F32, y: F32, at: pto.Global[pto.i32]) -> None:
        i = pto.block_idx() * 3  # the last block has one row
        numbers, columns = pto.topk(pto.load(x[i:, :], 3, 70), k, largest=largest)
        pto.store(y[i:, :], numbers)
        pto.store(at[i:, :], columns)

    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :k]
    for engine in ("reference", "jit"):
        y, at = np.zeros((4, k), np.float32), np.zeros((4, k), np.int32)
        best[2](x, y, at, engine=engine)
        assert np.array_equal(at, order)
        assert np.array_equal(y, np.take_along_axis(x, order, 1), equal_nan=True)


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda t: pto.topk(t, 65), "PTO-U203"),
        (lambda t: pto.topk(t, t), "PTO-U203"),
        (lambda t: pto.sort(t, 2), "PTO-U088"),
        (lambda t: pto.sort(t.to(pto.i32)), "PTO-U085"),
        (lambda t: pto.flip(3.0), "PTO-T209"),
    ],
)
def test_what_cannot_be_ordered(act: Function, code: str):
    with pytest.raises(pto.PtoError) as caught, pto.eager("a5"):
        act(pto.load(np.zeros((4, 64), np.float32), 4, 64))
    assert caught.value.code == code


# ---- broadcasting

SHAPES = {"tile": (5, 40), "column": (5, 1), "row": (1, 40), "element": (1, 1)}
OPERATORS: dict[str, tuple[Function, Function]] = {
    "+": (operator.add, operator.add),
    "/": (operator.truediv, operator.truediv),
    "max": (pto.max, np.maximum),
    "compared": (
        lambda a, b: pto.where(a < b, 1.0, 2.0),
        lambda a, b: np.where(a < b, np.float32(1), np.float32(2)),
    ),
    "chosen": (lambda a, b: pto.where(a > 0.0, a, b), lambda a, b: np.where(a > 0, a, b)),
}


@pytest.mark.parametrize(
    ("sign", "profile"),
    [(sign, ("a2a3", "a5")[n % 2]) for n, sign in enumerate(OPERATORS)] + [("compared", "a2a3")],
)
def test_every_operator_broadcasts(sign: str, profile: str):
    make, expected = OPERATORS[sign]
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(each).astype(np.float32) for each in SHAPES.values()]

    def k(a: F32, b: F32, c: F32, d: F32, y: pto.Global[pto.f32, 16, 5, 40]) -> None:
        pairs = product(zip((a, b, c, d), SHAPES.values(), strict=True), repeat=2)
        for n, ((x, own), (z, other)) in enumerate(pairs):
            rows, cols = np.broadcast_shapes(own, other)
            pto.store(y[n, 0:rows, 0:cols], make(pto.load(x, *own), pto.load(z, *other)))

    wanted = np.zeros((16, 5, 40), np.float32)
    for n, (left, right) in enumerate(product(arrays, repeat=2)):
        made = expected(left, right)
        wanted[n, : made.shape[0], : made.shape[1]] = made
    kernel: Any = pto.kernel(profile=profile)(k)
    for engine in ("reference", "jit"):
        y = np.zeros_like(wanted)
        kernel.run(*arrays, y, engine=engine)
        assert np.array_equal(y, wanted)


@pytest.mark.parametrize(("own", "other"), [("row", "tile"), ("column", "row"), ("element", "row")])
def test_a_sum_in_place_does_not_grow(own: str, other: str):
    with pytest.raises(pto.PtoError, match="do not fit") as caught, pto.eager("a5"):
        t, u = (
            pto.load(np.zeros(SHAPES[each], np.float32), *SHAPES[each]) for each in (own, other)
        )
        t += u
    assert caught.value.code == "PTO-U083"


def test_two_numbers_need_no_tiles():
    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.where(pto.load(x, 16, 64) > 0.0, 1.0, 0.0))

    x = np.zeros((16, 64), np.float32)
    kernel = pto.kernel(k)
    kernel(x, x.copy())
    assert kernel.ir.count("pto.texpands ins") == 2  # one is compared with, one is chosen
    assert kernel.ir.count("pto.tsels ins") == 1
