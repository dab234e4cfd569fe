"""One column or one row spread over a tile: which source is spread, in which forms, over what."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.rows import KINDS, bits, same, untouched
from tests.machine import Bench

RNG = np.random.default_rng(23)
COLUMN = ", blayout=col_major"

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}


def by_row(
    op: str,
    dtype: str,
    src0: tuple[str, Any],
    src1: tuple[str, Any],
    shape: Any,
    profile: str = "a5",
) -> Any:
    """Each source as (tile text, values)."""
    bench = Bench(profile)
    bench.tile("a", src0[0], np.asarray(src0[1], KINDS[dtype]))
    bench.tile("b", src1[0], np.asarray(src1[1], KINDS[dtype]))
    bench.tile("d", f"vec, 8x64x{dtype}", valid=shape)
    bench.run(f"pto.{op} ins(%a, %b : {{a}}, {{b}}) outs(%d : {{d}})")
    assert untouched(bench["d"], *shape)
    return bench["d"][: shape[0], : shape[1]]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_a_column_meets_every_element_of_its_row(name: str, dtype: str):
    full, column = RNG.integers(1, 9, (8, 64)), RNG.integers(1, 9, (8, 1))
    found = by_row(
        f"trowexpand{name}",
        dtype,
        (f"vec, 8x64x{dtype}, valid=5x37", full),
        (f"vec, 8x1x{dtype}, valid=5x1{COLUMN}", column),
        (5, 37),
    )
    want = ARITHMETIC[name](full[:5, :37].astype(np.float64), column[:5].astype(np.float64))
    assert same(found, want.astype(KINDS[dtype]))


@pytest.mark.parametrize(("dtype", "block"), [("f32", 8), ("f16", 16), ("i32", 8)])
@pytest.mark.parametrize("profile", ["a5", "a2a3"])
def test_a_row_of_32_bytes_is_repeated_but_on_a5(dtype: str, block: int, profile: str):
    full, blocks = RNG.integers(1, 9, (8, 64)), RNG.integers(1, 9, (8, block))
    found = by_row(
        "trowexpandsub",
        dtype,
        (f"vec, 8x64x{dtype}", full),
        (f"vec, 8x{block}x{dtype}", blocks),
        (8, 64),
        profile,
    )
    held = blocks[:, :1] if profile == "a5" else np.tile(blocks, 64 // block)
    assert found.tolist() == (full - held).tolist()


@pytest.mark.parametrize("form", ["vec, 8x1xf32" + COLUMN, "vec, 8x8xf32"])
def test_the_first_source_may_be_the_spread_one(form: str):
    full, column = RNG.integers(1, 9, (8, 64)), RNG.integers(1, 9, (8, 8))
    held = column[:, :1] if COLUMN in form else column
    found = by_row("trowexpandsub", "f32", (form, held), ("vec, 8x64xf32", full), (8, 64))
    assert found.tolist() == (column[:, :1] - full).tolist()


def test_integer_division_truncates():
    full = [[7, -7, 9, -9] * 16] * 8
    found = by_row(
        "trowexpanddiv",
        "i32",
        ("vec, 8x64xi32", full),
        ("vec, 8x1xi32" + COLUMN, [[2]] * 8),
        (8, 4),
    )
    assert found[0].tolist() == [3, -3, 4, -4]


def test_exponential_of_the_difference_rounds_twice():
    full = RNG.standard_normal((8, 64)).astype(np.float32)
    column = RNG.standard_normal((8, 1)).astype(np.float32)
    found = by_row(
        "trowexpandexpdif",
        "f32",
        ("vec, 8x64xf32", full),
        ("vec, 8x1xf32" + COLUMN, column),
        (8, 64),
    )
    difference = np.float32(full.astype(np.float64) - column)
    want = np.float32([[math.exp(v) for v in row] for row in difference.tolist()])
    assert bits(found) == bits(want)


def test_working_space_is_allowed():
    bench = Bench("a2a3")
    bench.tile("a", "vec, 8x16xf32", np.ones((8, 16)))
    bench.tile("b", "vec, 8x1xf32" + COLUMN, np.arange(8)[:, None])
    bench.tile("t", "vec, 8x8xf32")
    bench.tile("d", "vec, 8x16xf32")
    bench.run("pto.trowexpandmul ins(%a, %b, %t : {a}, {b}, {t}) outs(%d : {d})")
    assert bench["d"].tolist() == [[float(i)] * 16 for i in range(8)]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "i64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "max", "min"])
def test_a_row_meets_every_element_of_its_column(name: str, dtype: str):
    full, row = RNG.integers(1, 9, (8, 64)), RNG.integers(1, 9, (1, 64))
    bench = Bench("a5")
    bench.tile("a", f"vec, 8x64x{dtype}", full)
    bench.tile("b", f"vec, 1x64x{dtype}", row)
    bench.tile("d", f"vec, 8x64x{dtype}", valid=(5, 37))
    bench.run(f"pto.tcolexpand{name} ins(%a, %b : {{a}}, {{b}}) outs(%d : {{d}})")
    assert bench["d"][:5, :37].tolist() == ARITHMETIC[name](full, row)[:5, :37].tolist()
    assert untouched(bench["d"], 5, 37)


def test_division_and_exponential_by_column():
    full, row = RNG.uniform(1, 9, (2, 4, 8)).astype(np.float32)
    bench = Bench("a5")
    bench.tile("a", "vec, 4x8xf32", full)
    bench.tile("b", "vec, 4x8xf32", row)  # row 0 counts
    bench.tile("d", "vec, 4x8xf32")
    bench.run("pto.tcolexpanddiv ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert same(bench["d"], (full.astype(np.float64) / row[0]).astype(np.float32))
    bench.run("pto.tcolexpandexpdif ins(%a, %b : {a}, {b}) outs(%d : {d})")
    difference = np.float32(full.astype(np.float64) - row[0])
    want = np.float32([[math.exp(v) for v in line] for line in difference.tolist()])
    assert bits(bench["d"]) == bits(want)


# ---- spreading alone


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64"])
def test_column_zero_fills_the_rows(dtype: str):
    bench = Bench("a5")
    bench.tile("a", f"vec, 8x32x{dtype}", RNG.integers(1, 99, (8, 32)), valid=(5, 1))
    bench.tile("d", f"vec, 8x64x{dtype}", valid=(5, 37))
    bench.run("pto.trowexpand ins(%a : {a}) outs(%d : {d})")
    assert (bench["d"][:5, :37] == bench["a"][:5, :1]).all() and untouched(bench["d"], 5, 37)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64"])
def test_row_zero_fills_the_columns(dtype: str):
    bench = Bench("a5")
    bench.tile("a", f"vec, 8x64x{dtype}", RNG.integers(1, 99, (8, 64)), valid=(1, 37))
    bench.tile("d", f"vec, 8x64x{dtype}", valid=(5, 37))
    bench.run("pto.tcolexpand ins(%a : {a}) outs(%d : {d})")
    assert (bench["d"][:5, :37] == bench["a"][:1, :37]).all() and untouched(bench["d"], 5, 37)


def test_spreading_moves_bits_of_types_without_arithmetic():
    bench = Bench("cpu")
    bench.tile("a", "vec, 4x32x!pto.hif8", np.arange(128, dtype=np.uint8).reshape(4, 32))
    bench.tile("d", "vec, 4x32x!pto.hif8")
    bench.run("pto.trowexpand ins(%a : {a}) outs(%d : {d})")
    assert bench["d"][:, 7].tolist() == [0, 32, 64, 96]


@pytest.mark.parametrize("layout", [COLUMN, ", slayout=row_major"])
def test_any_layout_on_cpu(layout: str):
    full, row = RNG.integers(1, 9, (16, 32)), RNG.integers(1, 9, (1, 32))
    bench = Bench("cpu")
    bench.tile("a", f"vec, 16x32xf16{layout}", full)
    bench.tile("b", "vec, 1x32xf16", row)
    bench.tile("d", f"vec, 16x32xf16{layout}", valid=(9, 21))
    bench.run("pto.tcolexpandadd ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert (bench["d"][:9, :21] == (full + row)[:9, :21]).all() and untouched(bench["d"], 9, 21)
    bench.run("pto.tcolexpand ins(%b : {b}) outs(%d : {d})")
    assert (bench["d"][:9, :21] == row[:, :21]).all() and untouched(bench["d"], 9, 21)


def test_a_spread_source_that_is_too_short_is_refused():
    bench = Bench("cpu")
    bench.tile("a", "vec, 4x8xf32", np.ones((4, 8)))
    bench.tile("d", "vec, 8x8xf32")
    with pytest.raises(PtoError, match="4x8xf32 ND is read over 8x1"):
        bench.run("pto.trowexpand ins(%a : {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)
