"""Affine operations are the arithmetic of their maps, on both engines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.run.launch.host import launch

Three = Callable[[int, int, int], int]  # of a, b and n


def kernel(body: str, before: str = "") -> str:
    return f"""{before}
func.func @f(%a: index, %b: index, %n: index, %p: !pto.ptr<i64>) attributes {{pto.entry}} {{
  %at = arith.constant 0 : index
  {body}
  %w = arith.index_cast %r : index to i64
  pto.store_scalar %w, %p[%at] : !pto.ptr<i64>, i64
  return
}}"""


def run(text: str, *numbers: int) -> int:
    found = [np.zeros(1, np.int64) for _ in range(2)]
    for engine, array in zip(("reference", "jit"), found, strict=True):
        launch(text, args=[*numbers, array], profile="a2a3", engine=engine)
    assert found[0][0] == found[1][0]
    return int(found[0][0])


NUMBERS = [(0, 0, 1), (5, 9, 3), (-7, 11, 4), (22, -13, 6)]


@pytest.mark.parametrize(
    ("map", "wanted"),
    [
        ("()[s0] -> (s0 * 32)>()[%a]", lambda a, b, n: 32 * a),
        ("(d0, d1) -> (d0 * 3 - d1 * 2 + 7)>(%a, %b)", lambda a, b, n: 3 * a - 2 * b + 7),
        ("(d0)[s0] -> ((d0 + 7) ceildiv s0)>(%a)[%n]", lambda a, b, n: -(-(a + 7) // n)),
        ("(x) -> (x floordiv 4 + x mod 4 * 100)>(%a)", lambda a, b, n: a // 4 + a % 4 * 100),
        ("(d0)[s0] -> (-(d0 - s0) mod 5)>(%b)[%a]", lambda a, b, n: (a - b) % 5),
        ("(d0, d1) -> (d1)>(%a, %b)", lambda a, b, n: b),
        ("() -> (2 * (3 + 4) - 20 floordiv 3)>()", lambda a, b, n: 8),
    ],
)
def test_a_map_is_applied(map: str, wanted: Three) -> None:
    text = kernel(f"%r = affine.apply affine_map<{map}")
    assert [run(text, *each) for each in NUMBERS] == [wanted(*each) for each in NUMBERS]
    printed = print_module(parse(text))
    assert "affine." not in printed and print_module(parse(printed)) == printed


@pytest.mark.parametrize(("word", "fold"), [("min", min), ("max", max)])
def test_the_least_and_the_greatest_of_a_named_map(word: str, fold: Callable[..., int]) -> None:
    named = "#m = affine_map<(d0, d1)[s0] -> (d0 * 2, d1 floordiv 3, s0 + 1)>"
    text = kernel(f"%r = affine.{word} #m(%a, %b)[%n]", named)
    for a, b, n in NUMBERS:
        assert run(text, a, b, n) == fold(2 * a, b // 3, n + 1)


def test_a_loop_between_the_greatest_and_the_least() -> None:
    text = kernel("""
  %r = affine.for %i = max affine_map<(d0) -> (d0, 2)>(%a)
      to min affine_map<()[s0] -> (s0 * 3, 40)>()[%b] step 4 iter_args(%x = %n) -> (index) {
    %y = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2)>(%x, %i)
    affine.yield %y : index
  }
  affine.for %j = 0 to %a {
  }""")
    for a, b, n in NUMBERS:
        assert run(text, a, b, n) == n + 2 * sum(range(max(a, 2), min(3 * b, 40), 4))


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("affine.apply affine_map<(d0) -> (d0)>(%a, %b)", "PTO-P012", "takes 1 values here, got 2"),
        ("affine.apply affine_map<(d0) -> (d0, 1)>(%a)", "PTO-P012", "one result, got 2"),
        ("affine.apply affine_map<(d0, d1) -> (d0 * d1)>(%a, %b)", "PTO-P025", "beside `*`"),
        ("affine.apply affine_map<(d0, d1) -> (d0 mod d1)>(%a, %b)", "PTO-P025", "beside `mod`"),
        ("affine.apply affine_map<(d0) -> (d0 floordiv 0)>(%a)", "PTO-P025", "got 0"),
        ("affine.apply affine_map<(d0) -> (d0 + )>(%a)", "PTO-P025", "got `the end`"),
        ("affine.apply affine_map<(d0) -> (d1)>(%a)", "PTO-P025", "got `d1`"),
        ("affine.apply affine_map<(d0) -> (d0 / 2)>(%a)", "PTO-P025", "got `/`"),
        (f"affine.apply affine_map<() -> ({'(' * 99}1{')' * 99})>()", "PTO-P023", "nested"),
        ("affine.apply %a", "PTO-P025", "expected an affine_map"),
        ("affine.if affine_set<(d0) : (d0 >= 0)>(%a)", "PTO-P021", "affine.if"),
    ],
)
def test_what_is_no_map(text: str, code: str, words: str) -> None:
    with pytest.raises(PtoError) as caught:
        parse(kernel(f"%r = {text}"))
    found = caught.value.diagnostics[0]
    assert found.code == code and words in found.message
