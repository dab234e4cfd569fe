"""Fractal moves by pointer on the fast engine: the same bytes as on the reference."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike
from tests.run.jit.tiles import Tile, program

_RANDOM = np.random.default_rng(5)
_NUMPY = {"f16": np.float16, "f32": np.float32, "i8": np.int8}


def _text(kind: str, body: str) -> tuple[str, list[Any]]:
    """A program with all of a piece of L1, L0A and L0B before and after; %g is global memory."""
    tiles = [
        Tile("mat", 1, 32768, "ui8", role="mat"),
        Tile("left", 1, 8192, "ui8", role="left"),
        Tile("right", 1, 8192, "ui8", role="right"),
    ]
    for name, space in (("M", "l1"), ("A", "l0a"), ("B", "l0b"), ("G", "gm")):
        body = re.sub(rf"\b{name}\b", f"!pto.ptr<{kind}, {space}>", body)
    names = "".join(
        f"%{name} = pto.castptr %at0 : i64 -> !pto.ptr<{kind}, {space}>\n"
        for name, space in (("m", "l1"), ("a", "l0a"), ("b", "l0b"))
    )
    used = {int(n) for n in re.findall(r"%i(\d+)", body)}
    numbers = "".join(f"%i{n} = arith.constant {n} : i64\n" for n in sorted(used))
    text = program([("g", kind)], tiles, numbers + "%no = arith.constant false\n" + names + body)
    args: list[Any] = [_RANDOM.integers(0, 256, 65536, dtype=np.uint8).view(_NUMPY[kind])]
    for tile in tiles:
        args.append(_RANDOM.integers(0, 256, tile.nbytes, dtype=np.uint8))
        args.append(np.zeros(tile.nbytes, np.uint8))
    return text, args


def _run(kind: str, body: str, *, native: bool = True) -> None:
    text, args = _text(kind, body)
    agree(text, args, check=False, all_native=native)


def _fractal(mode: str, shape: tuple[int, int], src: tuple[int, int], dst: tuple[int, ...]) -> str:
    n, d = shape
    groups = ", ".join(f"%i{k}" for k in dst)
    return (
        f"pto.mte_gm_l1_frac %g, %m, {mode}, shape(%i{n}, %i{d}), "
        f"src_layout(%i{src[0]}, %i{src[1]}), dst_group({groups}), ctrl(%i0, %no) : G, M, {mode}, "
        "shape i64, i64, src_layout(i64, i64), dst_group i64, i64, i64, i64, ctrl i64, i1"
    )


@pytest.mark.parametrize("kind", ["f16", "f32", "i8"])
@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
@pytest.mark.parametrize("shape", [(32, 64), (30, 45), (1, 7), (48, 32)])
def test_matrices_become_fractals(kind: str, mode: str, shape: tuple[int, int]) -> None:
    for dst in ((1, 1, 48, 0), (2, 1, 64, 512), (1, 2, 128, 0)):
        _run(kind, _fractal(mode, shape, (512, 16384), dst))


def test_fractals_outside_l1_are_named() -> None:
    text, args = _text("f16", _fractal("nd2nz", (64, 64), (512, 0), (1, 1, 60000, 0)))
    assert fails_alike(text, args, check=False) == "PTO-M161"


@pytest.mark.parametrize("kind", ["f16", "f32", "i8"])
@pytest.mark.parametrize("more", ["", " {transpose = true}"])
@pytest.mark.parametrize("size", [(16, 32), (30, 64), (64, 33)])
def test_fractals_go_to_the_operand_buffers(kind: str, more: str, size: tuple[int, int]) -> None:
    a, b = size
    _run(
        kind,
        f"pto.mte_l1_l0a %m, %a, %i{a}, %i{b}{more} : M, A, i64, i64\n"
        f"pto.mte_l1_l0b %m, %b, %i{a}, %i{b}, %i2, %i1{more} : M, B, i64, i64, i64, i64",
    )


def test_bytes_go_to_l1_and_on_by_steps() -> None:
    _run(
        "f16",
        "pto.mte_gm_l1 %g, %m, %i64 nburst(%i4, %i100, %i96) loop(%i2, %i1000, %i2048) "
        ": G, M, i64, i64, i64, i64, loop i64, i64, i64\n"
        "pto.copy_gm_to_cbuf %g, %m, %i4, %i32, %i64, %i64 : G, M, i64, i64, i64, i64\n"
        "pto.load_cbuf_to_ca %m, %a, %i1, %i2, %i3, %i2, %i4, %i3 "
        ": M, A, i64, i64, i64, i64, i64, i64",
    )


@pytest.mark.parametrize("transpose", [0, 1])
def test_elements_of_four_bits(transpose: int) -> None:
    """Transposed they are the reference's."""
    for op, to, type in (("ca", "%a", "A"), ("cb", "%b", "B")):
        steps = f"%i1, %i1, %i4, %i2, %i8, %i4, %i{transpose}"
        text = f"pto.load_cbuf_to_{op}_s4 %m, {to}, {steps} : M, {type}" + ", i64" * 7
        _run("f16", text, native=not transpose)


@pytest.mark.parametrize("bits", [16, 32])
def test_a_pattern_in_l1(bits: int) -> None:
    for times, blocks, gap in ((1, 3, 0), (4, 2, 5), (0, 3, 1), (3, 0, 1)):
        sizes = f"%i64, %word, %i{times}, %i{blocks}, %i{gap} {{fill_word_bits = {bits} : i64}}"
        body = "%word = arith.constant -559038737 : i32\n"
        _run("f16", body + f"pto.raw_fill_l1 %m, {sizes} : M, i64, i32, i64, i64, i64")


def test_a_pattern_outside_l1_is_told_alike() -> None:
    body = "%word = arith.constant 7 : i32\n"
    body += "pto.raw_fill_l1 %m, %i64, %word, %i32000, %i2, %i0 {fill_word_bits = 32 : i64}"
    text, args = _text("f16", body + " : M, i64, i32, i64, i64, i64")
    assert fails_alike(text, args, check=False).startswith("PTO-M")
