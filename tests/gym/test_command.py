"""`pto suite gym` as a person runs it."""

import json
from pathlib import Path

import pytest

from pto.cli.main import main
from tests.gym.checkout import NAMES

pytestmark = pytest.mark.usefixtures("cxx")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch):
    """Choose the engine the workers use."""

    def choose(name: str) -> None:
        path = f"tests.gym.checkout:{name}"
        monkeypatch.setattr("pto.cli.suite._launcher", lambda args: path)

    return choose


def test_a_clean_run(checkout: Path, engine, capsys: pytest.CaptureFixture[str]):
    engine("launch")
    assert main(["suite", "gym", str(checkout), "-j", "2", "--engine", "reference"]) == 0
    out = capsys.readouterr().out
    assert "tileop/sum" in out
    assert "4 passed of 4 cases" in out
    assert "profile a5" in out
    assert "engine reference" in out


def test_a_failing_run(checkout: Path, engine, capsys: pytest.CaptureFixture[str]):
    engine("launch_wrong")
    assert main(["suite", "gym", str(checkout), "-k", "sum", "-j", "1"]) == 1
    out = capsys.readouterr().out
    assert "FAILED (compare) tileop/sum/f32_4x8" in out
    assert "element [1, 5] is" in out
    assert "1 passed, 1 failed of 2 cases" in out


def test_json(checkout: Path, engine, capsys: pytest.CaptureFixture[str]):
    engine("launch")
    assert main(["suite", "gym", str(checkout), "--json", "-j", "1", "--engine", "reference"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(c["name"], c["status"]) for c in data["cases"]] == [(n, "passed") for n in NAMES]
    assert data["engine"] == "reference"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-k", "a b"], "PTO-U061"),
        (["-k", "nothing"], "PTO-U061"),
        (["-j", "0"], "PTO-U061"),
        (["--timeout", "0"], "PTO-U061"),
    ],
)
def test_usage(checkout: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str):
    assert main(["suite", "gym", str(checkout), *words]) == 2
    assert code in capsys.readouterr().err


def test_an_unknown_profile_is_told_before_anything_runs(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["suite", "gym", str(checkout), "--profile", "a7"]) in (1, 2)
    shown = capsys.readouterr()
    assert "a7" in shown.err
    assert shown.out == ""


def test_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["suite", "gym", str(tmp_path)]) == 2
    assert "PTO-U060" in capsys.readouterr().err
