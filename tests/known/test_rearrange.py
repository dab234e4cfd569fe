"""Padding, reinterpretation, transposition, concatenation, interleaving: by NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.places import TILES, inside, numbered, untouched
from tests.machine import Bench

# ---- padding: pto-isa constants.hpp


@pytest.mark.parametrize(
    ("elem", "pad", "bits"),
    [
        ("f32", "1", 0),
        ("f32", "2", 0x7F800000),
        ("f32", "3", 0xFF800000),
        ("f16", "2", 0x7C00),
        ("bf16", "3", 0xFF80),
        ("i32", "3", 0x80000000),
        ("ui32", "2", 0xFFFFFFFF),
        ("ui32", "3", 0),
        ("i16", "2", 0x7FFF),
        ("ui8", "2", 0xFF),
        ("i8", "3", 0x80),
        ("f32", str(0x1_BF80_0000), 0xBF800000),  # custom: -1.0
    ],
)
@pytest.mark.parametrize("form", ["tfillpad", "tfillpad_inplace", "tfillpad_expand"])
def test_pad_surrounds_the_valid_region_of_src(form: str, elem: str, pad: str, bits: int):
    bench = Bench("a5")
    source = bench.tile("s", f"vec, 16x64x{elem}, valid=9x33")
    rng = np.random.default_rng(1)
    source.items[:] = rng.integers(0, 100, source.items.size)
    data = source.read_valid()
    shape = (20, 96) if form == "tfillpad_expand" else (16, 64)
    tile = bench.tile("d", f"vec, {shape[0]}x{shape[1]}x{elem}, pad={pad}")
    if form == "tfillpad_inplace":
        tile = bench.values["d"] = tile.moved(source.memory, source.address)
    bench.run(f"pto.{form} ins(%s : {{s}}) outs(%d : {{d}})")
    stored = tile.read().view(tile.type.dtype.storage)
    assert np.array_equal(tile.read()[:9, :33].view(stored.dtype), data.view(stored.dtype))
    assert (stored[~inside(shape, 9, 33)] == bits).all()


def test_pad_of_a_mat_tile():
    bench = Bench("a5")
    data = numbered(32, 32, np.float16)
    bench.tile("s", f"mat, 32x32xf16, valid=20x32{TILES['NZ']}, pad=1", data)
    bench.types["d"], bench.values["d"] = bench.types["s"], bench.values["s"]
    bench.run("pto.tfillpad ins(%s : {s}) outs(%d : {d})")
    expected = np.where(inside((32, 32), 20, 32), data, np.float16(0))
    assert np.array_equal(bench["d"], expected)


def test_an_empty_destination_is_left_alone():
    bench = Bench("a5")
    bench.tile("s", "vec, 8x8xf32", numbered(8, 8))
    tile = bench.tile("d", "vec, 8x8xf32, pad=1", valid=(0, 8))
    bench.run("pto.tfillpad ins(%s : {s}) outs(%d : {d})")
    assert untouched(tile).all()


# ---- reinterpretation


@pytest.mark.parametrize(
    ("result", "kind"),
    [("16x8xf32", np.float32), ("8x16xi32", np.int32), ("8x32xbf16", ml_dtypes.bfloat16)],
)
def test_a_reshape_shows_the_same_bytes(result: str, kind: Any):
    bench = Bench("a5")
    source = bench.tile("s", "vec, 8x16xf32", numbered(8, 16))
    type = f"!pto.tile_buf<vec, {result}>"
    (found,) = bench.run(f"%r = pto.treshape %s : {{s}} -> {type}", results=f"%r : {type}")
    rows, cols = (int(n) for n in result.split("x")[:2])
    assert np.array_equal(found.read(), source.read().reshape(-1).view(kind).reshape(rows, cols))
    found.write(np.zeros((rows, cols), found.type.dtype.numpy))
    assert not bench["s"].any()  # shared, not copied


def test_open_extents_of_a_reshape():
    bench = Bench("a5")
    bench.tile("s", "vec, 8x16xf32", numbered(8, 16), valid=(3, 5))
    same, other = (
        "!pto.tile_buf<vec, 8x16xf32, valid=?x?>",
        "!pto.tile_buf<vec, 16x8xf32, valid=?x?>",
    )
    text = "%r = pto.treshape %s : {s} -> "
    (found,) = bench.run(text + same, results=f"%r : {same}")
    assert found.get_valid() == (3, 5)
    (found,) = bench.run(text + other, results=f"%r : {other}")
    assert found.get_valid() == (16, 8)


# ---- transposition and concatenation


@pytest.mark.parametrize("elem", ["f32", "f16", "i8"])
@pytest.mark.parametrize("valid", [(32, 64), (5, 33), (1, 64)])
def test_rows_become_columns(elem: str, valid: tuple[int, int]):
    bench = Bench("a5")
    data = numbered(32, 64) % 100
    bench.tile("s", f"vec, 32x64x{elem}", data, valid=valid)
    scratch = bench.tile("t", f"vec, 32x64x{elem}")
    tile = bench.tile("d", f"vec, 64x32x{elem}")
    bench.run("pto.ttrans ins(%s, %t : {s}, {t}) outs(%d : {d})")
    rows, cols = valid
    assert np.array_equal(tile.read()[:cols, :rows].astype(float), data[:rows, :cols].T)
    assert untouched(tile)[~inside((64, 32), cols, rows)].all()
    assert untouched(scratch).all()


def test_a_tile_transposed_onto_itself():
    bench = Bench("cpu")
    data = numbered(8, 8)
    bench.tile("s", "vec, 8x8xf32", data)
    bench.tile("t", "vec, 8x8xf32")
    bench.run("pto.ttrans ins(%s, %t : {s}, {t}) outs(%s : {s})")
    assert np.array_equal(bench["s"], data.T)


def test_a_destination_too_small_for_the_transpose_is_refused():
    bench = Bench("a5")
    bench.tile("s", "vec, 16x16xf32, valid=?x?", valid=(16, 9))
    bench.tile("t", "vec, 16x16xf32")
    tile = bench.tile("d", "vec, 8x16xf32")
    with pytest.raises(PtoError):
        bench.run("pto.ttrans ins(%s, %t : {s}, {t}) outs(%d : {d})")
    assert untouched(tile).all()


def test_rows_side_by_side():
    bench = Bench("a5")
    a, b = numbered(8, 16), -numbered(8, 24)
    bench.tile("a", "vec, 8x16xf32", a, valid=(6, 11))
    bench.tile("b", "vec, 8x24xf32", b, valid=(6, 20))
    tile = bench.tile("d", "vec, 8x40xf32", valid=(6, 31))
    bench.run("pto.tconcat ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert np.array_equal(tile.read_valid(), np.hstack([a[:6, :11], b[:6, :20]]))
    assert untouched(tile)[~inside((8, 40), 6, 31)].all()


@pytest.mark.parametrize(("rows", "code"), [((6, 5, 6), "PTO-S041"), ((6, 6, 6), "PTO-S060")])
def test_tiles_that_cannot_stand_side_by_side(rows: tuple[int, int, int], code: str):
    bench = Bench("a5")
    cols = (11, 24)
    bench.tile("a", "vec, 8x16xf32, valid=?x?", valid=(rows[0], cols[0]))
    bench.tile("b", "vec, 8x24xf32, valid=?x?", valid=(rows[1], cols[1]))
    tile = bench.tile("d", "vec, 8x32xf32, valid=?x?", valid=(rows[2], 32))
    with pytest.raises(PtoError) as error:
        bench.run("pto.tconcat ins(%a, %b : {a}, {b}) outs(%d : {d})")
    assert error.value.diagnostics[0].code == code
    assert untouched(tile).all()


def concat_counted(counts: list[tuple[int, int]], elem: str = "i32") -> tuple[Bench, Any]:
    bench = Bench("a5")
    size = {"i32": 4, "ui16": 2, "i8": 1}[elem]
    rows = len(counts)
    bench.tile("a", "vec, 4x16xf32", numbered(4, 16), valid=(rows, 16))
    bench.tile("b", "vec, 4x16xf32", -numbered(4, 16), valid=(rows, 16))
    wide = 32 // size
    for name, column in (("i", 0), ("j", 1)):
        values = np.zeros((rows, wide))
        values[:, 0] = [pair[column] * size for pair in counts]
        bench.tile(name, f"vec, 4x{wide}x{elem}", values, valid=(rows, 1))
    tile = bench.tile("d", "vec, 4x24xf32", valid=(rows, 24))
    bench.tile("n", f"vec, 4x{wide}x{elem}", valid=(rows, 1))
    return bench, tile


COUNTED = "pto.tconcatidx ins(%a, %b, %i, %j : {a}, {b}, {i}, {j}) outs(%d, %n : {d}, {n})"


@pytest.mark.parametrize("elem", ["i32", "ui16", "i8"])
def test_each_row_takes_as_many_columns_as_its_indices_say(elem: str):
    counts = [(3, 2), (0, 4), (16, 8)]
    bench, tile = concat_counted(counts, elem)
    bench.run(COUNTED)
    a, b = numbered(4, 16), -numbered(4, 16)
    for row, (n0, n1) in enumerate(counts):
        assert np.array_equal(tile.read()[row, : n0 + n1], [*a[row, :n0], *b[row, :n1]])
        assert untouched(tile)[row, n0 + n1 :].all()
    size = {"i32": 4, "ui16": 2, "i8": 1}[elem]
    assert bench["n"][:3, 0].tolist() == [size * (n0 + n1) for n0, n1 in counts]
    assert untouched(bench.values["n"])[:, 1:].all()


@pytest.mark.parametrize("counts", [[(17, 0)], [(0, 17)], [(16, 9)], [(-1, 2)]])
def test_counts_beyond_a_row_are_refused(counts: list[tuple[int, int]]):
    bench, tile = concat_counted(counts)
    with pytest.raises(PtoError) as error:
        bench.run(COUNTED)
    assert error.value.diagnostics[0].code == "PTO-S066"
    assert untouched(tile).all()


# ---- interleaving


def four(bench: Bench, valid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    a, b = numbered(4, 16), -numbered(4, 16) - 1
    bench.tile("a", "vec, 4x16xf32", a, valid=valid)
    bench.tile("b", "vec, 4x16xf32", b, valid=valid)
    for name in ("c", "d"):
        bench.tile(name, "vec, 4x16xf32", valid=valid)
    rows, cols = valid
    return a[:rows, :cols], b[:rows, :cols]


@pytest.mark.parametrize("valid", [(4, 16), (3, 6)])
def test_two_streams_become_one(valid: tuple[int, int]):
    bench = Bench("a5")
    a, b = four(bench, valid)
    bench.run("pto.tinterleave ins(%a, %b : {a}, {b}) outs(%c, %d : {c}, {d})")
    rows, cols = valid
    stream = np.empty((rows, 2 * cols), np.float32)
    stream[:, 0::2], stream[:, 1::2] = a, b
    assert np.array_equal(bench["c"][:rows, :cols], stream[:, :cols])
    assert np.array_equal(bench["d"][:rows, :cols], stream[:, cols:])
    assert untouched(bench.values["d"])[~inside((4, 16), rows, cols)].all()


@pytest.mark.parametrize("valid", [(4, 16), (3, 6)])
def test_one_stream_becomes_two(valid: tuple[int, int]):
    bench = Bench("a5")
    a, b = four(bench, valid)
    bench.run("pto.tdeinterleave ins(%a, %b : {a}, {b}) outs(%c, %d : {c}, {d})")
    rows, cols = valid
    stream = np.hstack([a, b])
    assert np.array_equal(bench["c"][:rows, :cols], stream[:, 0::2])
    assert np.array_equal(bench["d"][:rows, :cols], stream[:, 1::2])
    assert untouched(bench.values["c"])[~inside((4, 16), rows, cols)].all()


def test_one_source_splits_into_halves():
    bench = Bench("a5")
    data = numbered(4, 16)
    bench.tile("a", "vec, 4x16xf32", data)
    for name in ("c", "d"):
        bench.tile(name, "vec, 4x8xf32")
    bench.run("pto.tdeinterleave ins(%a : {a}) outs(%c, %d : {c}, {d})")
    assert np.array_equal(bench["c"], data[:, 0::2])
    assert np.array_equal(bench["d"], data[:, 1::2])


def test_interleaving_undoes_deinterleaving_in_place():
    bench = Bench("a5")
    a, b = four(bench, (4, 16))
    bench.run(
        "pto.tinterleave ins(%a, %b : {a}, {b}) outs(%a, %b : {a}, {b})\n"
        "pto.tdeinterleave ins(%a, %b : {a}, {b}) outs(%a, %b : {a}, {b})"
    )
    assert np.array_equal(bench["a"], a) and np.array_equal(bench["b"], b)


def test_regions_that_differ_are_refused():
    bench = Bench("a5")
    four(bench, (4, 16))
    bench.values["b"].set_valid(4, 8)
    with pytest.raises(PtoError) as error:
        bench.run("pto.tinterleave ins(%a, %b : {a}, {b}) outs(%c, %d : {c}, {d})")
    assert error.value.diagnostics[0].code == "PTO-S021"
    assert untouched(bench.values["c"]).all()
