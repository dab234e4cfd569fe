"""Every fact of the headers of the chips has a rule that finds it, or a reason to need none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import main
from pto.core.errors import Diagnostic
from pto.ir.text.parser import parse
from pto.verify.program import judge
from tests.known import (
    headers_convert,
    headers_cube,
    headers_transfers,
    headers_vectors,
    headers_windows,
)
from tests.known.headers import Fact, program
from tests.known.headers_types import ASSERTED, PLAIN, Asserted

GROUPS = (headers_windows, headers_cube, headers_convert, headers_transfers, headers_vectors)
FACTS = [fact for group in GROUPS for fact in group.FACTS]
RULED = [(fact, profile) for fact in FACTS if fact.code for profile in fact.profiles.split()]
RIGHT = [(fact, profile) for fact in FACTS if fact.right for profile in fact.profiles.split()]


def found(call: str, profile: str) -> list[Diagnostic]:
    return judge(parse(program(call)), profile=profile)[1]


def named(cases: list[tuple[Fact, str]]) -> list[str]:
    return [f"{profile}: {fact.where.split(';')[0]} {fact.says}"[:90] for fact, profile in cases]


@pytest.mark.parametrize(("fact", "profile"), RULED, ids=named(RULED))
def test_a_call_that_a_header_refuses_or_changes_is_found(fact: Fact, profile: str):
    seen = {(d.code, d.severity) for d in found(fact.wrong, profile)}
    assert (fact.code, fact.severity) in seen, seen


@pytest.mark.parametrize(("fact", "profile"), RULED, ids=named(RULED))
def test_a_run_reports_it_too(fact: Fact, profile: str, tmp_path: Path, capsys: Any):
    path = tmp_path / "call.pto"
    path.write_text(program(fact.wrong))
    main(["run", str(path), "--profile", profile])
    assert f"{fact.severity}[{fact.code}]" in "".join(capsys.readouterr())


@pytest.mark.parametrize(("fact", "profile"), RIGHT, ids=named(RIGHT))
def test_a_call_close_by_has_no_finding(fact: Fact, profile: str):
    assert [d.message for d in found(fact.right, profile)] == []


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.where)
def test_a_fact_has_a_rule_or_a_reason(fact: Fact):
    assert bool(fact.code) != bool(fact.why), "either a code or a reason"
    assert not fact.code or (fact.profiles and fact.wrong and fact.right)


CHIPS = [(row, *chip) for row in ASSERTED for chip in row.types()]
BY_CHIP = pytest.mark.parametrize(
    ("row", "profile", "where", "types"),
    CHIPS,
    ids=[f"{profile}: {where} {row.call.split()[0]}" for row, profile, where, _ in CHIPS],
)


def _refused(call: str, profile: str) -> set[str]:
    """The codes of findings that say that a board does not run the call as it is written."""
    return {d.code for d in found(call, profile) if d.severity == "error" or d.code == "PTO-L066"}


@BY_CHIP
def test_a_call_takes_the_element_types_that_its_header_asserts(
    row: Asserted, profile: str, where: str, types: set[str]
):
    taken = {elem for elem in PLAIN if not _refused(row.of(elem), profile)}
    assert taken == types, where


@BY_CHIP
def test_tiles_elsewhere_and_without_rows_are_found(
    row: Asserted, profile: str, where: str, types: set[str]
):
    elem = next(elem for elem in PLAIN[::-1] if elem in types)
    for position in map(int, row.rows.split()):
        for change in ("mat", "DN", "NZ"):
            assert _refused(row.with_tile(elem, position, change), profile), (position, change)


@BY_CHIP
def test_tiles_of_other_valid_regions_are_found(
    row: Asserted, profile: str, where: str, types: set[str]
):
    elem = next(elem for elem in PLAIN[::-1] if elem in types)
    for position in map(int, row.valid.split()):
        for valid in ("valid=8x64", "valid=16x32"):
            assert _refused(row.with_tile(elem, position, valid), profile), (position, valid)
