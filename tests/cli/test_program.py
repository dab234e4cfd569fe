"""Kernels of Python files on the command line: found, given their arguments, traced, told about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main

Capture = pytest.CaptureFixture[str]

ONE = """\
from __future__ import annotations

from dataclasses import dataclass

import pto
from pto import isa
from beside import ROWS

print("executed as", __name__)


@dataclass
class Sizes:
    cols: int = 64


@pto.kernel(profile="a5")
def twice(x: pto.Global[pto.f32], y: pto.Global, add: pto.Scalar[pto.f32], kind: str = "no"):
    t = pto.tile(ROWS, Sizes().cols, pto.f32)
    isa.tload(t, x)
    isa.tadd(t, t, t)
    if kind == "yes":
        isa.tadds(t, t, add)
    isa.tstore(y, t)
"""
TWO = """\
import pto
from pto import isa


@pto.kernel(profile="a2a3")
def first(x: pto.Global[pto.f32]):
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)


@pto.kernel
def second(x: pto.Global[pto.f32]):
    isa.tstore(x, pto.tile(8, 64, pto.f16))


if __name__ == "__main__":
    raise RuntimeError("a command does not do this")
"""
GIVEN = ["--arg=x=range:5x64", "--arg=y=zeros:5x64xf32", "--arg=add=0.5"]
ADD, STORE = 21, 24  # lines


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    Path("beside.py").write_text("ROWS = 8\n")
    Path("one.py").write_text(ONE)
    Path("two.py").write_text(TWO)


def test_a_file_with_one_kernel_needs_no_name_and_runs(capsys: Capture) -> None:
    assert main(["run", "one.py", *GIVEN, "--out", "here"]) == 0
    said = capsys.readouterr()
    assert "@twice on profile a5" in said.out and "y            319 of 320" in said.out
    assert said.err == "executed as __pto__\n"
    wanted = 2 * np.arange(320, dtype=np.float32).reshape(5, 64)
    assert np.array_equal(np.load("here/y.npy"), wanted)


def test_constants_are_words_numbers_or_types_and_scalars_numbers() -> None:
    assert main(["run", "one.py:twice", *GIVEN, "--arg=kind=yes", "--out", "here"]) == 0
    wanted = 2 * np.arange(320, dtype=np.float32).reshape(5, 64) + np.float32(0.5)
    assert np.array_equal(np.load("here/y.npy"), wanted)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "two.py"], "PTO-U031]: which kernel is to be taken? two.py has first, second"),
        (["run", "two.py:thirst"], "PTO-U030]: two.py has no kernel thirst; it has first, second"),
        (["run", "beside.py"], "PTO-U030]: beside.py has no kernel"),
        (["run", "one.py"], "PTO-U035]: missing arguments: x: Global[f32]; y: Global; add: Sca"),
        (["run", "one.py", *GIVEN, "--arg=z=1"], "PTO-U034]: the kernel has no parameter z"),
        (["fmt", "--write", "one.py", *GIVEN], "PTO-U280]: --write writes .pto text"),
        (["fmt", "one.py", "two.py", *GIVEN], "PTO-U006]: 2 files to print"),
        (["check", "--deep", "--fix", "one.py", *GIVEN], "PTO-U280]: --fix is for .pto programs"),
        (["sanitize", "--fix", "one.py", *GIVEN], "PTO-U280]: --fix is for .pto programs"),
    ],
)
def test_what_cannot_be_chosen_is_said(words: list[str], told: str, capsys: Capture) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nimport no_such_module_x\n", "ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("def f(:\n", "this is not Python: "),
    ],
)
def test_a_file_that_fails_is_a_finding_at_its_line(text: str, told: str, capsys: Capture) -> None:
    Path("bad.py").write_text(text)
    assert main(["run", "bad.py:f"]) == 1
    said = capsys.readouterr().err
    assert "error[PTO-U281]: " in said and told in said
    assert f"bad.py:{2 if 'import' in text else 1}:" in said


def test_check_judges_it_for_each_profile_and_points_into_python(capsys: Capture) -> None:
    assert main(["check", "one.py", *GIVEN, "--all-profiles"]) == 0
    said = capsys.readouterr()
    assert said.out.count("accepted") == 3 and said.err.count("executed") == 1
    assert main(["check", "two.py:second", "--arg=x=zeros:8x64", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {(d["loc"]["file"], d["loc"]["line"]) for d in found} == {("two.py", 13)}


def test_other_profiles_and_devices_trace_it_again(capsys: Capture) -> None:
    for words, target in (
        (["--profile", "a2a3"], "profile a2a3"),
        (["--device", "910b1"], "910b1"),
    ):
        assert main(["plan", "one.py", *GIVEN, *words]) == 0
        assert target in capsys.readouterr().out
    assert main(["fmt", "one.py", *GIVEN, "--profile", "a2a3"]) == 0
    assert 'pto.target_arch = "a2a3"' in capsys.readouterr().out


def test_fmt_and_sync_print_programs_that_check_accepts(capsys: Capture) -> None:
    for verb in ("fmt", "sync"):
        assert main([verb, "one.py", *GIVEN]) == 0
        Path("made.pto").write_text(capsys.readouterr().out)
        assert main(["check", "made.pto"]) == 0
        capsys.readouterr()
    assert "pto.wait_flag" in Path("made.pto").read_text()


def test_time_and_sanitizer_name_python_lines(capsys: Capture) -> None:
    assert main(["time", "one.py", *GIVEN, "--device", "910b1"]) == 0
    said = capsys.readouterr().out
    assert "twice on 910b1" in said and f"one.py:{STORE}" in said
    assert main(["run", "one.py", *GIVEN, "--time"]) == 0
    capsys.readouterr()
    assert main(["run", "two.py:first", "--arg=x=zeros:8x64", "--sanitize"]) == 0
    assert "sanitizer: " in capsys.readouterr().out


def test_a_step_stops_at_a_line_of_python(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("p t\nc\n"))
    assert main(["run", "one.py", *GIVEN, "--step", str(ADD)]) == 0
    said = capsys.readouterr().out
    assert f"one.py:{ADD}:5\n{ADD} |     isa.tadd(t, t, t)" in said
    assert "valid 5x64" in said


def test_an_array_may_leave_its_element_type_to_the_program(capsys: Capture) -> None:
    assert main(["run", "one.py", *GIVEN[::2], "--arg=y=zeros:5x64"]) == 2
    assert "PTO-U036]: y: `zeros:5x64` needs an element type" in capsys.readouterr().err


NAMED = """\
import pto


@pto.kernel(profile="a5")
def copy(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"], by: int):
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    pto.store(y[i:, j:], pto.load(x[i:, j:], 16, 64) * float(by))
"""


def test_sizes_with_names_need_no_arrays_to_look_at_and_grids_have_axes(capsys: Capture) -> None:
    Path("named.py").write_text(NAMED)
    for verb in ("check", "plan", "fmt", "sync"):
        assert main([verb, "named.py", "--arg", "by=2"]) == 0
    capsys.readouterr()
    assert main(["check", "named.py", "--arg=by=2", "--arg=x=zeros:5x5"]) == 2
    assert "missing arguments: y: Global[f32, 'm', 'n']" in capsys.readouterr().err
    arrays = ["--arg=x=ones:40x100", "--arg=y=zeros:40x100", "--arg=by=3", "--out=here"]
    assert main(["run", "named.py", "--blocks", "3,2", *arrays]) == 0
    assert np.array_equal(np.load("here/y.npy"), np.full((40, 100), 3, np.float32))
    assert main(["time", "named.py", "--blocks", "3,2", *arrays[:3]]) == 0
    assert "6 blocks" in capsys.readouterr().out
    assert main(["run", "named.py", "--blocks", "3,b", *arrays]) == 2
