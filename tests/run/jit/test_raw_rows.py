"""Vector instructions by pointer, row by row: the engines agree under either kind of mask."""

from __future__ import annotations

import numpy as np
import pytest

from pto.isa.meaning.vector import raw
from tests.known.test_raw_vectors import RAW
from tests.run.jit.both import agree, fails_alike

TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i16": np.int16}
FLOATS = {"vdiv", "vexp", "vln", "vsqrt", "vrsqrt"}
BITS = {"vand", "vor", "vnot", "vshl", "vshr"}
CASES = [
    (name, ty)
    for name in (*raw.BINARY, *raw.UNARY, *raw.SCALAR, "vdup")
    for ty in TYPES
    if name not in (FLOATS if ty[0] == "i" else BITS)
]


def program(name: str, ty: str, mask: int, counts: bool, repeat: str = "%c2") -> str:
    pointer = f"!pto.ptr<{ty}, ub>"
    sources = 2 if name in raw.BINARY else 0 if name == "vdup" else 1
    scalar = [] if name in raw.BINARY or name in raw.UNARY else ["%shift"]
    ways = max(sources, 1) + 1
    strides = [repeat, *["%c1", "%c2", "%c1"][:ways], *["%c8", "%c16", "%c8"][:ways]]
    operands = ["%p", *["%q", "%p"][:sources], *scalar, *strides]
    types = [pointer] * (sources + 1) + ["i64"] * (len(scalar) + len(strides))
    body = f"""
    %shift = arith.constant 9 : i64
    %mask = arith.constant {mask} : i64
    %q = pto.castptr %c0 : i64 -> {pointer}
    {"pto.ub.set_mask_count" if counts else "pto.ub.set_mask_norm"}
    pto.ub.set_mask %mask, %mask : i64, i64
    pto.ub.{name} {", ".join(operands)} : {", ".join(types)}"""
    return RAW.replace("f32", ty).replace("BODY", body)


@pytest.mark.parametrize(("name", "ty"), CASES)
def test_rows_agree(name: str, ty: str) -> None:
    rng = np.random.default_rng(7)
    values = (rng.normal(size=1024 // np.dtype(TYPES[ty]).itemsize) * 9).astype(TYPES[ty])
    for mask, counts in ((0x5A5A_F00F_1234_4321, False), (70, True)):
        agree(program(name, ty, mask, counts), [values])


def test_what_does_not_fit_is_told_by_the_same_words() -> None:
    values = np.zeros(256, np.float32)
    text = program("vabs", "f32", -1, False, repeat="%n")
    assert fails_alike(text, [values]).startswith("PTO-M")


def test_no_repeats_are_none() -> None:
    agree(program("vabs", "f32", -1, False, repeat="%c0"), [np.full(256, -1, np.float32)])
