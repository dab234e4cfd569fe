"""Expressions of lanes: equal ones are one object, costs are those of the text, and the value of an
expression is that of its definition."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core import dtypes
from pto.core.primitives import repeated, select
from pto.isa.meaning import lanes as definitions
from pto.isa.meaning import mathlib
from pto.run.jit.ir import expr as ir
from pto.run.jit.ir.expr import Traced, read, trace
from pto.run.jit.ir.kinds import BF16, BOOL, F16, F32, F64, UnsupportedLowering
from pto.run.jit.llvm import native
from pto.run.jit.llvm.lanes import Lanes
from pto.run.jit.llvm.lowering import cost, lower
from pto.run.jit.llvm.text import Text

I32 = np.dtype(np.int32)
KINDS = (F32, F64, F16, BF16, I32)
UNARY = ("neg", "absolute", "signbit", "isinf", "isfinite", "sqrt", "rint", "floor", "trunc")
BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"),
    *("lt", "le", "eq", "ne", "greater_of", "less_of", "copysign", "fmod", "remainder"),
)
FLOATS_ONLY = {"sqrt", "rint", "floor", "trunc", "truediv"}
INTEGERS_ONLY = {"floordiv", "and", "or", "xor"}


def _applied(name: str, count: int) -> Callable[..., Any]:
    return lambda *given: given[0].primitive(name, given[:count])


def _lines(expr: ir.Expr, kinds: list[np.dtype[Any]]) -> Text:
    """The text of an expression on 16 lanes."""
    lanes = Lanes(Text(lambda line: None), 16)
    lower(expr, lanes, [lanes.symbol(kind, f"%s{n}") for n, kind in enumerate(kinds)])
    return lanes.x


def test_equal_expressions_are_one_object() -> None:
    a, b = Traced(read(0, F32)), Traced(read(1, F32))
    assert (a * b + 2.0).expr is (a * b + 2).expr
    assert (a * b).expr is not (b * a).expr  # of floats too: which NaN remains differs
    assert (a + 1).expr is not (a + 1.5).expr
    assert a.astype(np.float64).expr is not a.view(np.int32).expr


def test_a_constant_takes_the_type_of_the_other_operand() -> None:
    half = Traced(read(0, F16))
    assert (half + 1).expr.args[1].dtype == F16
    assert (half + np.float32(1)).expr.dtype == F32
    assert (half < 1).expr.dtype == BOOL


def test_what_is_shared_is_written_and_counted_once() -> None:
    a = Traced(read(0, F32))
    square = a * a
    expr = (square + square * square).expr
    assert len(_lines(expr, [F32]).lines) == cost([expr], 16).lines == 3
    assert ir.written(expr) == ["t0 = mul(s0, s0)", "add(t0, mul(t0, t0))"]
    assert ir.written(expr, ["x"])[-1] == "add(t0, mul(t0, t0))"


def test_a_definition_is_a_node_with_its_name() -> None:
    expr = trace(mathlib.exp, [F32], dtypes.F32)
    assert (expr.op, expr.args) == ("exp", (read(0, F32),))
    assert str(expr) == "exp(s0)"
    assert cost([expr], 16).lines > 10


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_costs_are_the_lines_that_are_written(name: str, kind: np.dtype[Any]) -> None:
    if not native.target().has_half and kind == F16:
        pytest.skip("costs are for processors that convert f16")
    count = 1 if name in UNARY else 2
    operands = [Traced(read(n, kind)) for n in range(count)]
    expr = _applied(name, count)(*operands).expr
    if name in (FLOATS_ONLY if kind == I32 else INTEGERS_ONLY):
        with pytest.raises(TypeError):
            _lines(expr, [kind] * count)
        return
    text = _lines(expr, [kind] * count)
    predicted = cost([expr], 16)
    assert (predicted.lines, predicted.is_slow) == (len(text.lines), text.slow > 0)
    assert predicted.widest >= text.widest


@pytest.mark.parametrize("have", (*KINDS, BOOL, np.dtype(np.int16)), ids=str)
@pytest.mark.parametrize("want", (*KINDS, BOOL, np.dtype(np.uint8)), ids=str)
def test_costs_of_casts(have: np.dtype[Any], want: np.dtype[Any]) -> None:
    if not native.target().has_half and F16 in (have, want):
        pytest.skip("costs are for processors that convert f16")
    expr = Traced(read(0, have)).astype(want).expr
    text, found = _lines(expr, [have]), cost([expr], 16)
    assert (found.lines, found.is_slow) == (len(text.lines), text.slow > 0)
    assert found.widest >= text.widest


def test_a_known_shift_costs_one_line() -> None:
    a = Traced(read(0, I32))
    assert [cost([e.expr], 16).lines for e in (a << 3, a << 32, a << a)] == [1, 4, 4]


def test_bodies_of_loops_see_the_values_around_them() -> None:
    def halved(a: Any) -> Any:
        twice = a + a

        def step(left: Any, out: Any) -> tuple[Any, Any]:
            return select(left > 1, left >> 1, left ^ left), out + twice

        return repeated(step, a, a ^ a)[1]

    expr = trace(halved, [I32], dtypes.I32)
    assert (expr.op, expr.args[0].op) == (ir.PICK, ir.REPEATED)
    text = "\n".join(_lines(expr, [I32]).lines)
    assert text.count("phi") == 2
    assert cost([expr], 16).is_slow


def test_types_without_arithmetic_have_no_expression() -> None:
    with pytest.raises(UnsupportedLowering):
        Traced(read(0, F32)).astype(ml_dtypes.float8_e4m3fn)


def test_a_definition_may_not_look_at_values() -> None:
    with pytest.raises(TypeError, match="branches on lanes"):
        trace(lambda a: a if a > 0 else -a, [F32], dtypes.F32)
    with pytest.raises(TypeError, match="array of lanes"):
        trace(lambda a: np.asarray(a), [F32], dtypes.F32)


def test_a_conversion_expands_to_primitives() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expr = trace(lambda a: definitions.convert(a, dtypes.F32, dtypes.I8), [F32], dtypes.I8)
    assert (expr.op, expr.dtype) == ("convert", np.dtype(np.int8))
    text, found = _lines(expr, [F32]), cost([expr], 16)
    assert len(text.lines) == found.lines
