"""One program after the other: every case ends in one result that says what happened."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pto.core.selection import select
from pto.gym.cases import find_programs
from pto.gym.runner import Options, Runner
from pto.gym.scripts import Scripts
from pto.suite.result import Result
from tests.gym import checkout as miniature

SUM = Path("examples/tileop/src/testcase/sum")
SCALE = Path("examples/pto/micro-op/scaling/scale")
Results = Callable[..., dict[str, Result]]


@pytest.fixture
def results(checkout: Path, scripts: Scripts, tmp_path: Path, cxx: None) -> Results:
    """Run the miniature with an engine; the results by case."""

    def run(launch: Callable[..., None] = miniature.launch, k: str = "") -> dict[str, Result]:
        runner = Runner(scripts, launch, Options())
        found: list[Result] = []
        for program in find_programs(checkout, select(k)):
            work = tmp_path / "work" / program.name
            work.mkdir(parents=True)
            found += runner.run(program, select(k), work)
        assert len({r.name for r in found}) == len(found)
        return {r.name: r for r in found}

    return run


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_cases_pass_by_their_own_judges(results: Results):
    found = results()
    assert list(found) == miniature.NAMES
    assert {r.status for r in found.values()} == {"passed"}
    assert {r.diagnostics for r in found.values()} == {()}
    assert all(r.target.startswith("profile a5") for r in found.values())


def test_only_what_is_asked_for_is_run(results: Results):
    assert list(results(k="2x16")) == ["tileop/sum/f32_2x16_part"]


def test_an_engine_that_does_nothing_fails_every_case(results: Results):
    found = results(miniature.launch_nothing)
    assert {(r.status, r.outcome) for r in found.values()} == {("failed", "compare")}


def test_the_first_wrong_element_is_named(results: Results):
    found = results(miniature.launch_wrong, k="sum")
    bad, good = found["tileop/sum/f32_4x8"], found["tileop/sum/f32_2x16_part"]
    assert good.status == "passed"
    assert (bad.status, bad.outcome) == ("failed", "compare")
    rejected = bad.facts["difference"]
    assert rejected.index == (1, 5)  # element 13 of 4 x 8
    assert float(rejected.got) == float(rejected.expected) + 1
    assert (rejected.differing, rejected.size) == (1, 32)
    assert bad.diagnostics[0].code == "PTO-U067"
    assert "element [1, 5] is" in bad.diagnostics[0].message
    assert "f32_4x8 differs" in bad.diagnostics[0].notes[0].message


def one(results: Results, launch: Callable[..., None] = miniature.launch) -> Result:
    return results(launch)["pto/micro-op/scaling/scale"]


@pytest.mark.parametrize(
    ("name", "old", "new", "code", "words"),
    [
        ("main.cpp", "size_t nSize", "clas Q {}; size_t nSize", "PTO-U062", "clas"),
        ("main.cpp", "aclrtFree(v1Device);", "aclrtNobody();", "PTO-U062", "aclrtNobody"),
        ("main.cpp", "return rc;", "return 4;", "PTO-U063", "failed with code 4"),
        ("main.cpp", 'WriteFile("./v2.bin", v2Host, size);', "", "PTO-U063", "no output file"),
        ("main.cpp", "LaunchScale(v1Device, v2Device, n, stream);", "", "PTO-U063", "no kernel"),
        ("launch.cpp", "uint16_t factor", "Unheard factor", "PTO-U062", "Unheard"),
        ("launch.cpp", "scale_kernel", "scaled_kernel", "PTO-U068", "no @scaled_kernel"),
        (
            "golden.py",
            "import argparse",
            "import nobody",
            "PTO-U065",
            "golden.py ended with code 1",
        ),
        ("compare.py", "if not", "1 / 0\nif not", "PTO-U066", "compare.py ended with code 1"),
    ],
)
def test_a_case_that_cannot_be_run_says_why_and_the_others_go_on(
    checkout: Path, results: Results, name: str, old: str, new: str, code: str, words: str
):
    edit(checkout / SCALE / name, old, new)
    found = results()
    bad = found.pop("pto/micro-op/scaling/scale")
    assert bad.status == "not run"
    assert bad.diagnostics[0].code == code
    assert words in bad.diagnostics[0].message
    assert {r.status for r in found.values()} == {"passed"}


def test_the_notes_show_what_a_script_said(checkout: Path, results: Results):
    edit(checkout / SCALE / "golden.py", "import argparse", "import nobody")
    notes = [note.message for note in one(results).diagnostics[0].notes]
    assert "ModuleNotFoundError: No module named 'nobody'" in notes


def test_a_program_that_does_not_parse_fails_its_cases(checkout: Path, results: Results):
    edit(checkout / SUM / "sum.pto", "return", "retrun")
    found = results(k="sum")
    assert {(r.status, r.outcome) for r in found.values()} == {("failed", "parse")}
    assert all(r.diagnostics[0].loc is not None for r in found.values())


def test_an_error_in_one_function_leaves_the_other_cases_alone(checkout: Path, results: Results):
    kernel = checkout / SUM / "sum.pto"
    head, _, tail = kernel.read_text().partition("return")
    kernel.write_text(head + "pto.set_flag[<PIPE_V>, <PIPE_V>, <EVENT_ID0>]\n    return" + tail)
    found = results(k="sum")
    bad = found["tileop/sum/f32_4x8"]
    assert (bad.status, bad.outcome) == ("failed", "check")
    assert bad.diagnostics[0].loc is not None
    assert found["tileop/sum/f32_2x16_part"].status == "passed"


def test_a_defect_of_the_engine_fails_the_case_and_says_where(results: Results):
    bad = one(results, miniature.launch_broken)
    assert (bad.status, bad.outcome) == ("failed", "run")
    assert bad.diagnostics[0].code == "PTO-U069"
    assert "IndexError: lane 64 of 64" in bad.diagnostics[0].message
    assert "launch_broken" in bad.diagnostics[0].notes[-1].message


def test_a_row_without_data_and_data_without_a_row_are_told(checkout: Path, results: Results):
    edit(checkout / SUM / "cases.py", '"f32_2x16_part"', '"f32_2x16_renamed"')
    found = results(k="sum")
    row, data = found["tileop/sum/f32_2x16_part"], found["tileop/sum/f32_2x16_renamed"]
    assert (row.status, row.diagnostics[0].code) == ("not run", "PTO-U065")
    assert (data.status, data.diagnostics[0].code) == ("not run", "PTO-U064")
    assert found["tileop/sum/f32_4x8"].status == "passed"


def test_a_table_program_without_a_table_is_told(checkout: Path, results: Results):
    edit(checkout / SUM / "main.cpp", "const char *name;", "const char *label;")
    edit(checkout / SUM / "main.cpp", "tc.name", "tc.label")
    edit(checkout / SUM / "main.cpp", "].name", "].label")
    found = results(k="sum")
    assert [(r.status, r.diagnostics[0].code) for r in found.values()] == [("not run", "PTO-U063")]


def test_an_incomplete_case_is_one_result(checkout: Path, results: Results):
    (checkout / SCALE / "launch.cpp").unlink()
    bad = one(results)
    assert (bad.status, bad.diagnostics[0].code) == ("not run", "PTO-U064")


def test_the_checkout_is_only_read(checkout: Path, results: Results):
    before = sorted(checkout.rglob("*"))
    results()
    assert sorted(checkout.rglob("*")) == before
