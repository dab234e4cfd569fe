"""Loops, branches and variables in them, executed and compared with the same Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pto
from pto import isa
from pto.ir.copied import same
from pto.ir.text.parser import parse

I32 = pto.Global[pto.i32]


def stored(function: Any, *args: Any, size: int = 8) -> list[int]:
    """Run a kernel whose first parameter is an array of results."""
    y = np.zeros(size, np.int32)
    made = pto.kernel(function)
    made(y, *args)
    assert same(made.module(y, *args).op, parse(made.ir).op)
    return y.tolist()


def test_loop_runs_as_often_as_the_program_says():
    def count(y: I32, n: pto.Scalar[pto.i32]) -> None:
        total = 0
        for i in pto.range(n):
            total += i
        isa.store_scalar(y, 0, total.to(pto.i32))

    made = pto.kernel(count)
    for n in (0, 1, 7):
        y = np.zeros(1, np.int32)
        made(y, n)
        assert y[0] == sum(range(n))
    assert len(made._cache) == 1, "a Scalar does not specialise"


def test_python_loops_unroll():
    def squares(y: I32) -> None:
        for i in range(4):
            isa.store_scalar(y, i, pto.scalar(i * i, pto.i32))

    assert stored(squares)[:4] == [0, 1, 4, 9]
    assert pto.kernel(squares).module(np.zeros(8, np.int32)) is not None


def test_only_what_changes_is_carried():
    def two(y: I32) -> None:
        steady, moving = 5, 0
        for _ in pto.range(3):
            moving += steady
            if moving is None:
                steady = 6
        isa.store_scalar(y, 0, moving.to(pto.i32))
        isa.store_scalar(y, 1, pto.scalar(steady, pto.i32))

    assert stored(two)[:2] == [15, 5]
    made = pto.kernel(two)
    made.module(np.zeros(8, np.int32))
    assert made.ir.count("iter_args(%moving") == 1


def test_branches_join_carried_values():
    def classify(y: I32, n: pto.Scalar[pto.i32]) -> None:
        kind = 0
        if n < 0:
            kind = 1
        elif n == 0:
            kind = 2
        isa.store_scalar(y, 0, kind.to(pto.i32))

    assert [stored(classify, n)[0] for n in (-3, 0, 4)] == [1, 2, 0]


def test_branch_without_else_keeps_the_value():
    def maybe(y: I32, n: pto.Scalar[pto.i32]) -> None:
        value = 10
        if n > 0:
            value += 5
        isa.store_scalar(y, 0, value.to(pto.i32))

    assert [stored(maybe, n)[0] for n in (-1, 1)] == [10, 15]


def test_nested_loops_carry_through_both():
    def triangle(y: I32, n: pto.Scalar[pto.i32]) -> None:
        total = 0
        for i in pto.range(n):
            for _ in pto.range(i):
                total += 1
        isa.store_scalar(y, 0, total.to(pto.i32))

    assert stored(triangle, 5)[0] == 10


def test_registers_can_be_carried():
    @pto.kernel
    def row_sums(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        out = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        with pto.vecscope():
            total = isa.vbr(pto.scalar(0.0, pto.f32))
            for r in pto.range(8):
                total = total + isa.vlds(t, r * 64)
            isa.vsts(total, out, 0)
        isa.tstore(y, out)

    x = np.arange(512, dtype=np.float32).reshape(8, 64)
    y = np.zeros(64, np.float32)
    row_sums(x, y)
    assert np.array_equal(y, x.sum(axis=0))


INTEGERS = st.integers(-1000, 1000)


@settings(max_examples=40, deadline=None)
@given(a=INTEGERS, b=INTEGERS.filter(bool))
def test_integer_operators_are_those_of_python(a: int, b: int):
    def work(y: I32, p: pto.Scalar[pto.i32], q: pto.Scalar[pto.i32]) -> None:
        results = [p + q, p - q, p * q, p // q, p % q, 7 - p, pto.min(p, q), pto.max(p, q)]
        results += [p & q, p | q, p ^ q, -p, pto.select(p < q, p, q), pto.cdiv(p, q)]
        for n, value in enumerate(results):
            isa.store_scalar(y, n, value)

    expected = [a + b, a - b, a * b, a // b, a % b, 7 - a, min(a, b), max(a, b)]
    expected += [a & b, a | b, a ^ b, -a, a if a < b else b, -(-a // b)]
    y = np.zeros(16, np.int32)
    _WORK.setdefault("kernel", pto.kernel(work))(y, a, b)
    assert y[: len(expected)].tolist() == expected


_WORK: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("text", "holds"), [("==", False), ("!=", True), ("<", True), ("<=", True), (">", False)]
)
def test_comparisons(text: str, holds: bool):
    import operator

    signs = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
    sign = {**signs, ">": operator.gt}[text]

    def compare(y: I32, p: pto.Scalar[pto.i32], q: pto.Scalar[pto.f32]) -> None:
        if sign(p, 5) & sign(q, 5.0):
            isa.store_scalar(y, 0, pto.scalar(1, pto.i32))

    assert stored(compare, 3, 3.5)[0] == int(holds)
