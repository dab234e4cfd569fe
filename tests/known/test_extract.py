"""TEXTRACT and TINSERT: windows by NumPy slices, packed orders by sorting."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.known.places import TILES, inside, numbered, untouched, word
from tests.machine import Bench

EXTRACT = "pto.textract ins(%s, %r, %c : {s}, index, index) outs(%d : {d})"
INSERT = "pto.tinsert ins(%s, %r, %c : {s}, index, index) outs(%d : {d})"


def bench_at(row: int, col: int, profile: str = "a5") -> Bench:
    bench = Bench(profile)
    bench.scalar("r", "index", row)
    bench.scalar("c", "index", col)
    return bench


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("mat NZ", "left NZ"),
        ("mat NZ", "left ZZ"),
        ("mat ZN", "right ZN"),
        ("mat NZ", "right ZN"),
        ("vec ND", "vec ND"),
        ("vec NZ", "vec NZ"),
        ("vec ND", "mat NZ"),
    ],
)
@pytest.mark.parametrize("valid", [(16, 32), (9, 17)])
def test_a_window_is_cut_out(source: str, target: str, valid: tuple[int, int]):
    bench = bench_at(16, 32)
    data = numbered(64, 64, np.float16)
    a, b = source.split(), target.split()
    bench.tile("s", f"{a[0]}, 64x64xf16{TILES[a[1]]}", data)
    tile = bench.tile("d", f"{b[0]}, 16x32xf16{TILES[b[1]]}", valid=valid)
    bench.run(EXTRACT)
    rows, cols = valid
    assert np.array_equal(tile.read_valid(), data[16 : 16 + rows, 32 : 32 + cols])
    assert untouched(tile)[~inside((16, 32), rows, cols)].all()


@pytest.mark.parametrize(
    ("source", "target"), [("vec ND", "vec ND"), ("vec NZ", "vec NZ"), ("vec ND", "mat NZ")]
)
@pytest.mark.parametrize(("profile", "valid"), [("a5", (16, 16)), ("a5", (3, 16)), ("cpu", (3, 5))])
def test_a_window_is_pasted_in(source: str, target: str, profile: str, valid: tuple[int, int]):
    bench = bench_at(32, 16, profile)
    data, whole = numbered(16, 16, np.float16), -numbered(64, 48, np.float16)
    a, b = source.split(), target.split()
    bench.tile("s", f"{a[0]}, 16x16xf16{TILES[a[1]]}", data, valid=valid)
    bench.tile("d", f"{b[0]}, 64x48xf16{TILES[b[1]]}", whole)
    bench.run(INSERT)
    rows, cols = valid
    whole[32 : 32 + rows, 16 : 16 + cols] = data[:rows, :cols]
    assert np.array_equal(bench["d"], whole)


@pytest.mark.parametrize("at", [(50, 0), (0, 33), (-1, 0)])
def test_a_window_outside_is_refused(at: tuple[int, int]):
    for text in (EXTRACT, INSERT):
        bench = bench_at(*at)
        shapes = ("64x64", "16x32") if text is EXTRACT else ("16x32", "64x64")
        bench.tile("s", f"vec, {shapes[0]}xf16")
        tile = bench.tile("d", f"vec, {shapes[1]}xf16")
        with pytest.raises(PtoError) as error:
            bench.run(text)
        assert error.value.diagnostics[0].code == "PTO-S060"
        assert untouched(tile).all()


# pto-isa TExtract.hpp, TInsert.hpp: tiles, start, the index or extent that is named, profiles
INSIDE_A_BOX = [
    ("mat 128x128xf16 NZ", "left 32x32xf16 NZ", (8, 0), "indexRow is 8, not a multiple of 16"),
    ("mat 128x128xf16 NZ", "left 32x32xf16 NZ", (0, 8), "indexCol is 8, not a multiple of 16"),
    ("mat 128x128xi8 ZN", "left 32x32xi8 NZ", (16, 0), "indexRow is 16, not a multiple of 32"),
    ("acc 32x64xf32 ACC", "mat 32x32xf16 NZ", (0, 8), "indexCol is 8, not a multiple of 16"),
    ("vec 32x64xf16 NZ", "vec 16x32xf16 NZ", (0, 8), "indexCol is 8, not a multiple of 16"),
]


@pytest.mark.parametrize(("source", "target", "at", "message"), INSIDE_A_BOX)
def test_a_window_inside_a_box_is_refused(source, target, at, message):
    """The start is known in the run alone: Bench passes it as an argument."""
    bench = bench_at(*at)
    for name, tile in (("s", source), ("d", target)):
        role, shape, layout = tile.split()
        bench.tile(name, f"{role}, {shape}{TILES[layout]}")
    with pytest.raises(PtoError, match=message) as error:
        bench.run(EXTRACT)
    assert error.value.diagnostics[0].code == "PTO-S061"


ROWS_OF_ACC = "rows 16 to 31 of dst, since 32 are written at a time"
BESIDE = [  # source, its valid region, target, start, mode, message ("" is legal)
    ("acc 32x32xf32 ACC", (16, 32), "mat 64x64xf16 NZ", (0, 0), "", ROWS_OF_ACC),
    ("acc 32x32xf32 ACC", (32, 8), "mat 64x64xf16 NZ", (0, 0), "", "columns 8 to 15 of dst"),
    ("acc 32x32xf32 ACC", (32, 16), "mat 64x64xf16 NZ", (0, 0), "", ""),
    ("acc 32x32xf32 ACC", (32, 8), "mat 64x64xf32 NZ", (0, 0), "", ""),
    ("vec 16x16xf16 NZ", (3, 5), "mat 64x48xf16 NZ", (32, 16), "", "columns 21 to 31 of dst"),
    ("vec 16x16xf16 NZ", (3, 5), "vec 64x48xf16 NZ", (32, 16), "", "columns 21 to 31 of dst"),
    ("vec 16x16xf16 NZ", (3, 16), "mat 64x48xf16 NZ", (32, 16), "", ""),
    ("vec 16x16xf16 NZ", (3, 16), "mat 64x48xf16 NZ", (32, 16), "SPLIT2", "rows 35 to 47 of dst"),
    ("vec 16x16xf16 ZN", (5, 16), "mat 64x48xf16 ZN", (16, 0), "", "rows 21 to 31 of dst"),
]


@pytest.mark.parametrize(("source", "valid", "target", "at", "mode", "message"), BESIDE)
def test_a_window_that_overwrites_what_is_beside_it_is_refused(
    source, valid, target, at, mode, message
):
    bench = bench_at(*at)
    role, shape, layout = source.split()
    bench.tile("s", f"{role}, {shape}{TILES[layout]}", valid=valid)
    role, shape, layout = target.split()
    bench.tile("d", f"{role}, {shape}{TILES[layout]}")
    text = INSERT + (f' {{mode = "{mode}"}}' if mode else "")
    if not message:
        bench.run(text)
        return
    with pytest.raises(PtoError, match=message) as error:
        bench.run(text)
    assert error.value.diagnostics[0].code == "PTO-S085"


def test_a_partial_window_at_the_end_of_the_valid_region_is_legal():
    """What the units write beside it is not valid in dst."""
    bench = bench_at(32, 16)
    bench.tile("s", f"acc, 32x32xf32{TILES['ACC']}", numbered(32, 32), valid=(9, 24))
    bench.tile("d", f"mat, 64x64xf16{TILES['NZ']}", np.zeros((64, 64)), valid=(41, 40))
    bench.run(INSERT)
    assert np.array_equal(bench["d"][32:41, 16:40], numbered(32, 32)[:9, :24].astype(np.float16))


def test_two_windows_at_once():
    bench = bench_at(0, 0)
    data = numbered(32, 32, np.float16)
    bench.tile("s", "vec, 32x32xf16", data)
    bench.tile("d", f"vec, 16x16xf16{TILES['NZ']}")
    bench.tile("e", f"vec, 16x16xf16{TILES['NZ']}")
    bench.scalar("r1", "index", 16)
    bench.scalar("c1", "index", 8)
    bench.run(
        "pto.textract ins(%s, %r, %c, %r1, %c1 : {s}, index, index, index, index)"
        " outs(%d, %e : {d}, {e})"
    )
    assert np.array_equal(bench["d"], data[:16, :16])
    assert np.array_equal(bench["e"], data[16:, 8:24])


def test_overlapping_windows_of_one_tile():
    """The source is read before the destination, which shares its bytes, is written."""
    bench = bench_at(1, 0)
    data = numbered(9, 16)
    tile = bench.tile("s", "vec, 9x16xf32", data)
    bench.tile("d", "vec, 8x16xf32")
    bench.values["d"] = bench.values["d"].moved(tile.memory, tile.address)
    bench.run(EXTRACT)
    assert np.array_equal(bench["d"], data[1:])


# ---- the compact modes of the Layout Reference


def packed(data: np.ndarray, width: int, band: int | None = None) -> np.ndarray:
    """Valid elements in fractal order: bands of rows, columns of boxes, rows, elements."""
    order = sorted(
        ((r, c) for r in range(data.shape[0]) for c in range(data.shape[1])),
        key=lambda at: (at[0] // band if band else 0, at[1] // width, at[0], at[1]),
    )
    return np.array([data[at] for at in order], data.dtype)


@pytest.mark.parametrize(("mode", "band"), [("ND2NZ", None), ("ND2NZ2", 2)])
@pytest.mark.parametrize("valid", [(16, 16), (5, 9), (7, 40)])
def test_valid_data_is_packed_in_fractal_order(mode: str, band: int | None, valid: tuple[int, int]):
    bench = bench_at(1, 32)
    data = numbered(32, 96, np.int8)
    rows, cols = valid
    bench.tile("s", "vec, 32x96xi8", data)
    tile = bench.tile("d", f"left, 16x64xi8{TILES['NZ']}", valid=valid)
    bench.run(EXTRACT + f' {{mode = "{mode}"}}')
    expected = packed(data[1 : 1 + rows, 32 : 32 + cols], 32, band)
    stored = tile.items.view(np.int8)
    assert np.array_equal(stored[: rows * cols], expected)
    assert (stored[rows * cols :].view(np.uint8) == 0xA5).all()


@pytest.mark.parametrize("layout", ["NZ", "ZZ"])
@pytest.mark.parametrize("valid", [(32, 64), (5, 9), (19, 33)])
def test_packed_data_comes_back(layout: str, valid: tuple[int, int]):
    bench = bench_at(0, 0)
    data = numbered(32, 64, np.int8)
    rows, cols = valid
    bench.tile("s", "vec, 32x64xi8", data)
    bench.tile("m", f"left, 32x64xi8{TILES[layout]}", valid=valid)
    bench.tile("d", "vec, 32x64xi8", valid=valid)
    bench.run(
        EXTRACT.replace("%d : {d}", "%m : {m}")
        + ' {mode = "ND2NZ"}\n'
        + INSERT.replace("%s", "%m").replace("{s}", "{m}")
        + ' {mode = "NZ2ND"}'
    )
    assert np.array_equal(bench["d"][:rows, :cols], data[:rows, :cols])
    assert untouched(bench.values["d"])[~inside((32, 64), rows, cols)].all()


def test_a_full_left_tile_is_the_same_with_and_without_a_mode():
    """The example of the Layout Reference: 16 x 16 of i8 from a vec tile into a left tile."""
    data = numbered(16, 32, np.int8)
    found = []
    for mode in (' {mode = "ND2NZ"}', ""):
        bench = bench_at(0, 0, "cpu")
        bench.tile("s", "vec, 16x32xi8", data)
        bench.tile("d", f"left, 16x32xi8{TILES['ZZ']}")
        bench.run(EXTRACT + mode)
        found.append(bench["d"])
    assert np.array_equal(found[0], data) and np.array_equal(found[1], data)


def test_mode_nd_is_a_straight_copy():
    bench = bench_at(2, 0)
    data = numbered(16, 32, np.int8)
    bench.tile("s", "vec, 16x32xi8", data)
    tile = bench.tile("d", "vec, 8x32xi8", valid=(3, 30))
    bench.run(EXTRACT + ' {mode = "ND"}')
    assert np.array_equal(tile.read_valid(), data[2:5, :30])


@pytest.mark.parametrize("mode", ["SPLIT2", "SPLIT4"])
def test_bursts_do_not_change_what_is_inserted(mode: str):
    bench = bench_at(0, 16)
    data = numbered(16, 16, np.float16)
    bench.tile("s", f"vec, 16x16xf16{TILES['NZ']}", data)
    bench.tile("d", f"mat, 32x32xf16{TILES['NZ']}", np.zeros((32, 32)))
    bench.run(INSERT + f' {{mode = "{mode}"}}')
    assert np.array_equal(bench["d"][:16, 16:], data)


# ---- out of the accumulator


def test_a_window_of_the_accumulator_is_narrowed():
    bench = bench_at(16, 16)
    data = numbered(32, 32) + 2**-12
    bench.tile("s", f"acc, 32x32xf32{TILES['ACC']}", data)
    bench.tile("d", f"mat, 16x16xf16{TILES['NZ']}")
    bench.run(EXTRACT)
    assert np.array_equal(bench["d"], data[16:, 16:].astype(np.float16))


def test_the_scale_goes_with_the_column_of_the_source():
    bench = bench_at(0, 16)
    bench.tile("s", f"acc, 16x32xf32{TILES['ACC']}", np.ones((16, 32)))
    bench.tile("f", "scaling, 1x32xui64", np.array([[word(j, signed=True) for j in range(32)]]))
    bench.tile("d", f"mat, 16x32xi8, valid=16x16{TILES['NZ']}")
    bench.run("pto.textract_fp ins(%s, %f, %r, %c : {s}, {f}, index, index) outs(%d : {d})")
    assert bench["d"][5, :16].tolist() == list(range(16, 32))


def test_an_inserted_column_takes_the_scale_of_its_own_number():
    bench = bench_at(16, 32)
    bench.tile("s", f"acc, 16x16xi32{TILES['ACC']}", np.full((16, 16), 2))
    bench.tile("f", "scaling, 1x16xui64", np.array([[word(j, signed=True) for j in range(16)]]))
    bench.tile("d", f"mat, 32x64xi8{TILES['NZ']}", np.zeros((32, 64)), valid=(32, 48))
    bench.run("pto.tinsert_fp ins(%s, %f, %r, %c : {s}, {f}, index, index) outs(%d : {d})")
    expected = np.zeros((32, 48), np.int8)
    expected[16:, 32:] = 2 * np.arange(16)
    assert np.array_equal(bench["d"][:, :48], expected)


def test_a_scalar_scale_into_a_window():
    bench = bench_at(0, 0)
    bench.tile("s", f"acc, 16x16xf32{TILES['ACC']}", np.full((16, 16), 3.0))
    bench.scalar("q", "i64", word(2.0, signed=True))
    bench.tile("d", f"mat, 16x32xi8{TILES['NZ']}", np.zeros((16, 32)), valid=(16, 16))
    bench.run("pto.tinsert ins(%s, %r, %c, %q : {s}, index, index, i64) outs(%d : {d})")
    assert (bench["d"][:, :16] == 6).all()


@pytest.mark.parametrize("rows_first", [True, False])
@pytest.mark.parametrize("at", [(0, 0), (32, 32)])
def test_pairs_of_a_row_become_pairs_of_a_column(at: tuple[int, int], rows_first: bool):
    """Codes of four bits in L1 share a byte with their neighbour in the row, in L0B in the column;
    or the other way round. By NumPy on the single codes."""
    codes = np.random.default_rng(3).integers(0, 16, (128, 128), np.uint8)
    by_row = codes[:, 0::2] | codes[:, 1::2] << 4
    by_column = codes[0::2] | codes[1::2] << 4
    source, target = (by_row, by_column) if rows_first else (by_column, by_row)
    layouts = ("NZ", "ZN") if rows_first else ("ZN", "NZ")
    row, col = at if rows_first else at[::-1]
    bench = bench_at(row, col)
    kind = "!pto.f4E2M1x2"
    high, wide = (32, 64) if rows_first else (64, 32)
    bench.tile("s", "mat, {}x{}x{}{}".format(*source.shape, kind, TILES[layouts[0]]), source)
    place = "right" if rows_first else "left"
    bench.tile("d", f"{place}, {high}x{wide}x{kind}{TILES[layouts[1]]}")
    bench.run(EXTRACT + " {turnPairs = true}")
    first = (row // 2, 2 * col) if rows_first else (2 * row, col // 2)
    part = target[first[0] : first[0] + high, first[1] : first[1] + wide]
    assert np.array_equal(bench["d"].view(np.uint8), part)
