"""Planted faults are found with the right code at the right line; the right programs are clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.ir.text.parser import parse
from pto.observe import Verdict, sanitize
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args
from tests.observe.catalogue import Fault, Program, faults, programs

FAULTS = faults()
_ENOUGH = 200


def verdict_on(text: str, path: Path) -> Verdict:
    words = re.search(r"// args: (.*)", text)
    blocks = re.search(r"// blocks: (\d+)", text)
    module = parse(text, str(path))
    given = parse_args(words[1].split() if words else [])
    args = build(parameters(*entry_functions(module, None)), given, 0)
    return sanitize(module, args=args, blocks=int(blocks[1]) if blocks else 1, check=False)


@pytest.mark.parametrize("program", programs(), ids=str)
def test_the_right_program_is_clean(program: Program) -> None:
    found = [
        (d.code, d.loc.line if d.loc else 0)
        for d in verdict_on(program.text, program.path).findings
    ]
    assert found == []


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_fault_is_found_at_its_line(fault: Fault) -> None:
    """All that is expected, and no other error; a further warning is no mistake."""
    findings = verdict_on(fault.text, fault.path).findings
    found = {(d.code, d.loc.line if d.loc else 0) for d in findings}
    errors = {(d.code, d.loc.line if d.loc else 0) for d in findings if d.severity == "error"}
    assert set(fault.expected) <= found
    assert errors <= set(fault.expected)


def test_the_catalogue_is_large_and_names_no_fault_twice() -> None:
    assert len(FAULTS) >= _ENOUGH
    assert len({str(fault) for fault in FAULTS}) == len(FAULTS)


# Codes that need several launches or ranks, another reading of flags, data caches or work items:
# the file that has a program for each.
_ELSEWHERE = {
    "PTO-C002": "observe/timing/test_timing.py",
    "PTO-D208": "observe/test_readings.py",
    "PTO-D212": "observe/test_sanitize.py",
    "PTO-D210": "observe/test_readings.py",
    "PTO-D220": "observe/test_compare.py",
    "PTO-D221": "observe/test_compare.py",
    "PTO-D222": "observe/test_compare.py",
    "PTO-D223": "observe/test_compare.py",
    "PTO-R031": "observe/test_streams.py",
    "PTO-R032": "test_codes.py",
    "PTO-R033": "observe/test_streams.py",
    "PTO-R034": "observe/test_streams.py",
    "PTO-R035": "observe/test_streams.py",
    "PTO-R036": "observe/test_streams.py",
    "PTO-R037": "lang/test_kernel.py",
    "PTO-R046": "observe/test_streams.py",
    "PTO-R038": "observe/test_caches.py",
    "PTO-R039": "observe/test_caches.py",
    "PTO-R041": "known/test_simt.py",
    "PTO-R042": "known/test_simt.py",
    "PTO-R043": "observe/test_caches.py",
    "PTO-R044": "observe/test_caches.py",
    "PTO-R045": "observe/test_streams.py",
    "PTO-S073": "pto/bad/window.pto",
    "PTO-U008": "cli/test_surroundings.py",
    "PTO-U039": "observe/timing/test_timing.py",
    "PTO-U233": "observe/test_deep.py",
    "PTO-U360": "observe/timing/test_interval.py",
    "PTO-V230": "prove/test_questions.py",
    "PTO-V211": "observe/programs/bad/outside_valid.pto",
}
_TESTS = Path(__file__).parents[1]


def _codes(path: Path) -> set[str]:
    return set(re.findall(r"PTO-[A-Z]\d{3}", path.read_text(encoding="utf-8")))


def test_every_kind_of_finding_has_a_fault() -> None:
    observe = _TESTS.parent / "pto" / "observe"
    told = {code for path in observe.rglob("*.py") for code in _codes(path)}
    planted = {code for fault in FAULTS for code, _ in fault.expected}
    assert told - planted == set(_ELSEWHERE)
    for code, name in _ELSEWHERE.items():
        assert code in _codes(_TESTS / name), code
