"""Gathers and scatters in tiles and in global memory, against plain indexing and loops."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench

rng = np.random.default_rng(5)
FILL = 0xA5


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


def code_of(bench: Bench, body: str) -> str:
    with pytest.raises(PtoError) as caught:
        bench.run(body)
    return caught.value.code


# --- tgather by index

BY_INDEX = "pto.tgather ins(%s, %i, %t : {s}, {i}, {t}) outs(%d : {d})"


def index_bench(profile: str, type: str, index: str, values: Any, indices: Any) -> Bench:
    bench = Bench(profile)
    bench.tile("s", f"vec, 8x32x{type}", values)
    bench.tile("i", f"vec, 4x16x{index}", indices)
    bench.tile("t", f"vec, 4x16x{index}")
    return bench


@pytest.mark.parametrize("type", ["i8", "ui16", "f16", "bf16", "f32", "i64"])
@pytest.mark.parametrize("index", ["i16", "ui32", "i32"])
def test_elements_are_picked_by_their_number_in_the_tile(type: str, index: str):
    values = rng.integers(0, 100, (8, 32))
    indices = rng.integers(0, 256, (4, 16))
    bench = index_bench("a5", type, index, values, indices)
    bench.tile("d", f"vec, 4x16x{type}, valid=3x11")
    bench.run(BY_INDEX)
    wanted = values.reshape(-1)[indices]
    assert np.array_equal(bench["d"][:3, :11].astype(int), wanted[:3, :11])
    assert (bits(bench["d"][3:]) == FILL).all() and (bits(bench["d"][:, 11:]) == FILL).all()


def test_an_index_counts_physical_columns_also_outside_the_valid_region():
    bench = index_bench("a5", "f32", "i32", np.arange(256).reshape(8, 32), np.full((4, 16), 70))
    bench.values["s"].set_valid(1, 1)
    bench.tile("d", "vec, 4x16xf32")
    bench.run(BY_INDEX)
    assert (bench["d"] == 70).all()


@pytest.mark.parametrize("index", [256, -1])
def test_a_stray_index_reads_zero_on_cpu_and_is_an_error_on_npus(index: int):
    indices = np.arange(64).reshape(4, 16)
    indices[2, 3] = index
    values = np.arange(1, 257).reshape(8, 32)
    for profile in ("cpu", "a2a3", "a5"):
        bench = index_bench(profile, "f32", "i32", values, indices)
        bench.tile("d", "vec, 4x16xf32")
        if profile == "cpu":
            bench.run(BY_INDEX)
            wanted = np.arange(1, 65).reshape(4, 16)
            wanted[2, 3] = 0
            assert np.array_equal(bench["d"], wanted)
        else:
            assert code_of(bench, BY_INDEX) == "PTO-M180"
            assert (bits(bench["d"]) == FILL).all()


def test_picking_from_a_column_major_tile_counts_rows_all_the_same():
    bench = Bench("cpu")
    bench.tile("s", "vec, 8x32xf32, blayout=col_major", np.arange(256).reshape(8, 32))
    bench.tile("i", "vec, 1x16xi32", np.arange(16)[None, :] * 5)
    bench.tile("t", "vec, 1x16xi32")
    bench.tile("d", "vec, 1x16xf32")
    bench.run(BY_INDEX)
    assert np.array_equal(bench["d"][0], np.arange(16) * 5)


# --- tgather by comparison

BY_COMPARISON = (
    "pto.tgather ins(%s, %k, %t : {s}, {k}, {t}) outs(%d, %c : {d}, {c})"
    " {cmpMode = #pto.cmp<MODE>, offset = 7 : i32}"
)


@pytest.mark.parametrize("type", ["f32", "f16", "i16", "i32"])
@pytest.mark.parametrize("mode", ["eq", "gt"])
def test_matches_are_listed_by_row_and_counted(type: str, mode: str):
    values = rng.integers(0, 5, (4, 64))
    bench = Bench("a5")
    bench.tile("s", f"vec, 4x64x{type}, valid=3x50", values)
    bench.tile("t", "vec, 4x64xui8")
    bench.tile("d", "vec, 4x64xi32")
    bench.tile("c", "vec, 1x32xi32")
    bench.scalar("k", type, 3)
    bench.run(BY_COMPARISON.replace("MODE", mode))
    for i in range(3):
        row = values[i, :50]
        wanted = [
            7 + 64 * i + j for j in range(50) if (row[j] == 3 if mode == "eq" else row[j] > 3)
        ]
        assert bench["d"][i, : len(wanted)].tolist() == wanted
        assert (bits(bench["d"][i, len(wanted) :]) == FILL).all()
        assert bench["c"][0, i] == len(wanted)
    assert (bits(bench["d"][3]) == FILL).all() and (bits(bench["c"][0, 3:]) == FILL).all()


def test_nan_matches_nothing():
    bench = Bench("a5")
    bench.tile("s", "vec, 1x32xf32", np.full((1, 32), np.nan))
    bench.tile("t", "vec, 1x32xui8")
    bench.tile("d", "vec, 1x32xi32")
    bench.tile("c", "vec, 1x32xi32")
    bench.scalar("k", "f32", np.nan)
    bench.run(BY_COMPARISON.replace("MODE", "eq"))
    assert bench["c"][0, 0] == 0


def test_more_matches_than_a_row_of_dst_holds_are_an_error():
    bench = Bench("a5")
    bench.tile("s", "vec, 2x64xf32", np.zeros((2, 64)))
    bench.tile("t", "vec, 2x64xui8")
    bench.tile("d", "vec, 2x32xi32")
    bench.tile("c", "vec, 1x32xi32")
    bench.scalar("k", "f32", 0)
    assert code_of(bench, BY_COMPARISON.replace("MODE", "eq")) == "PTO-V180"
    assert (bits(bench["d"]) == FILL).all() and (bits(bench["c"]) == FILL).all()


# --- tgather by pattern

PATTERNS = {
    "P0101": slice(0, None, 2),
    "P1010": slice(1, None, 2),
    "P0001": slice(0, None, 4),
    "P0010": slice(1, None, 4),
    "P0100": slice(2, None, 4),
    "P1000": slice(3, None, 4),
    "P1111": slice(None),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("src", "dst"), [("f32", "i32"), ("i16", "f16"), ("i8", "i8")])
def test_a_pattern_picks_columns(pattern: str, src: str, dst: str):
    bench = Bench("a5")
    values = bench.tile("s", f"vec, 4x128x{src}", rng.integers(0, 100, (4, 128))).read()
    wanted = values[:, PATTERNS[pattern]]
    bench.tile("d", f"vec, 4x{wanted.shape[1]}x{dst}")
    attr = f"{{maskPattern = #pto.mask_pattern<{pattern}>}}"
    bench.run(f"pto.tgather ins(%s, {attr} : {{s}}) outs(%d : {{d}})")
    assert np.array_equal(bits(bench["d"]), bits(wanted))


def test_rows_of_another_width_are_packed_one_after_the_other():
    bench = Bench("cpu")
    bench.tile("s", "vec, 4x32xf32, valid=3x14", np.arange(128).reshape(4, 32))
    bench.tile("d", "vec, 4x8xf32")
    bench.run("pto.tgather ins(%s, {maskPattern = #pto.mask_pattern<P0101>} : {s}) outs(%d : {d})")
    wanted = np.arange(128).reshape(4, 32)[:3, :14:2].reshape(-1)  # 3 rows of 7
    assert np.array_equal(bench["d"].reshape(-1)[:21], wanted)
    assert (bits(bench["d"].reshape(-1)[21:]) == FILL).all()
    bench.values["d"].set_valid(2, 8)
    body = "pto.tgather ins(%s, {maskPattern = #pto.mask_pattern<P1111>} : {s}) outs(%d : {d})"
    assert code_of(bench, body) == "PTO-V180"


# --- tgatherb

BLOCKS = "pto.tgatherb ins(%s, %o : {s}, {o}) outs(%d : {d})"


@pytest.mark.parametrize(("type", "per"), [("f32", 8), ("f16", 16), ("i8", 32)])
def test_blocks_of_32_bytes_are_picked_by_byte(type: str, per: int):
    bench = Bench("a5")
    raw = rng.integers(0, 256, 2048, dtype=np.uint8)
    source = bench.tile("s", f"vec, 8x{8 * per}x{type}")
    source.items[...] = raw.view(source.items.dtype)
    offsets = rng.integers(0, 2048 - 31, (4, 8))
    bench.tile("o", "vec, 4x8xui32", offsets)
    bench.tile("d", f"vec, 4x{4 * per}x{type}, valid=3x{3 * per}")
    bench.run(BLOCKS)
    wanted = np.array([[raw[o : o + 32] for o in row[:3]] for row in offsets[:3]]).reshape(3, -1)
    assert np.array_equal(bits(bench["d"][:3, : 3 * per]), wanted)
    assert (bits(bench["d"][3:]) == FILL).all() and (bits(bench["d"][:, 3 * per :]) == FILL).all()


def test_a_stray_block_stays_on_cpu_and_is_an_error_on_npus():
    for profile in ("cpu", "a5"):
        bench = Bench(profile)
        bench.tile("s", "vec, 1x32xi32", np.arange(32)[None, :])
        bench.tile("o", "vec, 1x8xui32", np.array([[96, 97]]))
        bench.tile("d", "vec, 1x16xi32")
        if profile == "a5":
            assert code_of(bench, BLOCKS) == "PTO-M180"
        else:
            bench.run(BLOCKS)
            assert bench["d"][0, :8].tolist() == list(range(24, 32))
        assert (bits(bench["d"][:, 8:]) == FILL).all()


# --- tscatter

SCATTER = "pto.tscatter ins(%s, %i : {s}, {i}) outs(%d : {d})"


@pytest.mark.parametrize("profile", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize(("type", "index"), [("f32", "i32"), ("f16", "ui16"), ("i8", "i16")])
def test_the_last_writer_of_a_place_wins(profile: str, type: str, index: str):
    bench = Bench(profile)
    values = bench.tile("s", f"vec, 8x32x{type}", rng.integers(0, 100, (8, 32))).read()
    indices = rng.integers(0, 128, (8, 32))  # each about twice
    bench.tile("i", f"vec, 8x32x{index}, valid=7x30", indices)
    before = bench.tile("d", f"vec, 8x32x{type}").read()
    bench.run(SCATTER)
    # the CPU simulator keeps dst, the NPUs write zeros first
    wanted = (before if profile == "cpu" else np.zeros_like(before)).reshape(-1)
    for r in range(7):
        for c in range(30):
            wanted[indices[r, c]] = values[r, c]
    assert np.array_equal(bits(bench["d"]), bits(wanted.reshape(8, 32)))


def test_a_place_outside_dst_changes_nothing():
    bench = Bench("a5")
    bench.tile("s", "vec, 1x8xf32", np.zeros((1, 8)))
    bench.tile("i", "vec, 1x8xi32", np.array([[1, 2, 8, 3, 4, 5, 6, 7]]))
    bench.tile("d", "vec, 1x8xf32")
    with pytest.raises(PtoError, match=r"index 8 at \(0, 2\) is outside vec 1x8xf32") as caught:
        bench.run(SCATTER)
    assert caught.value.code == "PTO-M180"
    assert (bits(bench["d"]) == FILL).all()


# --- mgather and mscatter


class Table(Bench):
    """A bench with %m, a view of a table in global memory whose rows are `pitch` elements apart."""

    def __init__(self, table: np.ndarray, type: str, pitch: int = 0) -> None:
        super().__init__("a5")
        rows, cols = table.shape
        pitch = pitch or cols
        memory = np.zeros((rows, pitch), table.dtype)
        memory[:, :cols] = table
        self.memory = self.pointer("p", f"{type}, gm", memory).reshape(rows, pitch)
        self.view = f"!pto.tensor_view<{rows}x{cols}x{type}>"
        for name, value in (("rows", rows), ("cols", cols), ("pitch", pitch), ("one", 1)):
            self.scalar(name, "index", value)

    def run(self, body: str, *, results: str = "") -> list[Any]:
        make = "%m = pto.make_tensor_view %p, shape = [%rows, %cols], strides = [%pitch, %one] : "
        return super().run(
            make + self.view + "\n" + body.replace("{m}", self.view), results=results
        )


GATHER = "pto.mgather ins(%m, %i : {m}, {i}) outs(%d : {d})"
STORE = "pto.mscatter ins(%s, %i : {s}, {i}) outs(%m : {m})"


@pytest.mark.parametrize("pitch", [0, 40])
@pytest.mark.parametrize("index", ["1x16xi32", "16x1xi32, blayout=col_major"])
def test_rows_of_a_table(pitch: int, index: str):
    table = rng.integers(0, 1000, (50, 32)).astype(np.float32)
    bench = Table(table, "f32", pitch=pitch)
    wanted = rng.integers(0, 50, 16)
    bench.tile(
        "i", f"vec, {index}", wanted.reshape([int(n) for n in index.split("xi32")[0].split("x")])
    )
    bench.tile("d", "vec, 16x32xf32, valid=16x20")
    bench.run(GATHER)
    assert np.array_equal(bench["d"][:, :20], table[wanted][:, :20])
    assert (bits(bench["d"][:, 20:]) == FILL).all()


@pytest.mark.parametrize("pitch", [0, 40])
def test_elements_of_a_table_are_counted_row_by_row(pitch: int):
    table = rng.integers(0, 1000, (50, 32)).astype(np.int32)
    bench = Table(table, "i32", pitch=pitch)
    wanted = rng.integers(0, 1600, (4, 8))
    bench.tile("i", "vec, 4x8xi32", wanted)
    bench.tile("d", "vec, 4x8xi32")
    bench.run(GATHER)
    assert np.array_equal(bench["d"], table.reshape(-1)[wanted])


@pytest.mark.parametrize(
    ("policy", "found"),
    [("clamp", [3, 99, 99, 99]), ("wrap", [3, 0, 50, 95]), ("zero", [3, 0, 0, 0])],
)
def test_indices_beyond_a_table_do_what_the_program_asks(policy: str, found: list[int]):
    """-1 is 4294967295, which is 95 modulo 100. Element 0 of the table is 0."""
    bench = Table(np.arange(100, dtype=np.float32).reshape(10, 10), "f32")
    bench.tile("i", "vec, 1x8xi32, valid=1x4", np.array([[3, 100, 250, -1]]))
    bench.tile("d", "vec, 1x8xf32, valid=1x4")
    bench.run(GATHER + f" {{gatherOob = #pto<gather_oob {policy}>}}")
    assert bench["d"][0, :4].tolist() == found


def test_an_index_beyond_a_table_is_an_error_where_nothing_is_said():
    bench = Table(np.zeros((10, 8), np.float32), "f32")
    bench.tile("i", "vec, 1x8xi32", np.array([[0, 1, 2, 10, 4, 5, 6, 7]]))
    bench.tile("d", "vec, 8x8xf32")
    with pytest.raises(PtoError, match="index 10 at") as caught:
        bench.run(GATHER)
    assert caught.value.code == "PTO-M180"
    assert (bits(bench["d"]) == FILL).all()


def test_an_index_tile_of_another_shape_is_refused():
    bench = Table(np.zeros((10, 8), np.float32), "f32")
    bench.tile("i", "vec, 4x8xi32, valid=?x?", np.zeros((4, 8)), valid=(2, 3))
    bench.tile("d", "vec, 8x8xf32")
    with pytest.raises(PtoError) as caught:
        bench.run(GATHER)
    assert caught.value.code == "PTO-S058"


ATOMIC = {"none": None, "add": np.add, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("op", ATOMIC)
@pytest.mark.parametrize(("type", "numpy"), [("f32", np.float32), ("i32", np.int32)])
@pytest.mark.parametrize("by_row", [True, False])
def test_writes_to_a_table_happen_one_after_the_other(op: str, type: str, numpy: Any, by_row: bool):
    table = rng.integers(-50, 50, (12, 16)).astype(numpy)
    bench = Table(table, type, pitch=20)
    values = (rng.integers(-100, 100, (8, 16)) * 1.7).astype(numpy)
    indices = rng.integers(0, 4, (1, 8)) if by_row else rng.integers(0, 40, (8, 16))
    bench.tile("s", f"vec, 8x16x{type}", values)
    bench.tile("i", f"vec, {indices.shape[0]}x{indices.shape[1]}xi32", indices)
    bench.run(STORE + f" {{scatterAtomicOp = #pto<scatter_atomic_op {op}>}}")
    flat = table.reshape(-1).copy()
    for r in range(8):
        for c in range(16):
            at = indices[0, r] * 16 + c if by_row else indices[r, c]
            fn = ATOMIC[op]
            flat[at] = values[r, c] if fn is None else fn(flat[at], values[r, c])
    assert np.array_equal(bench.memory[:, :16], flat.reshape(12, 16))
    assert (bench.memory[:, 16:] == 0).all()


def test_a_sum_in_memory_rounds_each_time():
    """256 + 1 in bf16 is 256 (ties to even), however often."""
    bench = Table(np.array([[256, 0]], ml_dtypes.bfloat16), "bf16")
    bench.tile("s", "vec, 1x16xbf16", np.ones((1, 16)))
    bench.tile("i", "vec, 1x16xi32", np.zeros((1, 16)))
    bench.run(STORE + " {scatterAtomicOp = #pto<scatter_atomic_op add>}")
    assert bench.memory[0].astype(float).tolist() == [256, 0]


@pytest.mark.parametrize(
    ("policy", "found"),
    [("skip", [1, 0, 0, 0]), ("clamp", [1, 0, 0, 3]), ("wrap", [3, 0, 2, 0])],
)
def test_writes_beyond_a_table_do_what_the_program_asks(policy: str, found: list[int]):
    bench = Table(np.zeros((1, 4), np.float32), "f32")
    bench.tile("s", "vec, 1x8xf32, valid=1x3", np.array([[1, 2, 3]]))
    bench.tile("i", "vec, 1x8xi32, valid=1x3", np.array([[0, 6, 8]]))
    bench.run(STORE + f" {{scatterOob = #pto<scatter_oob {policy}>}}")
    assert bench.memory[0].tolist() == found


def test_a_write_beyond_a_table_changes_nothing_where_nothing_is_said():
    bench = Table(np.zeros((1, 4), np.float32), "f32")
    bench.tile("s", "vec, 1x8xf32, valid=1x2", np.ones((1, 2)))
    bench.tile("i", "vec, 1x8xi32, valid=1x2", np.array([[0, 4]]))
    with pytest.raises(PtoError) as caught:
        bench.run(STORE)
    assert caught.value.code == "PTO-M180"
    assert (bench.memory == 0).all()


@pytest.mark.parametrize("beyond", ["undefined", "clamp", "wrap", "zero"])
@pytest.mark.parametrize(("by", "shape"), [("row", (1, 16)), ("elem", (16, 16))])
@pytest.mark.parametrize("lowered", [False, True])
def test_a_gather_into_l1_takes_its_indices_from_global_memory(
    by: str, shape: tuple[int, int], beyond: str, lowered: bool
):
    table = rng.integers(0, 100, (64, 16)).astype(np.float16)
    most = 64 if by == "row" else 1024
    indices = rng.integers(0, most * (1 if beyond == "undefined" else 2), shape).astype(np.int32)
    bench = Table(table, "f16")
    bench.pointer("q", "i32, gm", indices)
    bench.scalar("high", "index", shape[0])
    bench.scalar("wide", "index", shape[1])
    bench.tile("d", "mat, 16x16xf16, blayout=col_major, slayout=row_major")
    listed = f"!pto.tensor_view<{shape[0]}x{shape[1]}xi32>"
    made = (
        f"%i = pto.make_tensor_view %q, shape = [%high, %wide], strides = [%wide, %one] : {listed}"
    )
    if lowered:
        listed = f"memref<{shape[0]}x{shape[1]}xi32, #pto.address_space<gm>>"
        made = f"%i = builtin.unrealized_conversion_cast %q : {{q}} to {listed}"
    bench.run(
        f"{made}\npto.mgather ins(%m, %i : {{m}}, {listed}) outs(%d : {{d}})"
        f" {{coalesce = #pto<coalesce {by}>, gatherOob = #pto<gather_oob {beyond}>}}"
    )
    inside = indices % most if beyond == "wrap" else np.minimum(indices, most - 1)
    wanted = table[inside[0]] if by == "row" else table.reshape(-1)[inside]
    if beyond == "zero":
        wanted = wanted * (indices < most).reshape(-1, 1 if by == "row" else 16)
    assert np.array_equal(bench["d"], wanted)
