"""The scalar unit on the fast engine: the same numbers as on the reference."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.isa.meaning.kinds import Lane
from pto.isa.rules.rule import Case
from pto.isa.table import rows
from pto.run.reference import scalars
from pto.target.profile import profile
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


_SHORT = ["i1", "i8", "ui8", "i32", "ui32", "i64", "ui64", "index"]
_QUICK = [r for r in rows() if isinstance(r.body, Lane) and r.body.quick is not None]
_OTHER = ("arith.extsi", "arith.extui", "arith.trunci")  # the types differ: index_cast's rows do
_PAIRS = [
    (r, kind)
    for r in _QUICK
    for kind in _SHORT
    if r.name not in _OTHER and not (r.name.startswith("arith.index_cast") and kind == "i1")
]


@pytest.mark.parametrize("row, kind", _PAIRS, ids=[f"{r.name}-{k}" for r, k in _PAIRS])
def test_a_shortcut_on_pythons_numbers_gives_what_the_definition_gives(row: Any, kind: str) -> None:
    """The definition is what compiled code is written from."""
    assert isinstance(row.body, Lane)
    wide = "i64" if kind == "index" else "index"
    casts = row.name.startswith("arith.index_cast")
    target = wide if casts else "i1" if row.name == "arith.cmpi" else kind
    words = [", slt", ", uge", ", eq"] if row.name == "arith.cmpi" else [""]
    for word in words:
        case = scalar_case(row, kind, target, len(row.operands), word.strip(", "))
        bits = scalars.wrapper(case.op.operands[0].type)
        some = sorted({bits(v) for v in (*INTEGERS, 2**63 - 1, -(2**63), 63, 64, 128)})
        quick = row.body.quick(case)
        slow = scalars.numbers(case, replace(row.body, quick=None))
        for given in itertools.product(some, repeat=len(row.operands)):
            if row.body.needs is not None and given[-1] == 0:
                continue
            with np.errstate(all="ignore"):
                assert quick(*given) == slow(*given), (row.name, kind, given)


def scalar_case(row: Any, kind: str, target: str, count: int, predicate: str) -> Case:
    """The row as it stands in a program, on arguments of a type."""
    args = ", ".join(f"%a{n}: {kind}" for n in range(count))
    used = ", ".join(f"%a{n}" for n in range(count))
    tail = f"{kind} to {target}" if row.name.startswith("arith.index_cast") else kind
    first = f"{predicate}, " if predicate else ""
    text = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f({args}) -> {target} {{
    %r = {row.name} {first}{used} : {tail}
    return %r : {target}
  }}
}}
"""
    op = next(o for o in parse(text).walk() if o.name == row.name)
    return Case(op, profile("a5"))
