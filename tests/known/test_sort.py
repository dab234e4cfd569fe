"""Sorting on tiles: block sorts, merges and histograms, against Python's own sorting."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench

NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
}
rng = np.random.default_rng(11)


def packed(records: list[tuple[Any, int]], type: str) -> np.ndarray:
    """Records as a row of elements: value, zeros up to 4 bytes, index."""
    size = np.dtype(NUMPY[type]).itemsize
    raw = b"".join(
        np.asarray(v, NUMPY[type]).tobytes().ljust(4, b"\0") + int(i).to_bytes(4, "little")
        for v, i in records
    )
    return np.frombuffer(raw, NUMPY[type]).reshape(1, len(records) * 8 // size)


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


def block_sorted(values: np.ndarray, indices: np.ndarray) -> list[tuple[Any, int]]:
    """Python's sort is stable, also with reverse."""
    found: list[tuple[Any, int]] = []
    for start in range(0, len(values), 32):
        block = zip(values[start : start + 32], indices[start : start + 32], strict=True)
        found += sorted(block, key=lambda r: float(r[0]), reverse=True)
    return found


# --- tsort32


@pytest.mark.parametrize("type", NUMPY)
@pytest.mark.parametrize(("cols", "valid"), [(64, 64), (128, 96), (64, 45), (32, 13)])
def test_each_block_of_32_is_sorted_with_its_indices(type: str, cols: int, valid: int):
    """Many ties: of equal values the earlier goes first (golden of vbitsort)."""
    bench, rows, width = Bench("cpu"), 3, 8 // np.dtype(NUMPY[type]).itemsize
    values = rng.integers(-9, 9, (rows, cols)).astype(NUMPY[type])
    indices = rng.integers(0, 2**32, (rows, cols)).astype(np.uint32)
    bench.tile("s", f"vec, {rows}x{cols}x{type}, valid={rows}x{valid}", values)
    bench.tile("i", f"vec, {rows}x{cols}xui32, valid={rows}x{valid}", indices)
    bench.tile("t", f"vec, 1x{cols}x{type}")
    bench.tile("d", f"vec, {rows}x{cols * width}x{type}")
    bench.run("pto.tsort32 ins(%s, %i, %t : {s}, {i}, {t}) outs(%d : {d})")
    for row in range(rows):
        wanted = packed(block_sorted(values[row, :valid], indices[row, :valid]), type)
        assert np.array_equal(bits(bench["d"][row, : valid * width]), bits(wanted[0]))
    assert (bits(bench["d"][:, valid * width :]) == 0xA5).all()


def test_one_row_of_indices_serves_all_rows():
    bench = Bench("a5")
    values = rng.permutation(64).reshape(2, 32).astype(np.float32)
    bench.tile("s", "vec, 2x32xf32", values)
    bench.tile("i", "vec, 1x32xui32", np.arange(32)[None, :])
    bench.tile("d", "vec, 2x64xf32")
    bench.run("pto.tsort32 ins(%s, %i : {s}, {i}) outs(%d : {d})")
    found = bench["d"].view(np.uint32)[:, 1::2]
    assert np.array_equal(found, np.argsort(-values, axis=1))


def test_infinities_and_zeros_are_numbers_and_nan_stands_last():
    bench = Bench("a5")
    values = np.array([1, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, -1] * 4, np.float32)
    bench.tile("s", "vec, 1x32xf32", values[None, :])
    bench.tile("i", "vec, 1x32xui32", np.arange(32)[None, :])
    bench.tile("d", "vec, 1x64xf32")
    bench.run("pto.tsort32 ins(%s, %i : {s}, {i}) outs(%d : {d})")
    order = bench["d"][0].view(np.uint32)[1::2]
    places = [
        [n for n in range(32) if n % 8 in kinds] for kinds in ([5], [0], [3, 4], [7], [2], [1, 6])
    ]
    assert order.tolist() == [n for group in places for n in group]


def test_sorting_into_its_own_source_reads_first():
    bench = Bench("a5")
    tile = bench.tile("s", "vec, 1x64xf32, valid=1x32", np.arange(32.0)[None, :])
    bench.tile("i", "vec, 1x32xui32", np.arange(32)[None, :])
    whole = bench.tile("d", "vec, 1x64xf32")
    bench.values["d"] = type(tile)(whole.type, tile.memory, tile.address)
    bench.run("pto.tsort32 ins(%s, %i : {s}, {i}) outs(%d : {d})")
    assert np.array_equal(bench["d"][0, ::2], np.arange(31.0, -1, -1))


@pytest.mark.parametrize(
    ("idx", "valid", "dst", "code"),
    [
        ("2x32xui32", (2, 32), "4x64xf32", "PTO-S058"),
        ("4x32xui32", (4, 16), "4x64xf32", "PTO-S058"),
        ("4x32xui32", (4, 32), "4x56xf32", "PTO-S057"),
    ],
)
def test_sizes_known_only_now_are_checked_before_anything_is_written(
    idx: str, valid: tuple[int, int], dst: str, code: str
):
    bench = Bench("a5")
    bench.tile("s", "vec, 4x32xf32", np.zeros((4, 32)))
    bench.tile("i", f"vec, {idx}, valid=?x?", valid=valid)
    bench.tile("d", f"vec, {dst}")
    with pytest.raises(PtoError) as caught:
        bench.run("pto.tsort32 ins(%s, %i : {s}, {i}) outs(%d : {d})")
    assert caught.value.code == code
    assert (bits(bench["d"]) == 0xA5).all()


# --- tmrgsort


def heads(lists: list[list[tuple[Any, int]]], room: int, stop: bool) -> tuple[list[Any], list[int]]:
    """A merge as the manual tells it: take the largest head, of equals from the first list."""
    taken, found = [0] * 4, []
    while len(found) < room:
        left = [n for n, each in enumerate(lists) if taken[n] < len(each)]
        if not left:
            break
        best = max(left, key=lambda n: (float(lists[n][taken[n]][0]), -n))
        found.append(lists[best][taken[best]])
        taken[best] += 1
        if stop and any(taken[n] == len(each) for n, each in enumerate(lists)):
            break
    return found, taken


def random_list(size: int, type: str, sort: bool = True) -> list[tuple[Any, int]]:
    values = rng.integers(-20, 20, size).astype(NUMPY[type])
    values = np.sort(values)[::-1] if sort else values
    return list(zip(values, rng.integers(0, 2**32, size), strict=True))


@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize(("length", "groups", "rest"), [(64, 1, 0), (64, 3, 128), (128, 2, 0)])
def test_each_four_runs_are_merged(type: str, sort: bool, length: int, groups: int, rest: int):
    bench, run = Bench("a5"), length * np.dtype(NUMPY[type]).itemsize // 8
    runs = [random_list(run, type, sort) for _ in range(4 * groups)]
    merged = [r for g in range(groups) for r in heads(runs[4 * g : 4 * g + 4], 4 * run, False)[0]]
    cols, done = 4 * length * groups + rest, 4 * length * groups
    bench.tile("s", f"vec, 1x{cols}x{type}", packed([r for each in runs for r in each], type))
    bench.tile("d", f"vec, 1x{cols}x{type}")
    bench.scalar("n", "i32", length)
    bench.run("pto.tmrgsort ins(%s, %n : {s}, {n}) outs(%d : {d})")
    assert np.array_equal(bits(bench["d"][:, :done]), bits(packed(merged, type)))
    assert (bits(bench["d"][:, done:]) == 0xA5).all()


@pytest.mark.parametrize("type", ["f32", "f16"])
@pytest.mark.parametrize("sizes", [(32, 64), (64, 32, 96), (32, 64, 32, 128)])
@pytest.mark.parametrize("stop", ["true", "false"])
@pytest.mark.parametrize("room", [1000, 40])
@pytest.mark.parametrize("scratch", [True, False])
def test_lists_are_merged_and_counted(
    type: str, sizes: tuple[int, ...], stop: str, room: int, scratch: bool
):
    bench, width = Bench("a5"), 8 // np.dtype(NUMPY[type]).itemsize
    lists = [random_list(n, type) for n in sizes]
    total = sum(sizes)
    for n, each in enumerate(lists):
        bench.tile(f"s{n}", f"vec, 1x{len(each) * width}x{type}", packed(each, type))
    bench.tile("t", f"vec, 1x{total * width}x{type}")
    room = min(room, total)
    bench.tile("d", f"vec, 1x{total * width}x{type}, valid=1x{room * width}")
    names = ", ".join(f"%s{n}" for n in range(len(sizes)))
    types = ", ".join(f"{{s{n}}}" for n in range(len(sizes)))
    found = bench.run(
        "%c = arith.constant dense<0> : vector<4xi16>\n"
        f"pto.tmrgsort ins({names}{', %t' if scratch else ' no_tmp'} {{exhausted = {stop}}}"
        f" : {types}{', {t}' if scratch else ''})"
        " outs(%d, %c : {d}, vector<4xi16>)",
        results="%c : vector<4xi16>",
    )
    wanted, taken = heads(lists, room, stop == "true")
    done = len(wanted) * width
    assert np.array_equal(bits(bench["d"][:, :done]), bits(packed(wanted, type)))
    assert (bits(bench["d"][:, done:]) == 0xA5).all()
    assert found[0].tolist() == taken


@pytest.mark.parametrize("length", [0, -64, 32, 96])
def test_a_run_length_known_only_now_is_checked(length: int):
    bench = Bench("a5")
    bench.tile("s", "vec, 1x512xf32", np.zeros((1, 512)))
    bench.tile("d", "vec, 1x512xf32")
    bench.scalar("n", "i32", length)
    with pytest.raises(PtoError, match=f"blockLen is {length}") as caught:
        bench.run("pto.tmrgsort ins(%s, %n : {s}, {n}) outs(%d : {d})")
    assert caught.value.code == "PTO-S056"
    assert (bits(bench["d"]) == 0xA5).all()


def test_block_sort_and_merges_sort_a_row():
    """The use they were made for: 32s, then merges of 4, 16, ... blocks."""
    bench, n = Bench("a2a3"), 512
    values = rng.standard_normal(n).astype(np.float32)
    bench.tile("s", f"vec, 1x{n}xf32", values[None, :])
    bench.tile("i", f"vec, 1x{n}xui32", np.arange(n)[None, :])
    bench.tile("a", f"vec, 1x{2 * n}xf32")
    bench.tile("b", f"vec, 1x{2 * n}xf32")
    bench.run(
        "%c64 = arith.constant 64 : i32\n%c256 = arith.constant 256 : i32\n"
        "pto.tsort32 ins(%s, %i : {s}, {i}) outs(%a : {a})\n"
        "pto.tmrgsort ins(%a, %c64 : {a}, i32) outs(%b : {b})\n"
        "pto.tmrgsort ins(%b, %c256 : {b}, i32) outs(%a : {a})"
    )
    assert np.array_equal(bench["a"][0, ::2], np.sort(values)[::-1])
    assert np.array_equal(bench["a"][0].view(np.uint32)[1::2], np.argsort(-values))


# --- thistogram


def counts(values: np.ndarray, byte: int, keep: np.ndarray) -> np.ndarray:
    chosen = values >> (8 * byte) & 0xFF
    return np.array(
        [[((chosen[i] <= b) & keep[i]).sum() for b in range(256)] for i in range(len(values))]
    )


@pytest.mark.parametrize("msb", ["true", "false"])
def test_bytes_of_u16_are_counted_as_a_running_sum(msb: str):
    bench = Bench("a5")
    values = rng.integers(0, 1 << 10, (32, 64)).astype(np.uint16)
    wanted = rng.integers(0, 4, (32, 1)).astype(np.uint8)
    bench.tile("s", "vec, 32x64xui16, valid=32x61", values)
    bench.tile("i", "vec, 32x1xui8, blayout=col_major", wanted)
    bench.tile("d", "vec, 32x264xui32, valid=32x256")
    bench.run(f"pto.thistogram ins(%s, %i : {{s}}, {{i}}) outs(%d : {{d}}) {{isMSB = {msb}}}")
    used = values[:, :61].astype(int)
    keep = np.full(used.shape, True) if msb == "true" else used >> 8 == wanted
    assert np.array_equal(bench["d"][:, :256], counts(used, int(msb == "true"), keep))
    assert (bits(bench["d"][:, 256:]) == 0xA5).all()


@pytest.mark.parametrize("byte", [0, 1, 2, 3])
def test_a_byte_of_u32_is_counted_under_its_prefix(byte: int):
    bench = Bench("a5")
    values = rng.integers(0, 2, (4, 64, 4)) @ np.array([1, 1 << 8, 1 << 16, 1 << 24])
    rows = max(1, 3 - byte)
    wanted = np.array([[1], [0], [1]], np.uint8)[:rows]
    bench.tile("s", "vec, 4x64xui32", values.astype(np.uint32))
    bench.tile("i", f"vec, {rows}x64xui8", np.broadcast_to(wanted, (rows, 64)))
    bench.tile("d", "vec, 4x256xui32")
    bench.run(f"pto.thistogram ins(%s, %i : {{s}}, {{i}}) outs(%d : {{d}}) {{byte = {byte} : i32}}")
    keep = np.full((4, 64), True)
    for above, want in zip((3, 2, 1), (1, 0, 1), strict=True):
        keep &= (above <= byte) | ((values >> (8 * above) & 0xFF) == want)
    assert np.array_equal(bench["d"], counts(values, byte, keep))


def test_the_documented_run_of_a_histogram():
    """By the C++ header: bins 0, 1, 31, 255 are 1 2 32 32 for 32 distinct bytes."""
    bench = Bench("cpu")
    bench.tile("s", "vec, 1x32xui16", (np.arange(32) << 8)[None, :])
    bench.tile("i", "vec, 32x1xui8, valid=1x1, blayout=col_major", np.zeros((1, 1)))
    bench.tile("d", "vec, 1x256xui32")
    bench.run("pto.thistogram ins(%s, %i : {s}, {i}) outs(%d : {d})")
    assert bench["d"][0, [0, 1, 31, 255]].tolist() == [1, 2, 32, 32]


# --- the counts of tmrgsort as a constant


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dense<[128, 64, 0, 0]>", [128, 64, 0, 0]),
        ("dense<-7>", [-7] * 4),
        ("dense<[50000, 40000, 32768, 65535]>", [-15536, -25536, -32768, -1]),
    ],
)
def test_a_vector_constant_is_a_list_of_integers(text: str, wanted: list[int]):
    kind = "vector<4xi16>"
    found = Bench("a5").run(f"%c = arith.constant {text} : {kind}", results=f"%c : {kind}")
    assert found[0].tolist() == wanted


@pytest.mark.parametrize("text", ["dense<[1, 2]>", "dense<1.5>", f"dense<{'9' * 5000}>"])
def test_any_other_vector_constant_is_refused(text: str):
    with pytest.raises(PtoError) as caught:
        Bench("a5").run(f"%c = arith.constant {text} : vector<4xi16>")
    assert caught.value.code == "PTO-T180"
