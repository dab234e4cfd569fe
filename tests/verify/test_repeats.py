"""An operation of types and attributes of one before is not judged again: findings are equal."""

from __future__ import annotations

import random

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.target.profile import PROFILES, profile
from pto.verify import operation
from tests.ir.test_fuzz import PROGRAMS, mutate


def _findings(text: str, target: str) -> list[str]:
    try:
        return [str(d) for d in operation.check(parse(text), profile(target))]
    except PtoError:
        return []


def test_findings_are_the_same(monkeypatch: pytest.MonkeyPatch):
    rng = random.Random(5)
    texts = [path.read_text(encoding="utf-8") for path in PROGRAMS]
    texts += [mutate(rng.choice(texts), rng) for _ in range(200)]
    asked = [(text, rng.choice(PROFILES)) for text in texts]
    quick = [_findings(*each) for each in asked]
    monkeypatch.setattr(operation._Legal, "knows", lambda *_: False)
    assert quick == [_findings(*each) for each in asked]


def test_a_number_counts_where_a_rule_asks_for_it():
    view, part = "!pto.tensor_view<16x64xf32>", "!pto.partition_tensor_view<16x64xf32>"
    text = f"""func.func @f(%v: {view}) {{
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %a = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : {view} -> {part}
      %b = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : {view} -> {part}
      %c = pto.partition_view %v, offsets = [%c8, %c0], sizes = [%c16, %c64] : {view} -> {part}
      return
    }}"""
    found = operation.check(parse(text), profile("a5"))
    assert [d.loc.line for d in found if d.loc] == [8]
