"""Older names of parameters, options and variables work, with a warning that names the new one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.core.renamed import renamed
from pto.run.launch.engine import wants_checks

ADD = Path(pto.__file__).parent.parent / "examples" / "add.pto"


@renamed(seconds="timeout")
def wait(what: str, *, timeout: float = 1.0) -> tuple[str, float]:
    return what, timeout


def test_a_parameter_under_its_older_name():
    assert wait("a", timeout=3.0) == ("a", 3.0)
    with pytest.warns(DeprecationWarning, match="`seconds=` is now `timeout=`") as told:
        assert wait("a", seconds=2.0) == ("a", 2.0)  # pyright: ignore
    assert told[0].filename == __file__
    assert wait.__name__ == "wait"


def test_launch_and_device_know_the_older_name():
    args = [np.ones((16, 64), np.float32) for _ in range(3)]
    with pytest.warns(DeprecationWarning, match="check_reads"):
        pto.launch(str(ADD), args=[*args, 16], engine="jit", checks=True)  # pyright: ignore
    with pytest.warns(DeprecationWarning, match="check_reads"):
        assert pto.Device("a5", checks=True).checks  # pyright: ignore


def test_the_environment_and_the_option_know_the_older_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    given = ["--arg", "a=rand", "--arg", "b=rand", "--arg", "c=zeros"]
    given += ["--arg", "rows=16", "--engine", "jit"]
    assert main(["run", str(ADD), *given, "--checks"]) == 0
    assert "`--checks` is now `--check-reads`" in capsys.readouterr().err
    assert not wants_checks()
    monkeypatch.setenv("PTO_CHECKS", "1")
    with pytest.warns(DeprecationWarning, match="PTO_CHECK_READS"):
        assert wants_checks()


def test_an_older_name_of_a_class_is_the_class_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="`pto.observe.Event` is now") as told:
        older = pto.observe.Event  # pyright: ignore[reportAttributeAccessIssue]
    assert older is pto.observe.InstructionEvent
    assert told[0].filename == __file__
