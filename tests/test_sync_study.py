"""The study of synchronisation: its programs are legal and deterministic, ours come out ordered."""

from __future__ import annotations

import pytest

from bench.sync_study import by_pto, judged, main, random_program
from pto.ir.text.parser import parse
from pto.verify import judge


def test_without_a_compiler_it_says_so(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert "without one there is nothing to compare with" in capsys.readouterr().out


@pytest.mark.parametrize(("seed", "turns"), [(12, 0), (13, 0), (12, 3)])
def test_a_random_program_is_legal_and_pto_sync_orders_it(seed: int, turns: int):
    text, shapes = random_program(seed, 8, turns)
    assert text == random_program(seed, 8, turns)[0]
    assert text.count("scf.for") == bool(turns)
    assert [d for d in judge(parse(text))[1] if d.severity == "error"] == []
    made = by_pto(text)
    assert "pto.kernel_kind = #pto.kernel_kind<vector>" in made
    verdict = judged(made, shapes, seed)
    assert (verdict.races, verdict.schedule) == ([], "")
    assert verdict.waits


def test_without_flags_the_sanitizer_and_a_schedule_tell():
    text, shapes = random_program(12, steps=8)
    lines = [line for line in by_pto(text).splitlines() if "_flag" not in line]
    verdict = judged("\n".join([*lines, ""]).replace("pto.barrier <PIPE_ALL>", ""), shapes, 12)
    assert verdict.races
