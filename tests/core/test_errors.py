"""Findings as text with carets, JSON and SARIF; every expectation is written by hand."""

import json
from pathlib import Path

import pytest

from pto.core.errors import Diagnostic, Loc, Note, PtoError, fail, nearest
from pto.core.render import Sources, as_json, as_sarif, pieces, text

PROGRAM = "func.func @f() {\n  pto.tadd ins(%a, %b) outs(%c)\n  return\n}\n"
SOURCES = Sources({"f.pto": PROGRAM})

FINDING = Diagnostic(
    "PTO-S003",
    "all tiles share one valid region: src1 is 8x8, dst is 8x16",
    Loc("f.pto", 2, 20, 22),
    notes=(
        Note("dst was given its valid region here", Loc("f.pto", 1, 11, 13)),
        Note("the iteration domain is the destination's valid region"),
    ),
    help="set the valid region of %b to 8x16",
)


def test_text_points_a_caret_at_the_place():
    assert text([FINDING], SOURCES) == (
        "error[PTO-S003]: all tiles share one valid region: src1 is 8x8, dst is 8x16\n"
        "  --> f.pto:2:20\n"
        "2 |   pto.tadd ins(%a, %b) outs(%c)\n"
        "  |                    ^^\n"
        "   = note: dst was given its valid region here\n"
        "  --> f.pto:1:11\n"
        "1 | func.func @f() {\n"
        "  |           --\n"
        "   = note: the iteration domain is the destination's valid region\n"
        "   = help: set the valid region of %b to 8x16\n"
    )


def test_text_separates_findings_by_a_blank_line():
    two = [Diagnostic("PTO-T001", "one"), Diagnostic("PTO-T002", "two", severity="warning")]
    assert text(two) == "error[PTO-T001]: one\n\nwarning[PTO-T002]: two\n"


def test_text_of_a_file_that_is_gone_still_names_the_place():
    gone = Diagnostic("PTO-P001", "unreadable", Loc("no/such/file.pto", 3, 4))
    assert text([gone]) == "error[PTO-P001]: unreadable\n  --> no/such/file.pto:3:4\n"


def test_a_line_outside_the_file_is_not_drawn():
    late = Diagnostic("PTO-P001", "late", Loc("f.pto", 99, 1))
    assert text([late], SOURCES) == "error[PTO-P001]: late\n  --> f.pto:99:1\n"


def test_source_is_read_from_disk_when_nobody_gave_it(tmp_path: Path):
    path = tmp_path / "k.pto"
    path.write_text("ab\ncd\n", encoding="utf-8")
    shown = text([Diagnostic("PTO-P001", "bad", Loc(str(path), 2, 2))])
    assert shown.endswith("2 | cd\n  |  ^\n")


def test_a_caret_never_runs_past_its_line():
    wide = Diagnostic("PTO-P001", "wide", Loc("x", 1, 3, 400))
    assert text([wide], Sources({"x": "abcde"})).endswith("1 | abcde\n  |   ^^^\n")


def test_tabs_keep_the_caret_below_its_letter():
    tab = Diagnostic("PTO-P001", "tab", Loc("x", 1, 2, 3))
    assert text([tab], Sources({"x": "\tz"})).endswith("1 |  z\n  |  ^\n")


def test_a_very_long_line_is_cut_around_the_caret():
    source = "." * 5000 + "#" + "." * 5000
    shown = text([Diagnostic("PTO-P001", "long", Loc("x", 1, 5001))], Sources({"x": source}))
    line, caret = shown.split("\n")[2:4]
    assert len(line) < 200
    assert line[caret.index("^")] == "#"


def test_pieces_joined_are_the_plain_text():
    assert "".join(part for _, part in pieces(FINDING, SOURCES)) == text([FINDING], SOURCES)
    assert pieces(FINDING, SOURCES)[0] == ("error", "error[PTO-S003]")


def test_json_holds_the_finding_and_its_header():
    assert json.loads(as_json([FINDING], profile="a5")) == {
        "profile": "a5",
        "findings": [
            {
                "code": "PTO-S003",
                "severity": "error",
                "message": "all tiles share one valid region: src1 is 8x8, dst is 8x16",
                "loc": {"file": "f.pto", "line": 2, "col": 20, "end": 22},
                "notes": [
                    {
                        "message": "dst was given its valid region here",
                        "loc": {"file": "f.pto", "line": 1, "col": 11, "end": 13},
                    },
                    {
                        "message": "the iteration domain is the destination's valid region",
                        "loc": None,
                    },
                ],
                "help": "set the valid region of %b to 8x16",
            }
        ],
    }


def test_sarif_has_the_shape_code_hosts_read():
    warning = Diagnostic("PTO-M002", "close to full", Loc("dir\\g.pto", 7), severity="warning")
    document = json.loads(as_sarif([FINDING, warning], version="1.2.3"))
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    assert run["tool"]["driver"] == {
        "name": "pto",
        "version": "1.2.3",
        "rules": [{"id": "PTO-M002"}, {"id": "PTO-S003"}],
    }
    first, second = run["results"]
    assert first == {
        "ruleId": "PTO-S003",
        "ruleIndex": 1,
        "level": "error",
        "message": {
            "text": "all tiles share one valid region: src1 is 8x8, dst is 8x16"
            " (set the valid region of %b to 8x16)"
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "f.pto"},
                    "region": {"startLine": 2, "startColumn": 20, "endColumn": 22},
                }
            }
        ],
        "relatedLocations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "f.pto"},
                    "region": {"startLine": 1, "startColumn": 11, "endColumn": 13},
                },
                "message": {"text": "dst was given its valid region here"},
            }
        ],
    }
    assert second["level"] == "warning"
    [place] = second["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "dir/g.pto"},
        "region": {"startLine": 7, "startColumn": 1},
    }


def test_a_finding_without_a_place_has_no_sarif_location():
    [run] = json.loads(as_sarif([Diagnostic("PTO-U001", "what?")], "1"))["runs"]
    assert run["results"][0]["locations"] == []


def test_fail_builds_an_error_with_its_code_and_one_line():
    error = fail("PTO-L001", "no layout `NY`", loc=Loc("k.pto", 4, 9), help="did you mean `NZ`?")
    assert isinstance(error, PtoError)
    assert error.code == "PTO-L001"
    assert str(error) == "k.pto:4:9: error[PTO-L001]: no layout `NY`"
    assert error.diagnostics[0].help == "did you mean `NZ`?"


def test_an_error_carries_every_finding():
    error = PtoError(Diagnostic("PTO-T001", "one"), Diagnostic("PTO-T002", "two"))
    assert error.code == "PTO-T001"
    assert str(error) == "error[PTO-T001]: one\nerror[PTO-T002]: two"


def test_at_gives_a_place_once():
    here, there = Loc("a", 1), Loc("b", 2)
    placed = Diagnostic("PTO-T001", "x").at(here)
    assert placed.loc == here
    assert placed.at(there).loc == here


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("taddd", "did you mean `tadd`?"),
        ("tad", "did you mean `tadd`?"),
        ("zzzzzz", None),
    ],
)
def test_nearest_names_close_words_only(word: str, advice: str | None):
    assert nearest(word, ["tadd", "texp", "vlds"]) == advice
