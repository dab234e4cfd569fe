"""Which arguments a launch may write, by the text alone, and that only those are copied."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe.sanitize import sanitize
from pto.plan.calls import entry_functions
from pto.plan.stores import may_be_written, readers, used_parameters
from pto.run.launch.arrays import copied

_HEAD = """
module attributes {pto.target_arch = "a5"} {
  func.func private @other(%p: !pto.ptr<i32>) -> index {
    %c0 = arith.constant 0 : index
    return %c0 : index
  }
  func.func private @second(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>) -> !pto.ptr<i32> {
    return %q : !pto.ptr<i32>
  }
  func.func private @last(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %v = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
    pto.store_scalar %v, %q[%c0] : !pto.ptr<i32>, i32
    return
  }
  func.func private @peek(%p: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %v = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
    return
  }
  func.func private @nested(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>) {
    func.call @last(%q, %p) : (!pto.ptr<i32>, !pto.ptr<i32>) -> ()
    return
  }
  func.func @k(%x: !pto.ptr<i32>, %y: !pto.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %v = pto.load_scalar %x[%c0] : !pto.ptr<i32> -> i32
"""
_COPY = "pto.store_scalar %v, %y[%c0] : !pto.ptr<i32>, i32\n"
_LATER = """
    %p = pto.addptr %x, %c1 : !pto.ptr<i32> -> !pto.ptr<i32>
    pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
"""
_LOOP = """
    %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %x) -> (!pto.ptr<i32>) {
      pto.store_scalar %v, %p[%i] : !pto.ptr<i32>, i32
      scf.yield %p : !pto.ptr<i32>
    }
"""
_CALL = "%d = func.call @other(%x) : (!pto.ptr<i32>) -> index\n"
_PASSED = "func.call @nested(%y, %x) : (!pto.ptr<i32>, !pto.ptr<i32>) -> ()\n"
_RETURNED = """
    %p = func.call @second(%x, %y) : (!pto.ptr<i32>, !pto.ptr<i32>) -> !pto.ptr<i32>
    pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
"""
_NUMBER = "%a = pto.castptr %x : !pto.ptr<i32> -> i64\n"
_ADDRESS = f"""{_NUMBER}
    %p = pto.castptr %a : i64 -> !pto.ptr<i32>
    pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
"""


def program(body: str) -> str:
    return f"{_HEAD}{body}    return\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("", set()),
        (_COPY, {1}),
        (_LATER, {0}),
        (_LOOP, {0, 1, 2}),
        (_CALL, set()),
        (_PASSED, {1}),
        (_RETURNED, {0, 1, 2}),
        (_NUMBER, set()),
        (_ADDRESS, {0, 1, 2}),
        (_LATER + _COPY, {0, 1}),
    ],
    ids=[
        "nothing",
        "plain",
        "by a pointer",
        "in a loop",
        "called",
        "written by a callee of a callee",
        "returned by a callee",
        "as a number",
        "at a number",
        "both",
    ],
)
def test_what_may_be_written(body: str, written: set[int]) -> None:
    functions = entry_functions(parse(program(body)), "k")
    assert may_be_written(functions, 3) == written


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("", {0}),
        ("%d = func.call @other(%y) : (!pto.ptr<i32>) -> index\n", {0}),
        ("func.call @peek(%y) : (!pto.ptr<i32>) -> ()\n", {0, 1}),
        ("%w = pto.load_scalar %y[%c0] : !pto.ptr<i32> -> i32\n", {0, 1}),
    ],
)
def test_what_may_be_read(body: str, read: set[int]) -> None:
    """Each program loads from its first argument."""
    functions = entry_functions(parse(program(body)), "k")
    assert used_parameters(functions, "abc", readers).keys() == {"abc"[n] for n in read}


def test_a_memref_may_be_written() -> None:
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: memref<8xi32>, %y: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %v = pto.load_scalar %y[%c0] : !pto.ptr<i32> -> i32
    memref.store %v, %x[%c0] : memref<8xi32>
    return
  }
}"""
    assert may_be_written(entry_functions(parse(text), "k"), 2) == {0}


def test_arguments_that_nobody_can_match_may_all_be_written() -> None:
    assert may_be_written(entry_functions(parse(program("")), "k"), 2) == {0, 1}


def test_only_what_may_be_written_is_copied_with_all_that_lies_over_it() -> None:
    room = np.arange(24)
    args = [room[:8], room[4:12], room[16:], 5]
    first, over, apart, number = copied(args, {0})
    assert apart is args[2]
    assert number == 5
    first[6] = 99
    assert over[2] == 99  # they still lie over each other
    assert room[6] == 6
    assert copied(args, set())[0] is args[0]


def test_a_sanitized_run_leaves_each_array_as_one_run_does() -> None:
    x, y = np.full(8, 7, np.int32), np.zeros(8, np.int32)
    assert sanitize(parse(program(_COPY)), entry="k", args=[x, y, 1]).report is not None
    assert (x.tolist(), y.tolist()) == ([7] * 8, [7] + [0] * 7)
