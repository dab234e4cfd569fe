"""Launch arguments as the program's function reads them."""

import numpy as np
import pytest

from pto.core.errors import Loc, PtoError
from pto.gym.arguments import arguments_of, functions_of
from pto.gym.host.evaluator import KernelCall
from pto.gym.host.syntax import ARITHMETIC
from pto.gym.host.values import CScalar
from pto.ir.text.parser import parse

PROGRAM = """\
module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%x: !pto.ptr<f32>, %s: {type}) attributes {{pto.aicore}} {{
    return
  }}
}}
"""
MEMORY = np.zeros(16, np.uint8)
_USE = "%t = arith.addi %s, %s : i32\n    return"


def launch(*arguments: object, kernel: str = "k") -> KernelCall:
    names = tuple("xsyz"[: len(arguments)])
    return KernelCall(kernel, 1, arguments, names, Loc("launch.cpp", 7))  # type: ignore[arg-type]


def passed(type_: str, c_type: str, value: float) -> object:
    functions = functions_of(parse(PROGRAM.format(type=type_)))
    return arguments_of(functions, launch(MEMORY, CScalar(ARITHMETIC[c_type], value)))[1]


@pytest.mark.parametrize(
    ("type_", "c_type", "value", "received"),
    [
        ("f16", "uint16_t", 0x4200, 3.0),
        ("bf16", "uint16_t", 0x4040, 3.0),
        ("f32", "uint32_t", 0x3FC00000, 1.5),
        ("f32", "float", 0.25, 0.25),
        ("f16", "half", 0.5, 0.5),
        ("i32", "int32_t", -4, -4),
        ("i64", "int64_t", 1 << 40, 1 << 40),
        ("i32", "uint8_t", 200, 200),
        ("index", "size_t", 5, 5),
    ],
)
def test_numbers_keep_their_bits(type_: str, c_type: str, value: float, received: float):
    given = passed(type_, c_type, value)
    assert given == received
    assert type(given) is type(received)


@pytest.mark.parametrize(
    ("type_", "c_type", "value", "words"),
    [
        ("f16", "float", 1.0, "float of 4 bytes where the function reads 2 (f16)"),
        ("i32", "float", 1.0, "is a float, not a i32"),
        ("!pto.ptr<f32>", "int", 1, "is a number, not a !pto.ptr<f32"),
    ],
)
def test_numbers_that_do_not_fit(type_: str, c_type: str, value: float, words: str):
    with pytest.raises(PtoError) as caught:
        passed(type_, c_type, value)
    assert caught.value.code == "PTO-U068"
    assert words in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].loc == Loc("launch.cpp", 7)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (launch(MEMORY, MEMORY), "argument 2 of k (s) is memory, not a i32"),
        (launch(MEMORY), "1 arguments, and the function takes 2"),
        (launch(MEMORY, MEMORY, kernel="other"), "no @other, only @k"),
    ],
)
def test_launches_that_do_not_fit(made: KernelCall, words: str):
    functions = functions_of(parse(PROGRAM.format(type="i32").replace("return", _USE)))
    with pytest.raises(PtoError, match="PTO-U068") as caught:
        arguments_of(functions, made)
    assert words in caught.value.diagnostics[0].message


@pytest.mark.parametrize("type_", ["i32", "!pto.ptr<i16>"])
def test_what_no_operation_takes_may_be_left_out(type_: str):
    first, rest = arguments_of(functions_of(parse(PROGRAM.format(type=type_))), launch(MEMORY))
    assert isinstance(first, np.ndarray)
    assert rest == 0 if type_ == "i32" else rest.dtype == np.int16  # type: ignore[union-attr]


def test_memory_goes_as_it_is():
    functions = functions_of(parse(PROGRAM.format(type="i32")))
    first, _ = arguments_of(functions, launch(MEMORY, CScalar(ARITHMETIC["int"], 1)))
    assert isinstance(first, np.ndarray)
    assert first.dtype == np.float32
    assert np.shares_memory(first, MEMORY)
