"""Switches of a run: options first, then the environment, then the default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.run.launch.engine import DEFAULT, ENGINES, chosen_engine, wants_sanitizer

ADD = str(Path(__file__).parent.parent.parent / "examples" / "add.pto")
ARGS = [w for n in "abc" for w in ("--arg", f"{n}=ones:16x64xf32")] + ["--arg", "rows=16"]


def test_without_a_word_the_default_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PTO_ENGINE", raising=False)
    assert chosen_engine() == DEFAULT
    assert DEFAULT in ENGINES


def test_an_option_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PTO_ENGINE", "no such engine")
    assert chosen_engine("reference") == "reference"
    with pytest.raises(PtoError, match="PTO_ENGINE: there is no engine `no such engine`") as caught:
        chosen_engine()
    assert caught.value.code == "PTO-U072"
    assert "reference" in str(caught.value)


def test_an_unknown_engine_is_a_usage_error_of_the_command(capsys: pytest.CaptureFixture[str]):
    assert main(["run", ADD, *ARGS, "--engine", "refrence"]) == 2
    shown = capsys.readouterr().err
    assert "PTO-U072" in shown
    assert "did you mean `reference`?" in shown


def test_the_environment_chooses_the_engine_of_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PTO_ENGINE", "reference")
    assert main(["run", ADD, *ARGS]) == 0
    assert "engine reference" in capsys.readouterr().out
    monkeypatch.setenv("PTO_ENGINE", "warp")
    assert main(["run", ADD, *ARGS]) == 2


@pto.kernel
def thirds(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)
    isa.tmuls(t, t, 1 / 3)
    isa.tstore(y, t)


def test_the_environment_chooses_the_engine_of_a_kernel(monkeypatch: pytest.MonkeyPatch):
    x = np.linspace(0, 1, 512, dtype=np.float32).reshape(8, 64)
    for engine in ENGINES:
        monkeypatch.setenv("PTO_ENGINE", engine)
        y = np.zeros_like(x)
        assert thirds(x, y).engine == engine
        assert np.array_equal(y, x * np.float32(1 / 3))
    monkeypatch.setenv("PTO_ENGINE", "warp")
    assert thirds.run(x, y, engine="reference").engine == "reference"
    with pytest.raises(PtoError, match="PTO_ENGINE"):
        thirds(x, y)


@pytest.mark.parametrize(
    ("value", "wanted"), [(None, False), ("", False), ("0", False), ("1", True), ("yes", True)]
)
def test_the_sanitizer_is_asked_for_by_option_or_environment(
    value: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PTO_SANITIZE", raising=False)
    if value is not None:
        monkeypatch.setenv("PTO_SANITIZE", value)
    assert wants_sanitizer() is wanted
    assert wants_sanitizer(True)


def test_a_run_is_sanitized_when_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PTO_SANITIZE", "1")
    assert main(["run", ADD, *ARGS]) == 0
    assert "sanitizer: no findings" in capsys.readouterr().out
