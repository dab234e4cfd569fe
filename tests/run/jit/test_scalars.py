"""The scalar unit on the fast engine: the same numbers as on the reference."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike

KINDS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FLOATS = [0.0, -0.0, 1.5, -2.75, 1e-7, 300.0, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 7, -13, 100, 2**31 - 1, -(2**31)]


def program(kind: str, lines: list[str], result: str, into: str) -> str:
    """Scalars %a and %b of the parameters, one result that a store leaves in memory."""
    body = "\n    ".join(lines)
    return f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f(%out: !pto.ptr<{into}>, %a: {kind}, %b: {kind}) {{
    %zero = arith.constant 0 : index
    {body}
    pto.store_scalar {result}, %out[%zero] : !pto.ptr<{into}>, {into}
    return
  }}
}}
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "divf", "maximumf", "minimumf"])
def test_floats(op: str, kind: str) -> None:
    text = program(kind, [f"%r = arith.{op} %a, %b : {kind}"], "%r", kind)
    for a, b in itertools.product(FLOATS[1:], FLOATS[::2]):
        agree(text, [np.zeros(1, KINDS[kind]), a, b])


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "rsqrt", "absf", "floor", "ceil", "tanh"])
def test_functions(op: str) -> None:
    text = program("f32", [f"%r = math.{op} %a : f32"], "%r", "f32")
    for a in FLOATS:
        agree(text, [np.zeros(1, np.float32), a, a])


@pytest.mark.parametrize(
    "op",
    ["addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "minui"],
)
def test_integers(op: str) -> None:
    text = program("i32", [f"%r = arith.{op} %a, %b : i32"], "%r", "i32")
    for a, b in itertools.product(INTEGERS, INTEGERS[::2]):
        agree(text, [np.zeros(1, np.int32), a, b])


@pytest.mark.parametrize(
    "op", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"]
)
def test_divisions(op: str) -> None:
    text = program("i32", [f"%r = arith.{op} %a, %b : i32"], "%r", "i32")
    for a, b in itertools.product(INTEGERS, [1, -1, 7, -(2**31)]):
        agree(text, [np.zeros(1, np.int32), a, b])
    assert fails_alike(text, [np.zeros(1, np.int32), 5, 0]) == "PTO-S132"


@pytest.mark.parametrize("word", ["eq", "ne", "slt", "sle", "ugt", "uge"])
def test_comparisons_choose(word: str) -> None:
    lines = [f"%c = arith.cmpi {word}, %a, %b : i32", "%r = arith.select %c, %a, %b : i32"]
    text = program("i32", lines, "%r", "i32")
    for a, b in itertools.product(INTEGERS, INTEGERS[::3]):
        agree(text, [np.zeros(1, np.int32), a, b])
