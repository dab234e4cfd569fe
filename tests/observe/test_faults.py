"""Planted faults are found with the right code at the right line; the right programs are clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.ir.text.parser import parse
from pto.observe import Verdict, sanitize
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.entry import entry_functions
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


# Found only where a profile reads flags otherwise (test_readings.py), or with several launches or
# ranks (test_streams.py).
_ELSEWHERE = {
    *("PTO-D208", "PTO-D210", "PTO-R041", "PTO-R042", "PTO-U233", "PTO-V211"),
    *(f"PTO-R03{n}" for n in range(1, 10)),
}


def test_every_kind_of_finding_has_a_fault() -> None:
    observe = Path(__file__).parents[2] / "pto" / "observe"
    told = {
        code
        for path in observe.glob("*.py")
        for code in re.findall(r"PTO-[A-Z]\d{3}", path.read_text(encoding="utf-8"))
    }
    planted = {code for fault in FAULTS for code, _ in fault.expected}
    assert told - planted <= _ELSEWHERE
