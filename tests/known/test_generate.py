"""Ramps, triangles, random numbers, and looking at tiles: published vectors, NumPy, C's printf."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench

FILL = 0xA5


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


# --- tci


@pytest.mark.parametrize(
    ("profile", "type", "start", "down", "wanted"),
    [
        ("a5", "i32", 5, "false", [5, 6, 7, 8]),
        ("a5", "i32", 5, "true", [5, 4, 3, 2]),
        ("a5", "i16", 32766, "false", [32766, 32767, -32768, -32767]),
        ("a5", "ui16", 1, "true", [1, 0, 65535, 65534]),
        ("a2a3", "f32", 0.5, "false", [0.5, 1.5, 2.5, 3.5]),
        ("a2a3", "f16", 2047, "false", [2047, 2048, 2048, 2050]),  # 2049 ties to even
        ("a2a3", "bf16", 256, "true", [256, 255, 254, 253]),
    ],
)
def test_a_ramp_counts_from_its_scalar(
    profile: str, type: str, start: Any, down: str, wanted: list[Any]
):
    bench = Bench(profile)
    bench.tile("d", f"vec, 1x32x{type}, valid=1x4")
    bench.scalar("s", type, start)
    bench.run(f"pto.tci ins(%s {{descending = {down}}} : {{s}}) outs(%d : {{d}})")
    assert bench["d"][0, :4].astype(float).tolist() == wanted
    assert (bits(bench["d"][:, 4:]) == FILL).all()


# --- ttri


@pytest.mark.parametrize("type", ["i8", "ui16", "i64", "f16", "bf16", "f32"])
@pytest.mark.parametrize(("upper", "shape"), [(0, np.tril), (1, np.triu)])
@pytest.mark.parametrize("diagonal", [0, 3, -2, 99, -99])
def test_a_triangle_of_ones(type: str, upper: int, shape: Any, diagonal: int):
    bench = Bench("a5")
    bench.tile("d", f"vec, 8x32x{type}, valid=5x11")
    bench.scalar("k", "i32", diagonal)
    bench.run(f"pto.ttri ins(%k {{upperOrLower = {upper} : i32}} : i32) outs(%d : {{d}})")
    assert np.array_equal(bench["d"][:5, :11].astype(int), shape(np.ones((5, 11), int), diagonal))
    assert (bits(bench["d"][5:]) == FILL).all() and (bits(bench["d"][:, 11:]) == FILL).all()


# --- trandom


def random(
    key: tuple[int, ...], counter: tuple[int, ...], rounds: int, type: str, valid: tuple[int, int]
) -> np.ndarray:
    bench = Bench("a5")
    bench.tile("d", f"vec, {type}, valid={valid[0]}x{valid[1]}")
    for n, word in enumerate((*key, *counter)):
        bench.scalar(f"w{n}", "i32", word)
    names = ", ".join(f"%w{n}" for n in range(6))
    kinds = ", ".join(["i32"] * 6)
    bench.run(f"pto.trandom ins({names} {{rounds = {rounds} : i32}} : {kinds}) outs(%d : {{d}})")
    return bench["d"]


ONES = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES,) * 4, (ONES,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (PI[:4], PI[4:], "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_published_vectors_of_philox(
    counter: tuple[int, ...], key: tuple[int, ...], wanted: str
):
    """Random123, known-answer vectors of philox4x32-10."""
    found = random(key, counter, 10, "1x8xui32", (1, 4))
    assert [f"{n:08x}" for n in found[0, :4]] == wanted.split()
    assert (bits(found[:, 4:]) == FILL).all()


def philox(counter: int, key: tuple[int, ...], rounds: int) -> list[int]:
    """The cipher in Python's integers, counter and key as the paper has them."""
    x = [counter >> (32 * n) & ONES for n in range(4)]
    k = list(key)
    for _ in range(rounds):
        p, q = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(q >> 32) ^ x[1] ^ k[0], q & ONES, (p >> 32) ^ x[3] ^ k[1], p & ONES]
        k = [(k[0] + 0x9E3779B9) & ONES, (k[1] + 0xBB67AE85) & ONES]
    return x


@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize(
    ("valid", "per_row"), [((4, 256), 64), ((3, 100), 36), ((2, 300), 64 + 44), ((3, 512), 128)]
)
def test_counters_go_on_over_rows_and_chunks(rounds: int, valid: tuple[int, int], per_row: int):
    """The golden of trandom; a counter near the end of its lowest words carries."""
    key, counter = (7, 0xFFFFFFF0), (0xFFFFFFFE, ONES, 12, 3)
    found = random(key, counter, rounds, "4x512xi32", valid).view(np.uint32)
    base = sum(word << (32 * n) for n, word in enumerate(counter))
    for i in range(valid[0]):
        words: list[int] = []
        for k in range(-(-valid[1] // 4)):
            words += philox((base + i * per_row + k) % 2**128, key, rounds)
        assert found[i, : valid[1]].tolist() == words[: valid[1]]
    assert (bits(found[valid[0] :]) == FILL).all()
    assert (bits(found[:, valid[1] :]) == FILL).all()


# --- tprint, tgetval, tsetval


def test_a_tile_is_printed_as_a_table_of_its_valid_region():
    bench = Bench("a5")
    bench.tile("t", "vec, 2x8xf32, valid=2x3", np.array([[1, -2.5, 0], [np.inf, 1e9, np.nan]]))
    bench.run("pto.tprint ins(%t : {t})")
    assert list(bench.core.printed) == [
        "tprint vec 2x8xf32 ND, valid 2x3",
        "    1.0000    -2.5000     0.0000",
        "       inf 1.0000e+09        nan",
    ]


def test_integers_and_wide_tiles_are_printed_whole_or_by_their_ends():
    bench = Bench("a5")
    bench.tile("t", "vec, 1x256xi16", np.arange(256)[None, :] - 3)
    bench.run("pto.tprint ins(%t : {t})")
    words = bench.core.printed[1].split()
    assert words[:2] == ["-3", "-2"] and words[-1] == "252"
    assert words[64] == "..." and len(words) == 129


def test_bf16_is_printed_as_numbers():
    bench = Bench("cpu")
    bench.tile("t", "vec, 1x16xbf16, valid=1x2", np.array([[1.5, 3]], ml_dtypes.bfloat16))
    bench.run("pto.tprint ins(%t : {t})")
    assert bench.core.printed[1].split() == ["1.5000", "3.0000"]


def test_a_view_of_global_memory_is_printed():
    bench = Bench("a5")
    bench.pointer("p", "i32, gm", np.arange(12))
    for name, value in (("c1", 1), ("c2", 2), ("c3", 3), ("c4", 4)):
        bench.scalar(name, "index", value)
    bench.run(
        "%v = pto.make_tensor_view %p, shape = [%c2, %c3], strides = [%c4, %c1]"
        " : !pto.tensor_view<2x3xi32>\n"
        "pto.tprint ins(%v : !pto.tensor_view<2x3xi32>)"
    )
    assert [line.split() for line in bench.core.printed] == [
        ["tprint", "gm", "2x3xi32", "ND"],
        ["0", "1", "2"],
        ["4", "5", "6"],
    ]


@pytest.mark.parametrize("layout", ["", ", blayout=col_major"])
@pytest.mark.parametrize(
    ("type", "value"), [("i8", -3), ("ui16", 65533), ("f32", 2.5), ("i64", -9)]
)
def test_elements_are_named_by_their_place_in_storage(layout: str, type: str, value: Any):
    bench = Bench("a5")
    bench.tile("t", f"vec, 32x32x{type}{layout}", np.arange(1024).reshape(32, 32) % 100)
    bench.scalar("x", type, value)
    bench.scalar("at", "index", 34)
    before = bench["t"]
    found = bench.run(
        f"%y = pto.tgetval ins(%t, %at : {{t}}, index) outs : {type}\n"
        "pto.tsetval ins(%at, %x : index, {x}) outs(%t : {t})",
        results=f"%y : {type}",
    )
    place = (2, 1) if layout else (1, 2)
    assert found == [before[place]]
    before[place] = value
    assert np.array_equal(bench["t"], before)


@pytest.mark.parametrize("at", [-1, 1024, 1 << 40])
def test_an_element_outside_the_tile_is_refused(at: int):
    bench = Bench("a5")
    bench.tile("t", "vec, 32x32xf32")
    bench.scalar("at", "index", at)
    bench.scalar("x", "f32", 1)
    for body in (
        "%y = pto.tgetval ins(%t, %at : {t}, index) outs : f32",
        "pto.tsetval ins(%at, %x : index, f32) outs(%t : {t})",
    ):
        with pytest.raises(PtoError) as caught:
            bench.run(body)
        assert caught.value.code == "PTO-M050"
    assert (bits(bench["t"]) == FILL).all()
