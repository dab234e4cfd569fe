"""TLOAD: by NumPy slices and reshapes of the memory it reads."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.pointer import Pointer
from tests.known.places import TILES, inside, numbered, untouched, view
from tests.machine import Bench

LOAD = "pto.tload ins(%v : {v}) outs(%t : {t})"
JOINED = [  # Data Movement, TLOAD; the view has one matrix, so its strides are its layout
    *(("vec", name) for name in ("ND", "DN", "NZ")),
    *(("mat", name) for name in ("ND", "DN", "NZ", "ZN")),
]


@pytest.mark.parametrize(("role", "layout"), JOINED)
@pytest.mark.parametrize("valid", [(32, 32), (17, 5), (1, 32), (32, 1)])
def test_exactly_the_valid_region_arrives(role: str, layout: str, valid: tuple[int, int]):
    bench = Bench("a5")
    data = numbered(32, 32, np.float16)
    tile = bench.tile("t", f"{role}, 32x32xf16{TILES[layout]}", valid=valid)
    view(bench, "v", data, "f16")
    bench.run(LOAD)
    rows, cols = valid
    assert np.array_equal(tile.read_valid(), data[:rows, :cols])
    zeros = {("mat", "NZ"): (rows, -(-cols // 16) * 16), ("mat", "ZN"): (-(-rows // 16) * 16, cols)}
    reached = zeros.get((role, layout), valid)
    assert untouched(tile)[~inside((32, 32), *reached)].all()
    beside = inside((32, 32), *reached) & ~inside((32, 32), *valid)
    assert not tile.read()[beside].any()


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize(("kind", "block"), [("f32", 8), ("f16", 16), ("i8", 32)])
def test_what_makes_boxes_of_rows_fills_the_last_block_with_zeros(
    profile: str, kind: str, block: int
):
    """copy_gm_to_cbuf_multi_nd2nz (CCE intrinsics): zeros up to 32 bytes, in the rows it moves."""
    bench = Bench(profile)
    data = numbered(32, 64, {"f32": np.float32, "f16": np.float16, "i8": np.int8}[kind])
    tile = bench.tile("t", f"mat, 32x64x{kind}{TILES['NZ']}", valid=(20, 37))
    view(bench, "v", data, kind)
    bench.run(LOAD)
    end = -(-37 // block) * block
    assert np.array_equal(tile.read()[:20, :37], data[:20, :37])
    assert not tile.read()[:20, 37:end].any()
    assert untouched(tile)[~inside((32, 64), 20, end)].all()


def test_a_column_major_view_is_read_by_its_strides():
    bench = Bench("a5")
    stored = numbered(8, 16)  # 16 rows, 8 columns, columns contiguous
    tile = bench.tile("t", f"vec, 16x8xf32{TILES['DN']}")
    view(bench, "v", stored, "f32", (16, 8), (1, 16), "DN")
    bench.run(LOAD)
    assert np.array_equal(tile.read(), stored.T)


def test_rows_run_over_the_four_outer_dimensions_of_an_nd_view():
    bench = Bench("a5")
    data = np.arange(2 * 3 * 2 * 4 * 8, dtype=np.float32).reshape(2, 3, 2, 4, 8)
    tile = bench.tile("t", "vec, 48x8xf32")
    view(bench, "v", data, "f32")
    bench.run(LOAD)
    assert np.array_equal(tile.read(), data.reshape(48, 8))


def test_columns_run_over_the_outer_dimensions_of_a_dn_view():
    bench = Bench("a5")
    data = np.arange(2 * 3 * 8 * 4, dtype=np.float32).reshape(2, 3, 8, 4)  # .. columns, rows
    tile = bench.tile("t", f"vec, 8x24xf32{TILES['DN']}")
    view(bench, "v", data, "f32", (2, 3, 1, 8, 4), (96, 32, 32, 1, 8), "DN")
    bench.run(LOAD)
    # column c is (i0, i1, i4); element i3 of it lies i3 from its start
    assert np.array_equal(tile.read(), data.reshape(2, 3, 4, 8).reshape(24, 8).T)


@pytest.mark.parametrize(("role", "written"), [("vec", "ND"), ("vec", "NZ"), ("mat", "ND")])
def test_a_fractal_view_is_read_box_by_box(role: str, written: str):
    """Unwritten (ND), the five dimensions of a fractal view still tell it."""
    bench = Bench("a5")
    matrix = numbered(32, 24)
    boxes = matrix.reshape(2, 16, 3, 8).transpose(2, 0, 1, 3)  # columns of boxes, boxes, 16, C0
    tile = bench.tile("t", f"{role}, 32x24xf32{TILES['NZ']}")
    view(bench, "v", np.ascontiguousarray(boxes), "f32", (1, 3, 2, 16, 8), None, written)
    bench.run(LOAD)
    assert np.array_equal(tile.read(), matrix)


def test_part_of_a_fractal_view():
    bench = Bench("a5")
    matrix = numbered(32, 24)
    boxes = np.ascontiguousarray(matrix.reshape(2, 16, 3, 8).transpose(2, 0, 1, 3))
    tile = bench.tile("t", f"vec, 32x24xf32{TILES['NZ']}", valid=(19, 11))
    view(bench, "v", boxes, "f32", (1, 3, 2, 16, 8), None, "NZ")
    bench.run(LOAD)
    assert np.array_equal(tile.read_valid(), matrix[:19, :11])
    assert untouched(tile)[~inside((32, 24), 19, 11)].all()


def test_scales_in_boxes_of_sixteen_by_two():
    bench = Bench("a5")
    matrix = numbered(32, 4, np.uint8)
    boxes = matrix.reshape(2, 16, 2, 2).transpose(0, 2, 1, 3)
    tile = bench.tile("t", "mat, 32x4xui8, slayout=row_major, fractal=32")
    view(bench, "v", np.ascontiguousarray(boxes), "ui8", (1, 2, 2, 16, 2), None, "MX_A_ZZ")
    bench.run(LOAD)
    assert np.array_equal(tile.read(), matrix)


def test_the_attribute_of_the_load_names_the_layout_where_the_view_does_not():
    bench = Bench("a5")
    matrix = numbered(16, 8)
    tile = bench.tile("t", f"mat, 16x8xf32{TILES['ND']}")
    view(bench, "v", matrix, "f32", (1, 1, 1, 16, 8))
    bench.run(LOAD + " {layout = #pto.layout<nz>}")
    assert np.array_equal(tile.read(), matrix)


def test_gaps_in_memory_are_stepped_over():
    bench = Bench("a5")
    data = numbered(16, 100)
    tile = bench.tile("t", "vec, 16x16xf32")
    view(bench, "v", data, "f32", (16, 16), (100, 2))
    bench.run(LOAD)
    assert np.array_equal(tile.read(), data[:, :32:2])


def test_bits_move_whatever_the_types_call_them():
    bench = Bench("a5")
    data = np.array([[1.0, -0.0, np.nan, np.inf] * 4], np.float32)
    tile = bench.tile("t", "vec, 1x16xi32")
    view(bench, "v", data, "f32")
    bench.run(LOAD)
    assert np.array_equal(tile.read(), data.view(np.int32))


@pytest.mark.parametrize("valid", [(0, 16), (16, 0)])
def test_an_empty_region_moves_nothing(valid: tuple[int, int]):
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 16x16xf32", valid=valid)
    view(bench, "v", numbered(1, 1), "f32")
    bench.run(LOAD)
    assert untouched(tile).all()


@pytest.mark.parametrize("shape", [(15, 16), (16, 15), (1, 256), (4, 2, 16)])
def test_a_view_smaller_than_the_region_is_refused(shape: tuple[int, ...]):
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 16x16xf32")
    view(bench, "v", np.zeros(shape, np.float32), "f32")
    with pytest.raises(PtoError, match="valid region is 16x16") as error:
        bench.run(LOAD)
    assert error.value.diagnostics[0].code == "PTO-S170"
    assert untouched(tile).all()


# ---- padding


@pytest.mark.parametrize(
    ("pad", "bits"),
    [("1", 0), ("2", 0x7F800000), ("3", 0xFF800000), (str(0x1_BF80_0000), 0xBF800000)],
)
def test_hardware_pads_each_row_to_the_next_block(pad: str, bits: int):
    bench = Bench("a5")
    data = numbered(4, 29)
    tile = bench.tile("t", f"vec, 8x40xf32, valid=4x29, pad={pad}")
    view(bench, "v", data, "f32")
    bench.run(LOAD)
    items = tile.read().view(np.uint32)
    assert np.array_equal(tile.read_valid(), data)
    assert (items[:4, 29:32] == bits).all()  # 29 elements of 4 bytes end 12 bytes before a block
    assert untouched(tile)[:, 32:].all() and untouched(tile)[4:].all()


def test_hardware_pads_columns_of_a_column_major_tile():
    bench = Bench("a2a3")
    tile = bench.tile("t", "vec, 24x4xf32, valid=13x3, blayout=col_major, pad=2")
    view(bench, "v", numbered(13, 3), "f32")
    bench.run(LOAD)
    found = tile.read()
    assert np.isposinf(found[13:16, :3]).all()
    assert untouched(tile)[16:].all() and untouched(tile)[:, 3].all()


@pytest.mark.parametrize(("pad", "value"), [("0", 0.0), ("1", 0.0), ("3", -np.inf)])
@pytest.mark.parametrize("layout", ["ND", "DN", "NZ"])
def test_the_simulator_pads_the_whole_tile(pad: str, value: float, layout: str):
    bench = Bench("cpu")
    data = numbered(5, 9)
    tile = bench.tile("t", f"vec, 16x16xf32, valid=5x9{TILES[layout]}, pad={pad}")
    view(bench, "v", data, "f32")
    bench.run(LOAD)
    expected = np.full((16, 16), value, np.float32)
    expected[:5, :9] = data
    assert np.array_equal(tile.read(), expected)


def test_padding_operands_place_the_data_between_margins():
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 4x16xf32, valid=4x12")
    view(bench, "v", numbered(4, 7), "f32")
    bench.scalar("p", "f32", -1.0)
    bench.scalar("l", "index", 2)
    bench.scalar("r", "i32", 3)
    bench.run(
        LOAD + " pad_mode = #pto.padmode<PadValue> pad_value = %p : f32"
        " left_padding_num = %l : index right_padding_num = %r : i32"
    )
    expected = np.full((4, 12), -1.0, np.float32)
    expected[:, 2:9] = numbered(4, 7)
    assert np.array_equal(tile.read_valid(), expected)
    assert untouched(tile)[:, 12:].all()


def test_padding_with_the_first_element():
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 2x8xf32")
    view(bench, "v", numbered(2, 6) + 5, "f32")
    bench.scalar("l", "index", 2)
    bench.run(LOAD + " pad_mode = #pto.padmode<PadFirstElem> left_padding_num = %l : index")
    assert tile.read().tolist() == [[5, 5, 5, 6, 7, 8, 9, 10], [5, 5, 11, 12, 13, 14, 15, 16]]


def test_the_buffer_can_be_filled_first():
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 4x8xf32, valid=2x3")
    view(bench, "v", numbered(2, 3), "f32")
    bench.scalar("p", "f32", 9.0)
    bench.run(LOAD + " pad_value = %p : f32 init_out_buffer = true")
    expected = np.full((4, 8), 9.0, np.float32)
    expected[:2, :3] = numbered(2, 3)
    assert np.array_equal(tile.read(), expected)


def test_more_padding_than_columns_is_refused():
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 2x8xf32")
    view(bench, "v", numbered(2, 8), "f32")
    bench.scalar("l", "index", 9)
    with pytest.raises(PtoError, match="9 padding columns"):
        bench.run(LOAD + " left_padding_num = %l : index")
    assert untouched(tile).all()


# ---- memrefs, prefetch


def test_memrefs_are_views_and_tiles():
    bench = Bench("a5")
    data = bench.array("p", "memref<8x16xf32, #pto.address_space<gm>>", numbered(8, 16))
    tile = bench.tile("t", "vec, 8x16xf32")
    bench.types["t"] = "memref<8x16xf32, #pto.address_space<vec>>"
    bench.run("pto.tload ins(%p : {p}) outs(%t : {t})")
    assert np.array_equal(tile.read(), data)


def test_a_strided_memref_argument():
    bench = Bench("a5")
    strided = "memref<8x16xf32, strided<[32, 1]>, #pto.address_space<gm>>"
    data = bench.array("p", strided, numbered(8, 32))
    bench.tile("t", "vec, 8x16xf32")
    bench.run("pto.tload ins(%p : {p}) outs(%t : {t})")
    assert np.array_equal(bench["t"], data[:, :16])


def test_a_memref_argument_of_unknown_size_is_refused():
    bench = Bench("a5")
    bench.pointer("p", "f32", numbered(8, 16))
    bench.types["p"] = "memref<?x16xf32, #pto.address_space<gm>>"
    bench.tile("t", "vec, 8x16xf32")
    with pytest.raises(PtoError) as error:
        bench.run("pto.tload ins(%p : {p}) outs(%t : {t})")
    assert error.value.diagnostics[0].code == "PTO-S171"


def test_a_prefetch_changes_no_value():
    bench = Bench("a5")
    tile = bench.tile("t", "vec, 8x16xf32")
    view(bench, "v", numbered(8, 16), "f32")
    bench.run("pto.tprefetch ins(%v : {v}) outs(%t : {t})")
    assert untouched(tile).all()


def test_an_asynchronous_prefetch_is_over_at_once():
    bench = Bench("a5")
    data = view(bench, "v", numbered(1, 64), "f32")
    bench.values["s"], bench.types["s"] = object(), "!pto.async_session"
    before = data.copy()
    bench.run("%e = pto.tprefetch_async(%v, %s : {v}, {s}) -> !pto.async_event")
    assert np.array_equal(data, before)


def test_pointers_that_are_no_memrefs_are_no_views():
    bench = Bench("a5")
    bench.tile("t", "vec, 8x16xf32")
    view(bench, "v", numbered(8, 16), "f32")
    memory = bench.values["v"].memory
    bench.values["v"] = Pointer(memory, 0, None)
    with pytest.raises(PtoError) as error:
        bench.run(LOAD)
    assert error.value.diagnostics[0].code == "PTO-T171"
