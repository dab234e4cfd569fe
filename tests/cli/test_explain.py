"""`pto explain`: spelling of codes, the listing, the page in a pipe."""

import re
from pathlib import Path

import pytest

import pto
from pto.cli.explain import codes, normal_form
from pto.cli.main import main
from pto.core.errors import AREAS

Capture = pytest.CaptureFixture[str]
PAGES = Path(pto.__file__).parent / "explain"


@pytest.mark.parametrize("typed", ["PTO-U002", "pto-u002", "u002", "U2", "[PTO-U002]"])
def test_a_code_may_be_typed_in_many_ways(typed: str, capsys: Capture):
    assert normal_form(typed) == "PTO-U002"
    assert main(["explain", typed]) == 0
    assert capsys.readouterr().out.startswith("# PTO-U002: ")


def test_a_page_has_the_rules_of_its_code_and_what_its_wrong_program_is_told(capsys: Capture):
    assert main(["explain", "PTO-T077"]) == 0
    said = capsys.readouterr().out
    assert "\n- arith.select: expects one type for result, true_value and false_value\n" in said
    _, wrong, right = re.split("\n## (?:Wrong|Right)\n", said)
    assert "%y = arith.select %c, %a, %b : i32" in wrong
    assert "error[PTO-T077]: 'arith.select' op expects one type for" in wrong
    assert "arith.trunci" in right and "error[" not in right


def test_an_unknown_code_names_near_ones(capsys: Capture):
    assert main(["explain", "U099"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error[PTO-U002]: there is no code `U099`\n   = help: did you mean")


def test_what_is_no_code_at_all_is_pointed_to_the_list(capsys: Capture):
    assert main(["explain", "../../etc/passwd"]) == 2
    assert "`pto explain` lists every code" in capsys.readouterr().err


def test_the_listing_names_every_code_under_its_area(capsys: Capture):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  PTO-U001  no such command" in lines
    assert lines.index(AREAS["U"]) < lines.index("  PTO-U001  no such command")
    listed = [line.split()[0] for line in lines if line.startswith("  PTO-")]
    assert sorted(listed) == sorted(path.stem for path in PAGES.glob("*.md"))
    assert listed == codes()
