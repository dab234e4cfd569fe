"""How results are told."""

import json

from pto.core.errors import Diagnostic, Loc
from pto.core.render import Sources
from pto.suite import report
from pto.suite.result import RejectedElement, Result

LINE = Diagnostic("PTO-T001", "wrong type", Loc("k.pto", 2, 3))
WRONG = RejectedElement((3, 7), "1.5", "2.5", 4, 64)
RESULTS = [
    Result("a/x", "a/x", "a", "passed", "", 0.5),
    Result("b/y", "b", "b", "failed", "check", 0.25, (LINE,)),
    Result("b/z", "b", "b", "failed", "check", 0.25, (LINE,)),
    Result(
        "b/w",
        "b",
        "b",
        "failed",
        "compare",
        1.0,
        (Diagnostic("PTO-U067", str(WRONG)),),
        facts={"difference": WRONG},
    ),
    Result("c/v", "c/v", "c", "not run", "read", 0.0, (Diagnostic("PTO-U064", "no launch"),)),
]


def plain(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for _, text in pieces)


def test_the_table_counts_by_family_and_in_all():
    rows = [line.split() for line in plain(report.table(RESULTS, "family")).splitlines()]
    assert rows[0] == ["family", "passed", "failed", "not", "run", "time"]
    assert rows[1] == ["a", "1", ".", ".", "0.50", "s"]
    assert rows[2] == ["b", ".", "3", ".", "1.50", "s"]
    assert rows[3] == ["c", ".", ".", "1", "0.00", "s"]
    assert rows[-1] == ["all", "1", "3", "1", "2.00", "s"]


def test_cases_that_fail_alike_are_told_together():
    sources = Sources({"k.pto": "module {\n  pto.tadd\n}"})
    blocks = [plain(block) for block in report.failures(RESULTS, sources)]
    assert len(blocks) == 3
    assert "FAILED (check) b/y\n  and b/z\n" in blocks[0]
    assert "2 |   pto.tadd" in blocks[0]
    assert "element [3, 7] is 1.5, expected 2.5; 4 of 64 elements differ" in blocks[1]
    assert "NOT RUN (read) c/v" in blocks[2]


def test_the_summary_tells_counts_and_engine():
    lines = plain(report.summary(RESULTS, "reference", 2.0)).strip().splitlines()
    assert lines == [
        "1 passed, 3 failed, 1 not run of 5 cases in 2.0 s (engine reference)",
        "failed: 2 check, 1 compare",
        "not run: 1 read",
    ]


def test_json_holds_everything():
    data = json.loads(report.as_json(RESULTS, 2.0, engine="reference"))
    assert data["engine"] == "reference"
    assert data["totals"] == {"passed": 1, "failed": 3, "not run": 1, "skipped": 0}
    assert data["groups"]["b"]["failed"] == 3
    assert [case["name"] for case in data["cases"]] == [r.name for r in RESULTS]
    assert data["cases"][1]["findings"][0]["loc"]["line"] == 2
    assert data["cases"][3]["difference"]["index"] == [3, 7]
    assert "difference" not in data["cases"][0]
