"""A sample of `tests/prove/soundness.py`: nothing is proved that a run refutes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pto.core.errors import Diagnostic
from pto.ir.text.parser import parse
from pto.observe import claims
from pto.plan.calls import entry_functions
from pto.target.profile import profile
from tests.observe.catalogue import faults
from tests.prove.soundness import false_claims

SAMPLE = faults()[::12]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The questions that formulas were asked because a run had refuted them."""
    found, ask = list[Any](), claims._answers

    def noted(functions: Any, target: Any, questions: Any) -> Any:
        found.extend(questions)
        return ask(functions, target, questions)

    monkeypatch.setattr(claims, "_answers", noted)
    yield found


def test_no_planted_fault_is_proved_absent(asked: list[Any]) -> None:
    assert [line for fault in SAMPLE for line in false_claims(fault)] == []
    assert len(asked) >= 0.7 * len(SAMPLE)
    assert {"order", "deadlock"} <= set(asked)


def test_a_false_claim_is_noticed() -> None:
    """A finding that contradicts what is proved of an empty kernel, made up."""
    module = parse("module { func.func @f(%x: !pto.ptr<f32>) { return } }")
    made_up = [Diagnostic("PTO-R001", ""), Diagnostic("PTO-R014", ""), Diagnostic("PTO-S073", "")]
    found = claims.contradicted(entry_functions(module, None), profile("a5"), made_up)
    assert found == [("order", "PTO-R001"), ("bounds", "PTO-S073")]
