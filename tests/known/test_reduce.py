"""Folds of rows and columns in their fixed order, and searches: by hand and by plain loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.rows import INF, KINDS, NAN, bits, same, untouched, wrapped
from tests.machine import Bench

RNG = np.random.default_rng(17)


def row_fold(
    op: str, dtype: str, values: Any, to: str = "", layout: str = "", valid: Any = None
) -> Any:
    values = np.asarray(values, KINDS[dtype])
    bench = Bench("cpu" if layout else "a5")
    shape = f"{values.shape[0]}x{values.shape[1]}x{dtype}"
    bench.tile("a", f"vec, {shape}{layout}", values, valid=valid)
    bench.tile("t", f"vec, {shape}")
    rows = (valid or values.shape)[0]
    bench.tile("d", f"vec, {values.shape[0]}x1x{to or dtype}, blayout=col_major", valid=(rows, 1))
    bench.run(f"pto.{op} ins(%a, %t : {{a}}, {{t}}) outs(%d : {{d}})")
    assert untouched(bench["d"], rows, 1)
    return bench["d"][:rows, 0]


def column_fold(op: str, dtype: str, values: Any, attrs: str = "", valid: Any = None) -> Any:
    values = np.asarray(values, KINDS[dtype])
    bench = Bench("a5")
    shape = f"{values.shape[0]}x{values.shape[1]}x{dtype}"
    bench.tile("a", f"vec, {shape}", values, valid=valid)
    cols = (valid or values.shape)[1]
    bench.tile("d", f"vec, 2x{values.shape[1]}x{dtype}", valid=(1, cols))
    if attrs:
        bench.tile("t", f"vec, {shape}")
        bench.run(f"pto.{op} ins(%a, %t {attrs} : {{a}}, {{t}}) outs(%d : {{d}})")
    else:
        bench.run(f"pto.{op} ins(%a : {{a}}) outs(%d : {{d}})")
    assert untouched(bench["d"], 1, cols)
    return bench["d"][0, :cols]


def one_after_the_other(fn: Callable[[Any, Any], Any], start: float, line: Any, kind: Any) -> Any:
    """Every step in f64 rounded to the type: sums and products of two round once so."""
    acc = kind(start)
    for value in line:
        acc = kind(fn(np.float64(acc), np.float64(value)))
    return acc


def in_strands(fn: Callable[[Any, Any], Any], start: float, line: Any, kind: Any) -> Any:
    """The order of a row: sixteen strands, every sixteenth element each; then n and n+8, ..."""
    strands = [one_after_the_other(fn, start, line[n::16], kind) for n in range(16)]
    while len(strands) > 1:
        half = len(strands) // 2
        strands = [
            kind(fn(np.float64(a), np.float64(b)))
            for a, b in zip(strands[:half], strands[half:], strict=True)
        ]
    return strands[0]


SUM, PRODUCT = (np.add, 0.0), (np.multiply, 1.0)


def floats(dtype: str, rows: int, cols: int) -> Any:
    spread = 10.0 ** RNG.integers(-3, 3, (rows, cols)) if dtype == "f32" else 1.0
    return (RNG.uniform(0.6, 1.5, (rows, cols)) * spread).astype(KINDS[dtype])


@pytest.mark.parametrize("cols", [1, 2, 9, 16, 65])
def test_row_sums_of_f32_go_in_strands(cols: int):
    x = floats("f32", 7, cols)
    want = [in_strands(*SUM, line, np.float32) for line in x]
    assert bits(row_fold("trowsum", "f32", x)) == bits(np.float32(want))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_row_sums_of_16_bit_floats_are_kept_in_f32_and_rounded_once(dtype: str):
    x = floats(dtype, 6, 64)
    wide = [in_strands(*SUM, line, np.float32) for line in x]
    assert same(row_fold("trowsum", dtype, x), np.float32(wide).astype(KINDS[dtype]))
    assert bits(row_fold("trowsum", dtype, x, to="f32")) == bits(np.float32(wide))


@pytest.mark.parametrize(("rows", "cols"), [(1, 9000), (2, 3000), (3000, 2), (4096, 1), (130, 130)])
def test_the_order_holds_for_tiles_of_any_shape(rows: int, cols: int):
    x = floats("f32", rows, cols)
    by_row = [in_strands(*SUM, line, np.float32) for line in x]
    assert bits(row_fold("trowsum", "f32", x)) == bits(np.float32(by_row))
    assert bits(column_fold("tcolsum", "f32", x)) == bits(np.add.accumulate(x, axis=0)[-1])


def test_the_order_of_a_sum_shows():
    little = 2**-24
    one_strand = [1.0, *[0.0] * 15, little, *[0.0] * 15, little]  # each is lost beside 1
    two_strands = [1.0, little, *[0.0] * 15, little]  # together first, and not lost
    assert row_fold("trowsum", "f32", [one_strand]).tolist() == [1.0]
    assert row_fold("trowsum", "f32", [two_strands]).tolist() == [1 + 2**-23]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_products_round_at_every_step(dtype: str):
    x = floats("f16", 5, 33).astype(KINDS[dtype])
    by_row = [in_strands(*PRODUCT, line, KINDS[dtype]) for line in x]
    assert same(row_fold("trowprod", dtype, x), by_row)
    by_column = [one_after_the_other(*PRODUCT, line, KINDS[dtype]) for line in x]
    assert same(column_fold("tcolprod", dtype, x.T), by_column)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("cols", [1, 3, 40])
def test_column_sums_go_from_the_top_in_the_type_of_the_tile(dtype: str, cols: int):
    x = floats(dtype, 50, cols)
    want = [one_after_the_other(*SUM, line, KINDS[dtype]) for line in x.T]
    assert same(column_fold("tcolsum", dtype, x), want)


def pairs(column: list[Any], kind: Any) -> Any:
    """Neighbours first; an odd last one joins the last pair."""
    while len(column) > 1:
        found = [kind(a + b) for a, b in zip(column[0::2], column[1::2], strict=False)]
        if len(column) % 2:
            found[-1] = kind(column[-1] + found[-1])
        column = found
    return column[0]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 16, 29])
def test_column_sums_in_pairs(rows: int):
    x = floats("f32", rows, 24)
    found = column_fold("tcolsum", "f32", x, "{isBinary = true}")
    want = [pairs([np.float32(v) for v in column], np.float32) for column in x.T]
    assert bits(found) == bits(np.float32(want))


@pytest.mark.parametrize("dtype", ["i16", "i32", "i64", "ui64"])
def test_integer_sums_and_products_wrap(dtype: str):
    info = np.iinfo(KINDS[dtype])
    x = RNG.integers(info.min, info.max, (4, 9), dtype=KINDS[dtype])
    exact = [[int(v) for v in line] for line in x]
    assert row_fold("trowsum", dtype, x).tolist() == wrapped([sum(e) for e in exact], dtype)
    products = wrapped([int(np.prod(np.array(e, object))) for e in exact], dtype)
    assert row_fold("trowprod", dtype, x).tolist() == products
    assert column_fold("tcolsum", dtype, x.T).tolist() == wrapped([sum(e) for e in exact], dtype)


def test_sums_of_i16_may_go_into_i32():
    assert row_fold("trowsum", "i16", [[32767] * 8], to="i32").tolist() == [8 * 32767]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i8", "ui8"])
def test_extremes(dtype: str):
    x = RNG.permutation(120).reshape(6, 20).astype(KINDS[dtype])
    ordered = np.sort(x, axis=1)
    assert row_fold("trowmax", dtype, x).tolist() == ordered[:, -1].tolist()
    assert row_fold("trowmin", dtype, x).tolist() == ordered[:, 0].tolist()
    assert column_fold("tcolmax", dtype, x.T).tolist() == ordered[:, -1].tolist()
    assert column_fold("tcolmin", dtype, x.T).tolist() == ordered[:, 0].tolist()


def test_extremes_let_nan_win_and_know_the_sign_of_zero():
    x = [[1, NAN, 3], [0.0, -0.0, -1], [-0.0, -0.0, -1], [0.0, 1, -0.0], [INF, -INF, 0]]
    assert same(row_fold("trowmax", "f32", x), [NAN, 0.0, -0.0, 1, INF])
    assert same(row_fold("trowmin", "f32", x), [NAN, -1, -1, -0.0, -INF])
    columns = np.float32(x).T
    assert same(column_fold("tcolmax", "f32", columns), [NAN, 0.0, -0.0, 1, INF])
    assert same(column_fold("tcolmin", "f32", columns), [NAN, -1, -1, -0.0, -INF])


def test_a_sum_of_negative_zeros_starts_from_zero():
    assert bits(row_fold("trowsum", "f32", [[-0.0, -0.0]])) == [0]
    assert bits(column_fold("tcolsum", "f32", [[-0.0], [-0.0]])) == [0]


def test_only_the_valid_region_of_the_source_counts():
    x = np.ones((8, 16))
    assert row_fold("trowsum", "f32", x, valid=(5, 7)).tolist() == [7.0] * 5
    assert column_fold("tcolsum", "f32", x, valid=(5, 7)).tolist() == [5.0] * 7


@pytest.mark.parametrize(
    "layout", [", blayout=col_major", ", blayout=col_major, slayout=row_major", ""]
)
def test_any_layout_of_the_source(layout: str):
    x = RNG.integers(0, 50, (16, 32))
    assert row_fold("trowsum", "f16", x, layout=layout).tolist() == x.sum(axis=1).tolist()


def test_an_empty_source_changes_nothing():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x16xf32", valid=(8, 0))
    bench.tile("d", "vec, 8x1xf32, blayout=col_major")
    bench.run("pto.trowsum ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)


def test_a_destination_of_another_length_is_refused():
    bench = Bench("a5")
    bench.tile("a", "vec, 8x16xf32", np.ones((8, 16)), valid=(5, 16))
    bench.tile("d", "vec, 8x1xf32, blayout=col_major")
    with pytest.raises(PtoError, match="src has 5 valid rows, dst has 8"):
        bench.run("pto.trowsum ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert untouched(bench["d"], 0, 0)


# ---- where the extreme is


def search(op: str, dtype: str, values: Any, index: str = "i32", valid: Any = None) -> Any:
    """(indices, values) of the form that asks for both."""
    values = np.asarray(values, KINDS[dtype])
    rows, cols = valid or values.shape
    by_row = op.startswith("trow")
    bench = Bench("a5")
    bench.tile("a", f"vec, {values.shape[0]}x{values.shape[1]}x{dtype}", values, valid=valid)
    shape = f"{values.shape[0]}x8" if by_row else f"2x{values.shape[1]}"
    region = (rows, 1) if by_row else (1, cols)
    bench.tile("v", f"vec, {shape}x{dtype}", valid=region)
    bench.tile("d", f"vec, {shape}x{index}", valid=region)
    bench.run(f"pto.{op} ins(%a, %a : {{a}}, {{a}}) outs(%v, %d : {{v}}, {{d}})")
    for name in ("v", "d"):
        assert untouched(bench[name], *region)
    return [bench[n][: region[0], : region[1]].reshape(-1) for n in ("d", "v")]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i16", "ui32", "bf16"])
@pytest.mark.parametrize("op", ["trowargmax", "trowargmin", "tcolargmax", "tcolargmin"])
def test_first_index_of_the_extreme(op: str, dtype: str):
    x = RNG.integers(0, 6, (9, 24))
    lines = x if op.startswith("trow") else x.T
    pick = max if op.endswith("max") else min
    want = [line.index(pick(line)) for line in lines.tolist()]
    found, best = search(op, dtype, x)
    assert found.tolist() == want
    assert best.astype(np.float64).tolist() == [pick(line) for line in lines.tolist()]


def test_index_alone_and_unsigned():
    bench = Bench("a5")
    bench.tile("a", "vec, 2x8xf32", [[3, 9, 9, 1, 0, 0, 0, 0], [0] * 8])
    bench.tile("d", "vec, 2x1xui32, blayout=col_major")
    bench.run("pto.trowargmax ins(%a, %a : {a}, {a}) outs(%d : {d})")
    assert bench["d"][:, 0].tolist() == [1, 0]


def test_nan_is_never_better_but_stays_where_it_is_first():
    x = [[1, NAN, 3, 2], [NAN, 5, 6, 7], [-INF, NAN, -INF, NAN], [2, 1, NAN, NAN]]
    assert search("trowargmax", "f32", x)[0].tolist() == [2, 0, 0, 0]
    assert search("trowargmin", "f32", x)[0].tolist() == [0, 0, 0, 1]
    assert search("tcolargmax", "f32", np.float32(x).T)[0].tolist() == [2, 0, 0, 0]


def test_zeros_of_either_sign_are_equal():
    assert search("trowargmax", "f32", [[-0.0, 0.0]])[0].tolist() == [0]


def test_the_search_stays_in_the_valid_region():
    x = np.zeros((8, 16))
    x[:, 12] = 5
    x[6] = 9
    x[2, 3] = 1
    assert search("trowargmax", "f32", x, valid=(5, 7))[0].tolist() == [0, 0, 3, 0, 0]
    assert search("tcolargmax", "f32", x, valid=(5, 7))[0].tolist() == [0, 0, 0, 2, 0, 0, 0]


# ---- neighbours


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_sums_of_neighbours_fill_half_a_row_and_zeros_the_rest(dtype: str):
    bench = Bench("a5")
    bench.tile("a", f"vec, 4x16x{dtype}", np.tile(np.arange(16), (4, 1)))
    bench.tile("d", f"vec, 4x16x{dtype}", valid=(3, 7))
    bench.run("pto.tpairreducesum ins(%a : {a}) outs(%d : {d})")
    assert bench["d"][:3, :7].tolist() == [[1, 5, 9, 6, 0, 0, 0]] * 3
    assert untouched(bench["d"], 3, 7)
