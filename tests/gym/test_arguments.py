"""Launch arguments as the program's function reads them."""

import numpy as np
import pytest

from pto.core.errors import Loc, PtoError
from pto.gym.arguments import arguments_of, functions_of
from pto.gym.host import KernelCall
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
    return KernelCall(kernel, 1, arguments, Loc("launch.cpp", 7))  # type: ignore[arg-type]


def passed(type_: str, number: np.generic) -> object:
    functions = functions_of(parse(PROGRAM.format(type=type_)))
    return arguments_of(functions, launch(MEMORY, number))[1]


@pytest.mark.parametrize(
    ("type_", "number", "received"),
    [
        ("f16", np.uint16(0x4200), 3.0),
        ("bf16", np.uint16(0x4040), 3.0),
        ("f32", np.uint32(0x3FC00000), 1.5),
        ("f32", np.float32(0.25), 0.25),
        ("f16", np.float16(0.5), 0.5),
        ("i32", np.int32(-4), -4),
        ("i64", np.int64(1 << 40), 1 << 40),
        ("i32", np.uint8(200), 200),
        ("index", np.uint64(5), 5),
    ],
)
def test_numbers_keep_their_bits(type_: str, number: np.generic, received: float):
    argument = passed(type_, number)
    assert argument == received
    assert type(argument) is type(received)


@pytest.mark.parametrize(
    ("type_", "number", "words"),
    [
        ("f16", np.float32(1), "float32 of 4 bytes where the function reads 2 (f16)"),
        ("i32", np.float32(1), "is a float32, not a i32"),
        ("!pto.ptr<f32>", np.int32(1), "is a number, not a !pto.ptr<f32"),
    ],
)
def test_numbers_that_do_not_fit(type_: str, number: np.generic, words: str):
    with pytest.raises(PtoError) as caught:
        passed(type_, number)
    assert caught.value.code == "PTO-U068"
    assert words in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].loc == Loc("launch.cpp", 7)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (launch(MEMORY, MEMORY), "argument 2 of k is memory, not a i32"),
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
    first, _ = arguments_of(functions, launch(MEMORY, np.int32(1)))
    assert isinstance(first, np.ndarray)
    assert first.dtype == np.float32
    assert np.shares_memory(first, MEMORY)
