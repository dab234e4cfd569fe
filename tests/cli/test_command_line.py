"""Mistakes in a command line are findings, and no option is accepted and ignored."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from pto.cli import main as frame
from pto.cli.command_line import CPP, PYTHON, TEXT, CommandLine, language_of
from pto.cli.main import VERBS, main
from pto.target.defaults import DEFAULTS, Defaults

ADD = str(Path(__file__).parents[2] / "examples" / "add.pto")
KERNELS = """
import pto

SIZED = pto.Global[pto.f32, "n", 64]


@pto.kernel
def sized(x: SIZED, y: SIZED):
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64) * 2.0)


@pto.kernel
def wrong(x: SIZED, y: SIZED):
    pto.store(y, pto.load(x, 16, 64).to(pto.f8e4m3))


@pto.kernel
def unsized(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    pto.store(y, pto.load(x, 16, 64))
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project with three kernels and a C++ file."""
    (tmp_path / "k.py").write_text(KERNELS)
    (tmp_path / "k.cpp").write_text("")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    initial = Defaults()
    DEFAULTS.text, DEFAULTS.python = initial.text, initial.python
    DEFAULTS.device = initial.device


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["check", ADD, "--bogus"], "PTO-U013", "pto check has no option --bogus"),
        (["run", ADD, "--engin", "jit"], "PTO-U013", "did you mean `--engine`"),
        (["run", ADD, "more.pto"], "PTO-U013", "takes no further argument more.pto"),
        (["run", ADD, "--timeout", "soon"], "PTO-U013", "--timeout: 'soon' is no number"),
        (["run", ADD, "--seed", "1.5"], "PTO-U013", "--seed: '1.5' is no whole number"),
        (["check", ADD, "--level", "7"], "PTO-U013", "there is no '7'; it is 2, 3"),
        (["check", ADD, "--format", "xml"], "PTO-U013", "there is no 'xml'; it is text, json"),
        (["check"], "PTO-U013", "required: FILE"),
        (["cxx", "run"], "PTO-U001", "write `pto suite cxx` and `pto header`"),
        (["suite", "run"], "PTO-U013", "there is no 'run'; it is gym"),
        (["run", ADD, "--prof", "a5"], "PTO-U013", "--prof"),
        (["run", ADD, "--blocks", "2x2"], "PTO-U039", "2x2"),
        (["run", ADD, "--entry", "nobody"], "PTO-U030", "nobody"),
        (["run", ADD, "--arg", "nobody=3"], "PTO-U034", "nobody"),
        (["opt", ADD, "--pass", "nosuch"], "PTO-U273", "nosuch"),
        (["check", ADD, "--entry", "add"], "PTO-U280", "--entry is for"),
        (["check", ADD, "--arg", "foo=3"], "PTO-U280", "--arg is for"),
        (["check", ADD, "--blocks", "3"], "PTO-U280", "--blocks is for C++ kernels"),
        (["sync", ADD, "--arg", "foo=3"], "PTO-U280", "--arg is for Python kernels"),
        (["time", "k.py:sized", "-I", "include"], "PTO-U280", "-I is for C++ kernels"),
        (["run", ADD, "-D", "SIZE=3"], "PTO-U280", "-D is for C++ kernels"),
        (["run", "k.cpp", "--step"], "PTO-U280", "--step is for"),
        (["run", "k.cpp", "--schedule", "late"], "PTO-U280", "--schedule is for"),
        (["check", "k.cpp", "--deep"], "PTO-U280", "--deep is for"),
        (["sanitize", "k.cpp", "--automatic"], "PTO-U280", "--automatic is for"),
        (["sanitize", "k.py:sized", "--fix"], "PTO-U280", "--fix is for .pto programs"),
        (["check", ADD, "--fix"], "PTO-U232", "--fix needs --deep"),
        (["check", ADD, "-o", "x"], "PTO-U232", "--out needs --fix"),
        (["sanitize", ADD, "-o", "x"], "PTO-U232", "--out needs --fix"),
        (["run", ADD, "--trace", "x"], "PTO-U232", "--trace needs --time"),
        (["run", ADD, "--format", "html"], "PTO-U232", "--format html needs --time"),
    ],
    ids=lambda value: " ".join(value[:1] + value[2:]) if isinstance(value, list) else "",
)
def test_a_mistake_is_a_finding_in_every_format(
    words: list[str], code: str, told: str, capsys: Capture
):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error[{code}]: ") and told in err
    assert "usage:" not in err
    if "--format" not in words:
        assert main([*words, "--json"]) == 2
        found = json.loads(capsys.readouterr().out)["findings"]
        assert [each["code"] for each in found] == [code]
        assert main([*words, "--format=lines"]) == 2
        assert json.loads(capsys.readouterr().out)["code"] == code


@pytest.mark.parametrize(
    ("file", "language"),
    [("k.pto", TEXT), ("folder", TEXT), ("k.py", PYTHON), ("k.py:f", PYTHON), ("k.cce", CPP)],
)
def test_the_name_of_a_file_says_its_language(file: str, language: str):
    assert language_of(file) == language


def test_a_condition_is_about_options_that_were_given():
    parser = CommandLine(prog="pto test")
    parser.add_argument("file")
    for_cpp, needing = parser.add_argument("-I"), parser.add_argument("--page")
    timed = parser.add_argument("--time", action="store_true")
    parser.only_for(for_cpp, languages=(CPP,))
    parser.only_with(needing, timed, why="it shows times")
    assert parser.parse_args(["k.pto"]).I is None
    assert parser.parse_args(["k.cpp", "-I", "x", "--page", "y", "--time"]).page == "y"


# ---- commands


def test_check_of_a_python_file_checks_every_kernel(capsys: Capture):
    assert main(["check", "k.py", "--profile", "a2a3"]) == 1
    out = capsys.readouterr().out
    assert "k.py:15:18" in out and "PTO-U085" in out  # of `wrong`
    assert "k.py:unsized was not checked" in out and "3 files" in out
    assert main(["check", "k.py:sized"]) == 0


def test_check_of_a_python_file_without_a_kernel_is_an_error(folder: Path, capsys: Capture):
    (folder / "none.py").write_text("x = 1\n")
    assert main(["check", "none.py"]) == 2
    assert "none.py has no kernel" in capsys.readouterr().err


def test_sanitize_reports_the_race_and_prints_no_arrays(capsys: Capture):
    racy = str(Path(__file__).parents[1] / "observe" / "programs" / "bad" / "load_then_compute.pto")
    given = ["--arg", "x=range:128xf32", "--arg", "y=zeros:128xf32"]
    assert main(["sanitize", racy, *given, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert found[0]["code"].startswith("PTO-R")
    args = ["--arg", "x=rand:16x64", "--arg", "y=zeros:16x64"]
    assert main(["sanitize", "k.py:unsized", *args]) == 0
    assert capsys.readouterr().out.startswith("sanitizer: no findings")


def test_quiet_leaves_findings_only(capsys: Capture):
    assert main(["check", "k.py:sized", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["check", "k.py:wrong", "--profile", "a2a3", "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "PTO-U085" in out and "1 error in" not in out


# ---- settings


def test_a_project_sets_profile_and_chip(folder: Path, capsys: Capture):
    inner = folder / "inner"
    inner.mkdir()
    (folder / "pyproject.toml").write_text('[tool.pto]\ndevice = "910b2"\n')
    assert main(["check", "k.py:sized"]) == 0
    assert "profile a2a3 910b2" in capsys.readouterr().out
    assert main(["check", "k.py:sized", "--profile", "a5"]) == 0
    assert "profile a5 (" in capsys.readouterr().out
    assert main(["time", "k.py:sized", "--arg=x=zeros:64x64", "--arg=y=zeros:64x64"]) == 0
    assert capsys.readouterr().out.startswith("sized on 910b2")


def test_a_declared_profile_outweighs_the_project(folder: Path, capsys: Capture):
    (folder / "pyproject.toml").write_text('[tool.pto]\nprofile = "a2a3"\n')
    text = Path(ADD).read_text(encoding="utf-8")
    (folder / "add.pto").write_text(text)
    (folder / "five.pto").write_text(
        text.replace("module {", 'module attributes {"pto.target_arch" = "a5"} {', 1)
    )
    assert main(["check", "add.pto"]) == 0
    assert "profile a2a3" in capsys.readouterr().out
    assert main(["check", "five.pto"]) == 0
    assert "profile a5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[tool.pto]\nchip = "910b2"\n', "has no setting 'chip'"),
        ("[tool.pto]\nprofile = 3\n", "profile is a text, got 3"),
        ('[tool.pto]\nprofile = "a7"\n', "there is no profile `a7`"),
        ("[tool.pto\n", "is not TOML"),
    ],
)
def test_wrong_settings_are_findings(text: str, told: str, folder: Path, capsys: Capture):
    (folder / "pyproject.toml").write_text(text)
    assert main(["check", "k.py:sized"]) == 2
    said = capsys.readouterr().err
    assert told in said and ("PTO-U014" in said or "PTO-U020" in said)


# ---- completion


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pto san", "sanitize"),
        ("pto check --all", "--all-profiles"),
        ("pto time k.pto --device 950dt", "950dt 950dt_9572 950dt_9582"),
        ("pto run k.pto --engine r", "reference"),
    ],
)
def test_bash_completes(words: str, expected: str, capsys: Capture):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    typed = words.split()
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _pto; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.split()) == expected.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_completed_in_a_script_that_parses(
    shell: str, folder: Path, capsys: Capture
):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name in VERBS:
        for action in frame.verb_parser(name, frame.load(name))._actions:
            for option in action.option_strings:
                fish = option.replace("--", "-l ") if "--" in option else f"-s {option[1:]}"
                assert (fish if shell == "fish" else option) in script, (name, option)
    if which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script is NOT parsed here")
    (folder / "script").write_text(script)
    subprocess.run([shell, "-n", str(folder / "script")], check=True)


def test_no_option_has_two_spellings():
    """`--out` is what a command writes, in every command, and `-o` is short for it."""
    for name in VERBS:
        for action in frame.verb_parser(name, frame.load(name))._actions:
            if isinstance(action, argparse._SubParsersAction):
                continue
            names = action.option_strings
            assert len([word for word in names if word.startswith("--")]) <= 1, (name, names)
            if "-o" in names or "--out" in names:
                assert names == ["-o", "--out"], (name, names)
