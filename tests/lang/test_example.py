"""The example call in a kernel's docstring: what is taken of it, and what a wrong one gets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.lang.example import example_of

F32 = pto.Global[pto.f32]
SHAPE = (32, 64)


@pto.kernel
def plain(x: F32, n: int = 2) -> None:
    """
    >>> x = np.full(SHAPE, 3.0, np.float32)
    >>> other(x)
    >>> plain[1 + 1](x, n=4)
    >>> plain[5](x)
    """
    pto.store(x, pto.load(x, 16, 64) + float(n))


def other(x: object) -> None:
    """Called by the example, before the kernel."""
    assert isinstance(x, np.ndarray)
    x += 1.0


@pto.kernel
def by_shape(x: F32, n: int) -> None:
    """
    >>> t = by_shape.time((16, 64), 3, blocks=7, device="910b1")
    """


@pto.kernel
def none(x: F32) -> None:
    """Nothing here calls it: `>>>` alone is no example."""


def test_lines_before_the_call_are_executed_and_the_call_is_not():
    found = example_of(plain)
    assert found is not None and found.blocks == 2
    x, n = found.values
    assert x.shape == SHAPE and (x == 4.0).all() and n == 4


def test_shapes_stand_for_arrays_and_options_are_left_out():
    found = example_of(by_shape)
    assert found is not None and found.blocks == 7
    x, n = found.values
    assert x.shape == (16, 64) and x.dtype == np.float32 and not x.any() and n == 3


def test_a_docstring_without_a_call_has_no_example():
    assert example_of(none) is None


HEAD = """\
import numpy as np
import pto

X = pto.Global[pto.f32]


@pto.kernel(profile="a2a3")
def halve(x: X, y: X):
"""
BODY = """
    i = pto.block_idx() * 16
    pto.store(y[i:], pto.load(x[i:], 16, 64) * 0.5)
"""


def written(folder: Path, example: str) -> str:
    file = folder / "k.py"
    file.write_text(f'{HEAD}    """Half.\n\n    {example}\n    """{BODY}')
    return str(file)


def test_commands_take_it_where_no_argument_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file = written(
        tmp_path, ">>> halve[3](np.ones((40, 64), np.float32), np.zeros((40, 64), 'f4'))"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["time", "--json", file]) == 0
    assert json.loads(capsys.readouterr().out)["times"][0]["blocks"] == 3
    assert main(["time", "--json", "--blocks", "2", file]) == 0
    assert json.loads(capsys.readouterr().out)["times"][0]["blocks"] == 2
    assert main(["run", "--sanitize", file]) == 0
    assert "2,560 of 2,560 elements changed, now 0.5 to 0.5" in capsys.readouterr().out
    assert main(["check", file]) == 0
    assert main(["view", file]) == 0
    assert "TMULS(" in (tmp_path / "k.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (">>> halve[3](np.ones((40, 64)", "the example of halve is not Python"),
        (">>> halve[3](nowhere)", "NameError: name 'nowhere' is not defined"),
        (">>> halve[3](np.ones((40, 64), np.float32))", "missing a required argument: 'y'"),
        (">>> 1 / 0\n    >>> halve(1, 2)", "ZeroDivisionError"),
    ],
)
def test_a_mistake_in_it_is_a_finding_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], example: str, words: str
):
    assert main(["check", "--json", written(tmp_path, example)]) in (1, 2)
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert words in found["message"]
    assert found["loc"] is None or found["loc"]["line"] in (9, 11)
