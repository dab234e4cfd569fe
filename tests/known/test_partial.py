"""Two sources, one or both smaller than the destination: every cell by a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.rows import KINDS, NAN, same, untouched
from tests.machine import Bench

RNG = np.random.default_rng(29)
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "tpartadd": lambda a, b: a + b,
    "tpartmul": lambda a, b: a * b,
    "tpartmax": max,
    "tpartmin": min,
}
REGIONS = [  # of src0, src1 and dst, in a tile of 8x32
    ((8, 32), (8, 32), (8, 32)),
    ((8, 32), (3, 32), (8, 32)),
    ((8, 5), (8, 32), (8, 32)),
    ((3, 7), (6, 20), (6, 20)),
    ((6, 20), (0, 0), (6, 20)),
]


def has(region: tuple[int, int], i: int, j: int) -> bool:
    return i < region[0] and j < region[1]


def run(op: str, dtype: str, a: Any, b: Any, regions: Any) -> Any:
    bench = Bench("a5")
    bench.tile("a", f"vec, 8x32x{dtype}", a, valid=regions[0])
    bench.tile("b", f"vec, 8x32x{dtype}", b, valid=regions[1])
    bench.tile("d", f"vec, 8x32x{dtype}", valid=regions[2])
    bench.run(f"pto.{op} ins(%a, %b : {{a}}, {{b}}) outs(%d : {{d}})")
    assert untouched(bench["d"], *regions[2])
    return bench["d"]


@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "i32"])
@pytest.mark.parametrize("op", OPS)
def test_both_where_both_are_valid_else_the_one_that_is(op: str, dtype: str, regions: Any):
    a, b = RNG.integers(1, 9, (2, 8, 32))
    found = run(op, dtype, a, b, regions)
    for i in range(regions[2][0]):
        for j in range(regions[2][1]):
            x, y = int(a[i, j]), int(b[i, j])
            both = has(regions[0], i, j) and has(regions[1], i, j)
            want = OPS[op](x, y) if both else x if has(regions[0], i, j) else y
            assert float(found[i, j]) == want


@pytest.mark.parametrize(
    ("op", "dtype", "want"),
    [
        ("tpartadd", "f32", 0.0),
        ("tpartmul", "i16", 0),
        ("tpartmax", "f32", -3.4028234663852886e38),
        ("tpartmin", "f32", 3.4028234663852886e38),
        ("tpartmax", "f16", -65504.0),
        ("tpartmax", "i8", -128),
        ("tpartmin", "i8", 127),
        ("tpartmax", "ui16", 0),
        ("tpartmin", "ui32", 2**32 - 1),
    ],
)
def test_where_neither_is_valid(op: str, dtype: str, want: float):
    ones = np.ones((8, 32))
    found = run(op, dtype, ones, ones, ((4, 32), (8, 16), (8, 32)))
    assert set(found[4:, 16:].reshape(-1).tolist()) == {want}
    assert (found[4:, :16] == 1).all() and (found[:4, 16:] == 1).all()


def test_integers_wrap_and_nan_wins():
    assert run("tpartadd", "i8", [[100]], [[100]], ((1, 1), (1, 1), (1, 1)))[0, 0] == -56
    found = run("tpartmax", "f32", [[NAN, 1]], [[1, NAN]], ((1, 2), (1, 2), (1, 2)))
    assert same(found[0, :2], np.float32([NAN, NAN]))


def test_a_source_larger_than_the_destination_is_refused():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x32xf32", np.ones((8, 32)))
    bench.tile("d", "vec, 8x32xf32", valid=(4, 32))
    with pytest.raises(PtoError, match="8x32 valid elements, more than the 4x32 of dst"):
        bench.run("pto.tpartadd ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)


# ---- with indices


@pytest.mark.parametrize("index", ["i16", "ui32", "i32"])
@pytest.mark.parametrize(("op", "better"), [("tpartargmax", np.greater), ("tpartargmin", np.less)])
def test_the_better_pair_and_of_equals_the_second(op: str, better: Any, index: str):
    a, b = RNG.integers(1, 4, (2, 8, 16))
    regions = ((8, 16), (5, 9), (8, 16))
    bench = Bench("a5")
    for name, values, region in (("a", a, regions[0]), ("b", b, regions[1])):
        bench.tile(name, "vec, 8x16xf16", values, valid=region)
    bench.tile("i", f"vec, 8x16x{index}", np.full((8, 16), 7), valid=regions[0])
    bench.tile("j", f"vec, 8x16x{index}", np.full((8, 16), 9), valid=regions[1])
    bench.tile("d", "vec, 8x16xf16")
    bench.tile("k", f"vec, 8x16x{index}")
    bench.run(
        f"pto.{op} ins(%a, %b, %i, %j : {{a}}, {{b}}, {{i}}, {{j}}) outs(%d, %k : {{d}}, {{k}})"
    )
    first = np.ones((8, 16), bool)
    first[:5, :9] = better(a, b)[:5, :9]
    assert (bench["d"] == np.where(first, a, b)).all()
    assert (bench["k"] == np.where(first, 7, 9)).all()


def test_pairs_stay_in_the_valid_region_and_nan_is_never_better():
    bench = Bench("a5")
    bench.tile("a", "vec, 2x8xf32", [[NAN, 5, 1], [0, 0, 0]], valid=(1, 3))
    bench.tile("b", "vec, 2x8xf32", [[2, NAN, 2], [0, 0, 0]], valid=(1, 3))
    bench.tile("i", "vec, 2x8xi32", np.full((2, 8), 7), valid=(1, 3))
    bench.tile("j", "vec, 2x8xi32", np.full((2, 8), 9), valid=(1, 3))
    bench.tile("d", "vec, 2x8xf32", valid=(1, 3))
    bench.tile("k", "vec, 2x8xi32", valid=(1, 3))
    bench.run("pto.tpartargmax ins(%a, %b, %i, %j : {a}, {b}, {i}, {j}) outs(%d, %k : {d}, {k})")
    assert bench["k"][0, :3].tolist() == [9, 9, 9]
    assert same(bench["d"][0, :3], np.float32([2, NAN, 2]))
    assert untouched(bench["d"], 1, 3) and untouched(bench["k"], 1, 3)


@pytest.mark.parametrize("dtype", ["f16", "i16"])
def test_boxed_tiles_on_cpu(dtype: str):
    a, b = RNG.integers(1, 9, (2, 16, 32)).astype(KINDS[dtype])
    bench = Bench("cpu")
    bench.tile("a", f"vec, 16x32x{dtype}, slayout=row_major", a)
    bench.tile("b", f"vec, 16x32x{dtype}", b, valid=(7, 32))
    bench.tile("d", f"vec, 16x32x{dtype}, blayout=col_major, slayout=row_major")
    bench.run("pto.tpartmul ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert (bench["d"][:7] == (a * b)[:7]).all() and (bench["d"][7:] == a[7:]).all()
