"""`pto run --schedule` as a person uses it."""

from __future__ import annotations

import pytest

from pto.cli.main import main
from tests.observe.test_mutation import PROGRAMS

RACY = str(PROGRAMS / "bad" / "load_then_compute.pto")
ARGUMENTS = ("--arg", "x=ones:128xf32", "--arg", "y=zeros:128xf32", "--print")


def test_a_race_shows_and_the_schedule_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Ones plus one are two; a load that comes too late leaves zeros, and one more is one."""
    assert main(["run", RACY, *ARGUMENTS]) == 0
    plain = capsys.readouterr().out
    assert "now 2.0 to 2.0" in plain
    assert "schedule" not in plain
    assert main(["run", RACY, *ARGUMENTS, "--schedule", "late"]) == 0
    late = capsys.readouterr().out
    assert "now 1.0 to 1.0" in late
    assert late.split("\n")[0].endswith("1 block, schedule late")


def test_the_seed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", RACY, *ARGUMENTS, "--schedule", "random:12"]) == 0
    assert "schedule random:12" in capsys.readouterr().out


def test_a_program_without_flags_keeps_its_order_and_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["run", str(PROGRAMS / "auto.pto"), "--arg", "x=ones", "--arg", "y=zeros"]
    assert main([*words, "--schedule", "early"]) == 0
    out = capsys.readouterr().out
    assert "schedule program: no flag, barrier or event anywhere" in out
    assert "now 0.5 to 0.5" in out


def test_an_unknown_schedule_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", RACY, *ARGUMENTS, "--schedule", "soon"]) == 2
    assert "PTO-U230" in capsys.readouterr().err


def test_a_watched_run_takes_no_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", RACY, *ARGUMENTS, "--schedule", "late", "--sanitize"]) == 2
    assert "not allowed with" in capsys.readouterr().err
