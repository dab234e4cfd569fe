"""Tile to tile on the fast engine: the same bytes as on the reference, all of them compiled."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike
from tests.run.jit.tiles import Tile, program, view

_RANDOM = np.random.default_rng(11)
_NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_LAYOUTS = ["ND", "DN", "NZ", "ZN", "ZZ", "NN"]


def _around(tiles: list[Tile]) -> list[Any]:
    """Bytes that lie in the tiles before, and arrays for what lies there after."""
    found: list[Any] = []
    for tile in tiles:
        found.append(_RANDOM.integers(0, 256, tile.nbytes, dtype=np.uint8))
        found.append(np.zeros(tile.nbytes, np.uint8))
    return found


def _run(tiles: list[Tile], body: str, *, native: bool = True) -> None:
    agree(program([], tiles, body), _around(tiles), check=False, all_native=native)


@pytest.mark.parametrize("src", _LAYOUTS)
@pytest.mark.parametrize("dst", _LAYOUTS)
def test_a_move_between_any_two_layouts(src: str, dst: str) -> None:
    of_both = _LAYOUTS.index(src) + _LAYOUTS.index(dst)  # every second pair has the other kind
    kind, valid = (("f32", (32, 64)), ("f16", (19, 37)))[of_both % 2]
    a = Tile("a", 32, 64, kind, src, valid, role="mat")
    b = Tile("b", 32, 64, kind, dst, role="mat", address=16384)
    _run([a, b], f"pto.tmov ins({a.ref()}) outs({b.ref()})")


@pytest.mark.parametrize(("role", "layout"), [("left", "NZ"), ("right", "ZN"), ("left", "ZZ")])
def test_a_move_to_the_cube(role: str, layout: str) -> None:
    a = Tile("a", 64, 32, "f16", "NZ", role="mat", dynamic=True)
    b = Tile("b", 64, 32, "f16", layout, role=role)
    _run([a, b], f"pto.tmov ins({a.ref()}) outs({b.ref()})")


def test_a_move_out_of_an_accumulator_and_to_the_bias_table() -> None:
    acc = Tile("acc", 32, 32, "f32", "NZ", (30, 32), role="acc", fractal=1024)
    mat = Tile("mat", 32, 32, "f32", "NZ", role="mat", fractal=1024)
    _run([acc, mat], f"pto.tmov ins({acc.ref()}) outs({mat.ref()})")
    row = Tile("row", 1, 64, "f16", role="mat")
    bias = Tile("bias", 1, 64, "f32", role="bias")
    _run([row, bias], f"pto.tmov ins({row.ref()}) outs({bias.ref()})")


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("relu", ["no_relu", "normal_relu"])
def test_an_accumulator_is_rounded_on_its_way_out(kind: str, relu: str) -> None:
    acc = Tile("acc", 32, 32, "f32", "NZ", (30, 31), role="acc", fractal=1024)
    mat = Tile("mat", 32, 32, kind, "NZ", role="mat")
    more = f"{{reluPreMode = #pto<relu_pre_mode {relu}>}}"
    _run([acc, mat], f"pto.tmov ins({acc.ref()}) outs({mat.ref()}) {more}")
    made = view("v", "g", kind, (32, 32), (40, 1))
    store = f"pto.tstore ins({acc.ref()}) outs(%v : !pto.tensor_view<?x?x{kind}>) {more}"
    text = program([("g", kind)], [acc], made + store)
    g = _RANDOM.integers(0, 256, 1280 * 4, dtype=np.uint8).view(_NUMPY[kind])
    agree(text, [g, *_around([acc])], check=False)


@pytest.mark.parametrize("shift", [0, 64, 8192, 16384])
def test_tiles_on_the_same_bytes_move_as_if_read_first(shift: int) -> None:
    a = Tile("a", 32, 64, "f32", "NZ", role="mat")
    for layout in ("NZ", "ND"):
        b = Tile("b", 32, 64, "f32", layout, role="mat", address=shift)
        _run([a, b], f"pto.tmov ins({a.ref()}) outs({b.ref()})", native=False)


@pytest.mark.parametrize("src", ["ND", "NZ", "ZN", "DN"])
@pytest.mark.parametrize("dst", ["ND", "NZ", "ZZ"])
@pytest.mark.parametrize("at", [(0, 0), (16, 32)])
def test_windows_cut_out_and_pasted_in(src: str, dst: str, at: tuple[int, int]) -> None:
    a = Tile("a", 64, 128, "f16", src, (60, 100), role="mat")
    b = Tile("b", 32, 64, "f16", dst, (32, 50), role="mat", address=32768)
    row, col = at
    for op, x, y in (("textract", a, b), ("tinsert", b, a)):
        _run(
            [a, b],
            f"pto.{op} ins(%{x.name}, %n{row}, %n{col} : {x.type}, index, index) outs({y.ref()})",
            native=False,
        )


@pytest.mark.parametrize("layout", ["ND", "NZ", "ZN", "DN"])
def test_a_window_inside_a_box_or_block_is_named(layout: str) -> None:
    a = Tile("a", 64, 128, "f16", layout, (60, 100), role="mat")
    b = Tile("b", 32, 64, "f16", "ND", (32, 50), role="mat", address=32768)
    body = f"pto.textract ins(%a, %n3, %n5 : {a.type}, index, index) outs({b.ref()})"
    assert fails_alike(program([], [a, b], body), _around([a, b]), check=False) == "PTO-S061"


def test_a_window_outside_its_tile_is_named() -> None:
    a = Tile("a", 64, 128, "f16")
    b = Tile("b", 32, 64, "f16", address=32768, dynamic=True)
    body = f"pto.textract ins(%a, %n40, %n0 : {a.type}, index, index) outs({b.ref()})"
    text = program([], [a, b], body)
    assert fails_alike(text, _around([a, b]), check=False) == "PTO-S060"


@pytest.mark.parametrize("kind", ["f32", "f16", "i8"])
@pytest.mark.parametrize("layouts", [("ND", "ND"), ("ND", "DN"), ("NZ", "NZ"), ("DN", "ZN")])
@pytest.mark.parametrize("valid", [(48, 64), (33, 19), (1, 64), (16, 16)])
def test_transposes(kind: str, layouts: tuple[str, str], valid: tuple[int, int]) -> None:
    a = Tile("a", 48, 64, kind, layouts[0], valid)
    tmp = Tile("tmp", 8, 32, kind, address=32768)
    b = Tile("b", 64, 64, kind, layouts[1], address=65536)
    _run([a, tmp, b], f"pto.ttrans ins(%a, %tmp : {a.type}, {tmp.type}) outs({b.ref()})")


@pytest.mark.parametrize("pad", [1, 2, 3])
@pytest.mark.parametrize("layout", ["ND", "NZ"])
@pytest.mark.parametrize("place", [0, 32768])
def test_pads_around_a_tile(pad: int, layout: str, place: int) -> None:
    for valid in ((32, 64), (20, 45), (32, 1)):
        a = Tile("a", 32, 64, "f16", layout, valid)
        b = Tile("b", 32, 64, "f16", layout, address=place, pad=pad)
        _run([a, b], f"pto.tfillpad ins({a.ref()}) outs({b.ref()})")


@pytest.mark.parametrize("layout", ["ND", "NZ"])
def test_a_tile_beside_another(layout: str) -> None:
    a = Tile("a", 32, 64, "f16", layout, (32, 48))
    b = Tile("b", 32, 64, "f16", layout, (32, 30), address=8192)
    c = Tile("c", 32, 128, "f16", layout, (32, 78), address=16384)
    _run([a, b, c], f"pto.tconcat ins(%a, %b : {a.type}, {b.type}) outs({c.ref()})")


@pytest.mark.parametrize("role", ["vec", "mat"])
@pytest.mark.parametrize("layout", ["ND", "NZ", "DN"])
def test_one_scalar_everywhere(role: str, layout: str) -> None:
    for kind, value in (("f32", "1.5"), ("f16", "2.5"), ("i8", "7"), ("i32", "-3")):
        a = Tile("a", 32, 64, kind, layout, (31, 47), role=role)
        body = (
            f"%s = arith.constant {value} : {kind}\npto.texpands ins(%s : {kind}) outs({a.ref()})"
        )
        _run([a], body)


@pytest.mark.parametrize("at", [(0, 0), (8, 16), (24, 32)])
def test_windows_on_a_tile(at: tuple[int, int]) -> None:
    a, b = Tile("a", 32, 64), Tile("b", 8, 32, address=8192)
    part = Tile("w", 8, 32)
    row, col = at
    body = (
        f"%w = pto.subview %a[%n{row}, %n{col}] sizes [8, 32] : {a.type} -> {part.type}\n"
        f"pto.tadd ins(%w, %b : {part.type}, {b.type}) outs(%w : {part.type})\n"
        f"pto.tmov ins(%w : {part.type}) outs({b.ref()})"
    )
    _run([a, b], body)


def test_a_window_outside_is_named() -> None:
    a, b = Tile("a", 32, 64), Tile("b", 8, 32, address=8192)
    body = (
        f"%w = pto.subview %a[%n28, %n0] sizes [8, 32] : {a.type} -> {b.type}\n"
        f"pto.tmov ins(%w : {b.type}) outs({b.ref()})"
    )
    assert fails_alike(program([], [a, b], body), _around([a, b]), check=False) == "PTO-S073"


def test_the_same_bytes_as_another_tile() -> None:
    a, b = Tile("a", 32, 64), Tile("b", 64, 32, address=8192)
    body = (
        f"%r = pto.treshape %a : {a.type} -> {b.type}\n"
        f"pto.tadd ins(%r, %b : {b.type}, {b.type}) outs({b.ref()})"
    )
    _run([a, b], body)


def test_a_buffer_allocated_as_a_memref() -> None:
    a = Tile("a", 32, 64)
    kind = "memref<32x64xf32, #pto.address_space<vec>>"
    body = (
        f"%m = memref.alloc() : {kind}\n"
        f"pto.tmov ins({a.ref()}) outs(%m : {kind})\n"
        f"pto.tadd ins(%m, %m : {kind}, {kind}) outs({a.ref()})"
    )
    _run([a], body)


@pytest.mark.parametrize("valid", [(32, 64), (10, 20)])
def test_a_share_of_a_tile(valid: tuple[int, int]) -> None:
    a, b = Tile("a", 32, 64, valid=valid, dynamic=True), Tile("b", 8, 32, address=8192)
    part = Tile("w", 8, 32, dynamic=True)
    body = (
        f"%w = pto.subset %a[%n8, %n32] sizes [8, 32] : {a.type}\n"
        f"pto.tmov ins(%w : {part.type}) outs({b.ref()})"
    )
    _run([a, b], body)


@pytest.mark.parametrize(
    ("kind", "rows", "cols", "valid"),
    [("f32", 5, 96, 96), ("f16", 11, 32, 32), ("i32", 8, 32, 32), ("f32", 7, 64, 45)],
)
def test_blocks_are_sorted_many_at_a_time_and_one_by_one(
    kind: str, rows: int, cols: int, valid: int
) -> None:
    per_record = 2 if kind in ("f32", "i32") else 4
    s = Tile("s", rows, cols, kind, "ND", (rows, valid))
    i = Tile("i", rows, cols, "ui32", "ND", (rows, valid), address=16384)
    d = Tile("d", rows, cols * per_record, kind, address=65536)
    body = f"pto.tsort32 ins(%s, %i : {s.type}, {i.type}) outs(%d : {d.type})"
    for most in (255, 1):  # of two bytes only: many are equal
        around = _around([s, i, d])
        around[0] &= most
        agree(program([], [s, i, d], body), around, check=False, all_native=True)
