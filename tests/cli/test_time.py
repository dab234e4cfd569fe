"""`pto time`, and `pto run --time`: what they print and write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pto.cli.main import main

ADD = [str(Path(__file__).parents[2] / "examples" / "add.pto"), "--arg", "rows=40", "--blocks", "3"]
ADD += [word for name in "abc" for word in ("--arg", f"{name}=ones:40x64xf32")]


@pytest.mark.parametrize("verb", [["time"], ["run", "--time"], ["run", "--time=data"]])
def test_both_verbs_tell_the_time(verb: list[str], capsys: pytest.CaptureFixture[str]):
    name, *option = verb
    assert main([name, *ADD, *option]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("add on 910b1, 3 blocks on 3 cores: ")


def test_every_chip(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *ADD, "--time", "--device", "all", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["times"]
    assert {"910b1", "910c"} <= {each["device"] for each in found}
    assert all(each["us"] > each["core_us"] > 0 for each in found)


def test_a_page_and_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    trace, page = tmp_path / "a.json", tmp_path / "a.html"
    outputs = ["--trace", str(trace), "--html", str(page), "--format", "html"]
    assert main(["run", *ADD, "--time", *outputs]) == 0
    assert json.loads(trace.read_text())["traceEvents"]
    assert page.read_text() in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--trace", "x"], ["--format", "html"]])
def test_a_timeline_needs_a_timed_run(option: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["run", *ADD, *option]) != 0
    assert "needs --time" in capsys.readouterr().err


def test_a_time_is_no_finding(capsys: pytest.CaptureFixture[str]):
    assert main(["run", *ADD, "--time", "--format", "sarif"]) == 2
    assert "PTO-U232" in capsys.readouterr().out
