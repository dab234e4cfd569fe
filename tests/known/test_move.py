"""TMOV between buffers, layouts and agents."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.tile import Tile
from pto.run.machine.core import Core
from tests.known.places import TILES, inside, numbered, untouched, word
from tests.machine import Bench

MOVE = "pto.tmov ins(%s : {s}) outs(%d : {d})"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("mat ND", "left NZ"),
        ("mat NZ", "left ZZ"),
        ("mat NZ", "left NZ"),
        ("mat ZN", "right ZN"),
        ("mat NZ", "right ZN"),
        ("vec ND", "vec ND"),
        ("vec ND", "vec NZ"),
        ("vec NZ", "vec ND"),
        ("vec NZ", "vec DN"),
        ("vec ND", "vec ZN"),
        ("vec ND", "mat NZ"),
    ],
)
@pytest.mark.parametrize("valid", [(32, 32), (7, 19)])
def test_elements_keep_their_place_whatever_the_layouts(
    source: str, target: str, valid: tuple[int, int]
):
    bench = Bench("a5")
    data = numbered(32, 32, np.float16)
    a, b = source.split(), target.split()
    bench.tile("s", f"{a[0]}, 32x32xf16{TILES[a[1]]}", data, valid=valid)
    tile = bench.tile("d", f"{b[0]}, 32x32xf16{TILES[b[1]]}", valid=valid)
    bench.run(MOVE)
    rows, cols = valid
    assert np.array_equal(tile.read_valid(), data[:rows, :cols])
    assert untouched(tile)[~inside((32, 32), rows, cols)].all()


def test_nz_to_zz_by_hand():
    """Four boxes of 16 x 16: the one on the right above moves from third to second place."""
    bench = Bench("a2a3")
    data = numbered(32, 32, np.float16)
    bench.tile("s", f"mat, 32x32xf16{TILES['NZ']}", data)
    tile = bench.tile("d", f"left, 32x32xf16{TILES['ZZ']}")
    bench.run(MOVE)
    stored = tile.items.view(np.float16).reshape(2, 2, 16, 16)
    assert np.array_equal(stored[0, 1], data[:16, 16:])
    assert np.array_equal(stored[1, 0], data[16:, :16])


def test_what_is_valid_in_both_moves():
    bench = Bench("a5")
    data = numbered(8, 16)
    bench.tile("s", "vec, 8x16xf32", data, valid=(5, 16))
    tile = bench.tile("d", "vec, 16x16xf32", valid=(16, 7))
    bench.run(MOVE)
    assert np.array_equal(tile.read()[:5, :7], data[:5, :7])
    assert untouched(tile)[~inside((16, 16), 5, 7)].all()


def test_a_row_plus_one_tile_keeps_its_columns_of_boxes_apart():
    bench = Bench("a5")
    data = numbered(16, 32, np.float16)
    bench.tile("s", "vec, 16x32xf16", data)
    tile = bench.tile("d", f"vec, 17x32xf16, valid=16x32{TILES['NZ']}, compact=2")
    bench.run(MOVE)
    stored = tile.items.view(np.float16)
    # a column of boxes is 17 rows of 16 elements, the last row unused
    assert np.array_equal(stored[: 16 * 16].reshape(16, 16), data[:, :16])
    assert np.array_equal(stored[17 * 16 : 33 * 16].reshape(16, 16), data[:, 16:])


@pytest.mark.parametrize(
    ("elem", "kind"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32)]
)
def test_the_bias_table_holds_f32(elem: str, kind: Any):
    bench = Bench("a5")
    data = (numbered(1, 16, np.float32) / 3).astype(kind)
    bench.tile("s", f"mat, 1x16x{elem}", data)
    bench.tile("d", "bias, 1x16xf32")
    bench.run(MOVE)
    assert np.array_equal(bench["d"], data.astype(np.float32))


def test_words_reach_the_scaling_table():
    bench = Bench("a5")
    data = numbered(1, 16, np.uint64) << np.uint64(40)
    bench.tile("s", "mat, 1x16xui64", data)
    bench.tile("d", "scaling, 1x16xui64")
    bench.run(MOVE)
    assert np.array_equal(bench["d"], data)


def test_scales_reach_their_buffer():
    bench = Bench("a5")
    data = numbered(16, 2, np.uint8)
    bench.tile("s", "mat, 16x2xui8, slayout=row_major, fractal=32", data)
    bench.tile("d", "scale_left, 16x2xui8, slayout=row_major, fractal=32")
    bench.run(MOVE)
    assert np.array_equal(bench["d"], data)


# ---- out of the accumulator


def acc(bench: Bench, data: np.ndarray, src: str = "f32") -> None:
    rows, cols = data.shape
    bench.tile("s", f"acc, {rows}x{cols}x{src}{TILES['ACC']}", data)


def test_the_accumulator_narrows_into_l1():
    bench = Bench("a2a3")
    data = numbered(16, 32) + 2**-12
    acc(bench, data)
    bench.tile("d", f"mat, 16x32xf16{TILES['NZ']}")
    bench.run(MOVE)
    assert np.array_equal(bench["d"], data.astype(np.float16))


def test_an_accumulator_that_keeps_its_type_is_still_clipped_and_scaled():
    for text, expected in (
        (" {reluPreMode = #pto<relu_pre_mode normal_relu>}", [0, 3]),
        ("", [-4, 3]),
    ):
        bench = Bench("a5")
        acc(bench, np.array([[-4.0, 3.0] + [0.0] * 14] * 16, np.float32))
        bench.tile("d", f"mat, 16x16xf32{TILES['NZ']}")
        bench.run(MOVE + text)
        assert bench["d"][5, :2].tolist() == expected
    bench.scalar("q", "i64", word(0.5))
    bench.run("pto.tmov ins(%s : {s}, %q : i64) outs(%d : {d})")
    assert bench["d"][5, :2].tolist() == [-2, 1.5]


def test_a_scalar_scale_and_relu():
    bench = Bench("a5")
    acc(bench, np.array([[-4.0, 3.0, 500.0] + [1.0] * 13] * 16, np.float32))
    bench.tile("d", "vec, 16x32xi8, valid=16x16")
    bench.scalar("q", "i64", word(0.5, signed=True))
    bench.run(
        "pto.tmov ins(%s : {s}, %q : i64) outs(%d : {d})"
        " {reluPreMode = #pto<relu_pre_mode normal_relu>}"
    )
    assert bench["d"][0, :4].tolist() == [0, 2, 127, 0]


@pytest.mark.parametrize("form", ["tmov.fp", "tmov"])
def test_a_scale_a_column(form: str):
    bench = Bench("a5")
    acc(bench, np.full((16, 16), 8, np.int32), "i32")
    bench.tile("f", "scaling, 1x16xui64", np.array([[word(j, signed=True) for j in range(16)]]))
    bench.tile("d", f"mat, 16x32xi8, valid=16x16{TILES['NZ']}")
    ins = "%s, %f : {s}, {f}" if form == "tmov.fp" else "%s : {s}, %f : {f}"
    bench.run(f"pto.{form} ins({ins}) outs(%d : {{d}})")
    assert bench["d"][3, :16].tolist() == [min(127, 8 * j) for j in range(16)]


def test_i32_becomes_i16_by_a_shift():
    bench = Bench("a2a3")
    acc(bench, np.array([[256, -257, 2**30, -(2**30)] + [0] * 12] * 16, np.int32), "i32")
    bench.tile("d", f"mat, 16x16xi16{TILES['NZ']}")
    bench.scalar("q", "i64", word(0.0, shift=4))
    bench.run("pto.tmov ins(%s : {s}, %q : i64) outs(%d : {d})")
    assert bench["d"][0, :4].tolist() == [16, -17, 32767, -32768]


def test_there_is_no_scale_to_i16_from_f32():
    bench = Bench("cpu")
    acc(bench, numbered(16, 16))
    bench.tile("d", f"mat, 16x16xi16{TILES['NZ']}")
    bench.scalar("q", "i64", word(1.0))
    with pytest.raises(PtoError) as error:
        bench.run("pto.tmov ins(%s : {s}, %q : i64) outs(%d : {d})")
    assert error.value.diagnostics[0].code == "PTO-T173"


# ---- whose buffer


def with_vectors(data: np.ndarray) -> tuple[Bench, list[Core]]:
    """A cube and two vector sub-blocks whose buffers hold the filler."""
    bench = Bench("a5", "cube")
    vectors = [Core(bench.core.cluster, bench.core.profile, "vector", n, 2) for n in (0, 1)]
    for each in vectors:
        each.memory(Space.UB).data[:] = 0xA5
    acc(bench, data)
    return bench, vectors


def seen(core: Core, tile: Tile) -> Tile:
    return tile.moved(core.memory(Space.UB), tile.address)


@pytest.mark.parametrize(
    ("mode", "chosen"), [("", 0), ("single_mode_vec0", 0), ("single_mode_vec1", 1)]
)
def test_one_vector_sub_block_gets_the_tile(mode: str, chosen: int):
    data = numbered(16, 32)
    bench, vectors = with_vectors(data)
    tile = bench.tile("d", "vec, 16x32xf32")
    attrs = f" {{accToVecMode = #pto.acc_to_vec_mode<{mode}>}}" if mode else ""
    bench.run(MOVE + attrs)
    assert np.array_equal(seen(vectors[chosen], tile).read(), data)
    assert untouched(seen(vectors[1 - chosen], tile)).all()


@pytest.mark.parametrize("axis", ["m", "n"])
def test_each_sub_block_gets_one_half(axis: str):
    data = numbered(16, 64)
    bench, vectors = with_vectors(data)
    tile = bench.tile("d", "vec, 16x64xf32")
    bench.run(MOVE + f" {{accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_{axis}>}}")
    halves = np.split(data, 2, axis=0 if axis == "m" else 1)
    for core, half in zip(vectors, halves, strict=True):
        found = seen(core, tile)
        rows, cols = half.shape
        assert np.array_equal(found.read()[:rows, :cols], half)
        assert untouched(found)[~inside((16, 64), rows, cols)].all()


@pytest.mark.parametrize(("axis", "shape"), [("m", "8x64"), ("n", "16x32")])
def test_a_sub_block_has_a_tile_of_half_the_size(axis: str, shape: str):
    """The header takes the size of a split from src (a5/TMov.hpp, TMOV_IMPL)."""
    data = numbered(16, 64)
    bench, vectors = with_vectors(data)
    tile = bench.tile("d", f"vec, {shape}xf32")
    bench.run(MOVE + f" {{accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_{axis}>}}")
    for core, half in zip(vectors, np.split(data, 2, axis=0 if axis == "m" else 1), strict=True):
        assert np.array_equal(seen(core, tile).read(), half)


@pytest.mark.parametrize(("axis", "valid"), [("m", (27, 20)), ("n", (27, 40))])
def test_boxes_split_as_wholes(axis: str, valid: tuple[int, int]):
    """a5/TMov.hpp, TMovCcToUb: all rows of src, columns to the end of a box; odd numbers split."""
    data = numbered(32, 64)
    bench, vectors = with_vectors(data)
    bench.values["s"].set_valid(*valid)
    shape = "16x32" if axis == "m" else "32x32"
    tile = bench.tile("d", f"vec, {shape}xf32, blayout=col_major, slayout=row_major")
    bench.run(MOVE + f" {{accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_{axis}>}}")
    moved = data[:, :32] if axis == "m" else data
    for core, half in zip(vectors, np.split(moved, 2, axis=0 if axis == "m" else 1), strict=True):
        assert np.array_equal(seen(core, tile).read(), half)


def test_an_odd_number_does_not_split():
    bench, vectors = with_vectors(numbered(16, 32))
    bench.values["s"].set_valid(15, 32)
    tile = bench.tile("d", "vec, 16x32xf32", valid=(15, 32))
    with pytest.raises(PtoError) as error:
        bench.run(MOVE + " {accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_m>}")
    assert error.value.diagnostics[0].code == "PTO-V171"
    assert untouched(seen(vectors[0], tile)).all()


def test_a_vector_sub_block_writes_to_the_l1_of_its_cube():
    bench = Bench("a5", "vector")
    cube = Core(bench.core.cluster, bench.core.profile, "cube", 0, 1)
    data = numbered(16, 16, np.float16)
    bench.tile("s", "vec, 16x16xf16", data)
    tile = bench.tile("d", f"mat, 16x16xf16{TILES['NZ']}")
    bench.run(MOVE)
    assert np.array_equal(tile.moved(cube.memory(Space.L1), tile.address).read(), data)
    assert untouched(tile).all()
