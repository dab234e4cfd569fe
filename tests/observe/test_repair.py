"""Programs mended: only what was missing is put in, and what was put in makes them clean."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe import sanitize
from pto.observe.fixes.repair import Repair, repair
from pto.observe.replay import TrialRun
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.host import launch
from tests.observe.test_mutation import ARGS, PROGRAMS

BAD = PROGRAMS / "bad"


def given(name: str) -> tuple[str, list[Any]]:
    """The text of a bad program, and the arguments its first line asks for."""
    text = (BAD / f"{name}.pto").read_text(encoding="utf-8")
    words = re.search(r"// args: (.*)", text)
    module = parse(text)
    names = parse_args(words[1].split() if words else [])
    return text, build(parameters(*entry_functions(module, None)), names, 0)


def mended(text: str, args: list[Any]) -> Repair:
    module = parse(text)
    before = print_module(module)
    found = repair(module, [TrialRun(args, {})], text)
    assert print_module(module) == before
    return found


def added(before: str, after: str) -> list[str]:
    """Lines of the new text that the old has not; nothing may be gone."""
    lines = list(difflib.ndiff(before.split("\n"), after.split("\n")))
    assert not [line for line in lines if line.startswith("- ")]
    return [line[2:].strip() for line in lines if line.startswith("+ ")]


def flags(src: str, dst: str) -> tuple[str, str]:
    name = f'["PIPE_{src}", "PIPE_{dst}", "EVENT_ID0"]'
    return f"pto.set_flag{name}", f"pto.wait_flag{name}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("load_then_compute", flags("MTE2", "V")),
        ("compute_then_store", flags("V", "MTE3")),
        ("scope_load_after_store", ('pto.mem_bar "VST_VLD"',)),
        ("unprimed_loop", flags("V", "MTE2")),
    ],
)
def test_what_is_missing_is_put_in(name: str, expected: tuple[str, ...]) -> None:
    text, args = given(name)
    found = mended(text, args)
    assert added(text, found.text) == list(expected)
    assert found.left == ()
    assert len(found.done) == 1
    assert sanitize(parse(found.text), args=args).findings == ()


def test_an_unprimed_loop_is_primed_before_and_drained_after() -> None:
    text, args = given("unprimed_loop")
    lines = [line.strip() for line in mended(text, args).text.split("\n")]
    set_line, wait_line = flags("V", "MTE2")
    loop = next(i for i, line in enumerate(lines) if line.startswith("scf.for"))
    assert lines[loop - 1] == set_line
    assert lines[lines.index(wait_line, loop) - 1] == "}"


def test_several_races_are_mended_one_after_the_other() -> None:
    text, args = given("reuse_without_release")
    found = mended(text, args)
    assert len(found.done) == 2
    assert sorted(added(text, found.text)) == sorted(2 * [*flags("V", "MTE2"), *flags("MTE3", "V")])
    errors = [d for d in sanitize(parse(found.text), args=args).findings if d.severity == "error"]
    assert errors == []


def test_a_mended_program_gives_the_same_bits_under_every_schedule() -> None:
    text, args = given("reuse_without_release")
    module = parse(mended(text, args).text)
    outcomes: set[bytes] = set()
    for schedule in ("program", "early", "late", "random:1", "random:2"):
        copies = [np.copy(a) for a in args]
        launch(module, args=copies, schedule=schedule)
        outcomes.add(b"".join(a.tobytes() for a in copies))
    assert len(outcomes) == 1


def test_what_has_no_proven_fix_is_left_and_said() -> None:
    """Two blocks that store to one place: no flag of one agent orders them."""
    text, args = given("all_blocks_to_one_place")
    module = parse(text)
    found = repair(module, [TrialRun(args, {"blocks": 2})], text)
    assert found.done == ()
    assert [d.code for d in found.left] == ["PTO-R023"]
    assert found.text == text


@pytest.mark.parametrize("name", ["tiles", "double_buffer", "vector_scope"])
def test_every_single_deletion_that_is_an_error_can_be_mended(name: str) -> None:
    """Take a line with a flag out; the program that comes back is clean.

    A wait whose id is chosen at run time is not put back: which id to name is not known.
    """
    text = (PROGRAMS / f"{name}.pto").read_text(encoding="utf-8")
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if "_flag[" in line]
    assert places
    for at in places:
        broken = "\n".join(lines[:at] + lines[at + 1 :])
        found = mended(broken, ARGS[name]())
        assert found.left == (), (lines[at], found.done)


def test_a_program_that_is_in_order_stays_as_it_is() -> None:
    text = (PROGRAMS / "double_buffer.pto").read_text(encoding="utf-8")
    found = mended(text, ARGS["double_buffer"]())
    assert found == Repair((), text, ())


# ---- as a person does it


@pytest.fixture
def racy(tmp_path: Path) -> Path:
    path = tmp_path / "racy.pto"
    path.write_text((BAD / "load_then_compute.pto").read_text(encoding="utf-8"))
    return path


ARGUMENTS = ("--arg", "x=range:128xf32", "--arg", "y=zeros:128xf32")


def test_run_writes_a_copy_that_is_clean(racy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = racy.read_text()
    assert main(["sanitize", str(racy), *ARGUMENTS, "--fix"]) == 0
    out = capsys.readouterr().out
    assert "fixed set_flag(MTE2, V, 0) after line 17, wait_flag before line 18" in out
    assert "racy.fixed.pto written, re-run: clean" in out
    assert racy.read_text() == before
    copy = racy.with_suffix(".fixed.pto")
    assert main(["sanitize", str(copy), *ARGUMENTS]) == 0


def test_check_writes_where_it_is_told(racy: Path, tmp_path: Path) -> None:
    target = tmp_path / "mended.pto"
    assert main(["check", "--deep", "--fix", str(racy), "-o", str(target)]) == 0
    assert main(["check", "--deep", str(target)]) == 0


def test_what_cannot_be_mended_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = BAD / "all_blocks_to_one_place.pto"
    target = tmp_path / "mended.pto"
    words = ["sanitize", str(path), *ARGUMENTS, "--blocks", "2", "--fix"]
    assert main([*words, "-o", str(target)]) == 1
    assert "no proven fix" in capsys.readouterr().out
    assert not target.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sanitize", "{}", "-o", "x.pto"], "PTO-U232"),
        (["check", "{}", "--fix"], "PTO-U232"),
        (["check", "{}", "{}", "--deep", "--fix", "-o", "x.pto"], "PTO-U232"),
        (["check", "{}", "--deep", "--fix", "-o", "/no/such/folder/x.pto"], "PTO-U011"),
    ],
)
def test_usage(words: list[str], code: str, racy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word.format(racy) for word in words]) == 2
    assert code in capsys.readouterr().err
