"""The contract of every command: exit status 1 for a mistake in a program, 2 for one in the command
line, 3 for a defect; `--format json` and `lines` hold every finding; never a traceback."""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import pto
from pto.cli import findings, isa
from pto.cli import main as frame
from pto.cli.findings import FORMATS
from pto.cli.main import VERBS, main
from pto.core import processors
from pto.core.errors import Diagnostic, Loc
from pto.ir.text.comments import formatted
from pto.lang.stubs import files as stub_files

Capture = pytest.CaptureFixture[str]
ADD = Path("examples/add.pto").resolve()
GIVEN = [f"--arg={name}=zeros:16x64xf32" for name in "abc"] + ["--arg=rows=16"]

KERNELS = """
import pto

F = pto.Global[pto.f32, 16, 64]

@pto.kernel
def tanh(x: F, y: F):
    pto.store(y, pto.sinh(pto.load(x, 16, 64)))

@pto.kernel
def mask(x: F, y: F):
    t = pto.load(x, 16, 64)
    pto.store(y, pto.where(-(t > 0.0), t, 0.0))

@pto.kernel
def window(x: F, y: F):
    pto.store(y, pto.load(x[0:16, 0:64].flat, 64, 16))

def table():
    return {}["no such key"]

@pto.kernel
def raises(x: F, y: F):
    pto.store(y, pto.load(x, 16, table()))

@pto.kernel
def branch(x: F, y: F):
    if pto.load(x, 16, 64):
        pto.store(y, pto.load(x, 16, 64))

@pto.kernel(profile="a5")
def good(x: F, y: F):
    pto.store(y, pto.load(x, 16, 64))
"""
LINES = {"tanh": 8, "mask": 13, "window": 17, "raises": 20, "branch": 28}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.py").write_text(KERNELS)
    (tmp_path / "empty.pto").write_text("")
    (tmp_path / "bad.pto").write_text("module {\n  pto.tadd\n}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- exit status


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("verb", ["check", "run", "time", "fmt", "plan", "sync"])
def test_a_mistake_in_a_kernel(verb: str, name: str, capsys: Capture):
    words = ["--arg=x=zeros:16x64", "--arg=y=zeros:16x64"]
    assert main([verb, f"k.py:{name}", *words]) == 1
    said = "".join(capsys.readouterr())
    assert f"k.py:{LINES[name]}:" in said
    assert "Traceback" not in said and f"{os.sep}pto{os.sep}lang" not in said


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["run", "empty.pto"], 1, "PTO-U030"),
        (["time", "empty.pto"], 1, "PTO-U030"),
        (["check", "bad.pto"], 1, "PTO-P"),
        (["run", "bad.pto"], 1, "PTO-P"),
        (["run", "no.pto"], 2, "PTO-P004"),
        (["run", "no.py:k"], 2, "PTO-P004"),
        (["run", "no.cpp"], 2, "PTO-P004"),
        (["run", "zero\0byte.pto"], 2, "PTO-P004"),
        (["run", "k.py:nothing"], 2, "PTO-U030"),
        (["run", "k.py:good", "--profile", "a7"], 2, "PTO-U020"),
        (["run", "k.py:good", "--arg=x=zeros:16x64"], 2, "PTO-U035"),
        (["run", "k.py:good", "--arg=x=zeros:3x3", "--arg=y=zeros:16x64"], 2, "PTO-U219"),
        (["check", "k.py:good", "--device", "none"], 2, "PTO-U021"),
        (["check", "."], 1, "PTO-P"),
        (["suite", "gym", "."], 2, "PTO-U060"),
        (["suite", "models", "."], 2, "PTO-U060"),
        (["plan", "bad.pto"], 1, "PTO-P"),
    ],
)
def test_status(words: list[str], status: int, code: str, capsys: Capture):
    assert main(words) == status
    assert f"[{code}" in "".join(capsys.readouterr())


def test_a_location_makes_a_finding_of_usage_one_of_a_program():
    for code in ("PTO-U020", "PTO-U210"):
        assert Diagnostic(code, "").is_request
        assert not Diagnostic(code, "", Loc("k.py", 3)).is_request
    assert not Diagnostic("PTO-U243", "a compiler refuses it").is_request
    assert not Diagnostic("PTO-T001", "").is_request


def test_a_request_has_no_location_in_the_command_itself(capsys: Capture):
    """The entry point is a file too, and none of the user's."""
    command = [sys.executable, "-m", "pto", "run", "k.py:good", "--profile", "a7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[PTO-U020]: there is no profile `a7`\n   = help:")


def broken(args: argparse.Namespace) -> int:
    raise ZeroDivisionError("in our own code")


def test_a_defect_of_ours_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
):
    monkeypatch.setattr(frame.load("cache"), "run", broken)
    monkeypatch.setattr(frame, "_is_of_the_user", lambda error: False)
    monkeypatch.setattr("pto.lang.raised.user_step", lambda error: None)
    assert main(["cache"]) == 3
    said = capsys.readouterr().err
    assert "error[PTO-U009]: pto failed: ZeroDivisionError: in our own code" in said
    assert "test_contract.py" in said and "Traceback" not in said
    monkeypatch.setenv("PTO_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["cache"])


# ---- formats


def test_one_option_in_every_command_that_finds_something():
    without = {
        "lsp",
        "mcp",
        "layout",
        "cache",
        "explain",
        "header",
        "completion",
    }  # they print no findings
    for name in VERBS:
        parser = frame.verb_parser(name, frame.load(name))
        inside = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        verbs = {f"{name} {n}": p for a in inside for n, p in a.choices.items()} or {name: parser}
        for words, each in verbs.items():
            found = [a for a in each._actions if "--format" in a.option_strings]
            assert [tuple(a.choices or ())[:3] for a in found] == [FORMATS] * (words not in without)


FOUND = [
    ["check", "bad.pto"],
    ["check", "k.py:branch"],
    ["check", "--all-profiles", "bad.pto"],
    ["run", "bad.pto"],
    ["run", "empty.pto"],
    ["run", "k.py:mask", "--arg=x=zeros:16x64", "--arg=y=zeros:16x64"],
    ["time", "bad.pto"],
    ["plan", "bad.pto"],
    ["sync", "bad.pto"],
    ["opt", "--pass", "tidy", "bad.pto"],
    ["diff", "bad.pto", "bad.pto"],
    ["fmt", "bad.pto"],
    ["tune", "bad.pto"],
    ["isa", "no_such_instruction"],
    ["suite", "gym", "."],
    ["suite", "models", "."],
]


@pytest.mark.parametrize("words", FOUND, ids=" ".join)
def test_json_and_lines_hold_every_finding(words: list[str], capsys: Capture):
    status = main(words)
    text = "".join(capsys.readouterr())
    assert main([*words, "--format", "json"]) == status != 0
    whole = json.loads(capsys.readouterr().out)["findings"]
    assert whole and all(f"[{each['code']}]" in text for each in whole)
    assert main([*words, "--format", "lines"]) == status
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each for each in lines if "severity" in each] == whole


def test_json_of_all_files_where_one_fails(capsys: Capture):
    assert main(["check", "--json", "bad.pto", "k.py:branch", "k.py:good"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {each["loc"]["file"] for each in found["findings"]} == {"bad.pto", "k.py"}
    assert len(found["files"]) == 3


CLEAN: dict[str, list[str]] = {
    "run": ["run", str(ADD), *GIVEN],
    "sanitize": ["run", str(ADD), *GIVEN, "--sanitize"],
    "check": ["check", str(ADD)],
    "all": ["check", "--all-profiles", str(ADD)],
    "plan": ["plan", str(ADD)],
    "sync": ["sync", str(ADD)],
    "opt": ["opt", "--pass", "tidy", str(ADD)],
    "diff": ["diff", str(ADD), str(ADD)],
    "fmt": ["fmt", str(ADD)],
    "kernel": ["fmt", "k.py:good"],
    "time": ["time", str(ADD), *GIVEN],
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_command_is_one_object_without_findings(name: str, capsys: Capture):
    assert main([*CLEAN[name], "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == [] and len(found) > 1
    assert main([*CLEAN[name], "--format", "lines"]) == 0
    for line in capsys.readouterr().out.splitlines():
        json.loads(line)


WARNED = """module attributes {pto.target_arch = "a5"} {
  func.func @f() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    return
  }
}
"""


def test_warnings_of_a_run_are_findings(capsys: Capture):
    Path("warned.pto").write_text(WARNED)
    assert main(["run", "warned.pto"]) == 0
    assert "warning[PTO-D101]" in capsys.readouterr().err
    Path("again.pto").write_text(WARNED)  # a place is warned of once
    assert main(["run", "again.pto", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["severity"]) == ("PTO-D101", "warning")


def test_arrays_are_written_whatever_the_format(folder: Path):
    assert main(["run", str(ADD), *GIVEN, "--out", "made", "--format", "json"]) == 0
    assert np.load(folder / "made" / "c.npy").shape == (16, 64)


# ---- what a new user tries


def test_python_files_of_a_folder_are_named_and_not_executed(folder: Path, capsys: Capture):
    (folder / "src").mkdir()
    (folder / "src" / "mine.py").write_text("raise SystemExit('executed')")
    assert main(["check", "src"]) == 2
    said = capsys.readouterr().err
    assert "there is no .pto file below src; it has 1 of Python or C++" in said
    assert f"pto check src{os.sep}mine.py:NAME" in said
    (folder / "src" / "add.pto").write_text(ADD.read_text())
    assert main(["check", "src"]) == 0
    assert "1 file of Python or C++ not checked" in capsys.readouterr().err


ALIASED = """// what it is
!tile = !pto.tile_buf<vec, 16x64xf32>  // a tile
!same = !pto.tile_buf<vec, 16x64xf32>

func.func @f() {
  %a = pto.alloc_tile : !tile
  %s = "!pto.tile_buf<vec, 16x64xf32>"
  return
}
"""


def test_the_example_of_the_front_page_is_in_the_stable_form(capsys: Capture):
    assert main(["fmt", "--check", str(ADD)]) == 0
    assert capsys.readouterr().out == ""


def test_aliases_stay_and_those_with_two_meanings_do_not():
    text = ALIASED.replace('  %s = "!pto.tile_buf<vec, 16x64xf32>"\n', "")
    once = formatted(text)
    assert once.count("!pto.tile_buf<") == 2 and "alloc_tile : !tile" in once
    assert once.startswith("!tile = ") and "// what it is" in once and "// a tile" in once
    whole = formatted(text.replace("\n\nfunc", "\n\nmodule {\nfunc") + "}\n")
    assert whole.startswith("// what it is\n!tile = ")
    assert formatted(once) == once
    twice = text.replace("!same", "!tile").replace("64xf32>\n\n", "32xf32>\n\n")
    assert "= !pto" not in formatted(twice)
    assert "16x32xf32" in formatted(twice)


def test_a_bad_file_leaves_the_others_unwritten(folder: Path, capsys: Capture):
    good = "module {}\n"
    (folder / "a.pto").write_text(good)
    assert main(["fmt", "--write", "a.pto", "bad.pto"]) == 1
    assert (folder / "a.pto").read_text() == good
    assert main(["fmt", "--write", "a.pto"]) == 0
    assert (folder / "a.pto").read_text() != good


def test_coverage_looks_into_the_tests_of_the_checkout_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
):
    seen: list[Path] = []
    monkeypatch.setattr(isa, "_tested_names", lambda path: seen.append(path) or {"pto.tadd"})
    (folder / "tests").mkdir()
    assert main(["isa", "tadd", "--coverage"]) == 0
    assert seen == [Path(pto.__file__).parents[1] / "tests"]
    assert "tested" in capsys.readouterr().out.splitlines()[0]
    monkeypatch.setattr(isa, "_CHECKOUT", folder)
    assert main(["isa", "tadd", "--coverage"]) == 0
    assert len(seen) == 1
    assert "tested" not in capsys.readouterr().out.splitlines()[0]


def test_every_name_of_the_stub_exists():
    (stub,) = [text for path, text in stub_files().items() if path.parent.name == "pto"]
    names = [
        each.asname or each.name
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    ]
    public = [name for name in names if name != "*" and not name.startswith("_")]
    assert len(public) > 50
    assert [name for name in public if not hasattr(pto, name)] == []


def test_processes_are_as_many_as_the_affinity_allows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert processors.usable() == 3
    taken: list[Any] = []
    monkeypatch.setattr("pto.cxx.st.find", lambda *words: [])
    monkeypatch.setattr("pto.suite.pool.run", lambda suite, jobs, *rest: taken.append(jobs) or [])
    main(["suite", "cxx", "."])
    assert taken == [3]


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "pto", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"pto {pto.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [["suite", "gym"], ["suite", "models"], ["suite", "cxx"], ["suite", "scenes"], ["graph"]],
)
def test_help_says_that_a_checkout_has_the_user_s_rights(words: list[str], capsys: Capture):
    assert main([*words, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "with your rights" in said and "trust" in said


def test_a_line_is_written_at_once(monkeypatch: pytest.MonkeyPatch):
    """`print` writes a text and its end apart, so two threads could share a line."""

    class Written(io.StringIO):
        parts: ClassVar[list[str]] = []

        def write(self, s: str, /) -> int:
            self.parts.append(s)
            return len(s)

    monkeypatch.setattr(sys, "stdout", Written())
    findings.line({"case": 1})
    assert Written.parts == ['{"case": 1}\n']


@pytest.mark.parametrize("grid", ["2x2", "a", "1.5", "", "4,"])
def test_a_grid_that_is_no_grid_is_a_finding(grid: str, capsys: Capture):
    assert main(["run", str(ADD), *GIVEN, "--blocks", grid]) == 2
    said = capsys.readouterr().err
    assert (
        f"error[PTO-U039]: a grid is a number of blocks, or numbers with commas, not `{grid}`"
        in said
    )
    assert "usage:" not in said


def test_a_program_without_functions_is_warned_of(capsys: Capture):
    for text in ("", "module {}", "// nothing"):
        Path("empty.pto").write_text(text)
        assert main(["check", "empty.pto"]) == 0
        assert "warning[PTO-U030]: the program has no function" in capsys.readouterr().out


def test_a_file_that_is_no_array_says_why(folder: Path, capsys: Capture):
    np.save("whole.npy", np.ones((16, 64), np.float32))
    data = (folder / "whole.npy").read_bytes()
    (folder / "cut.npy").write_bytes(data[:1000])
    (folder / "other.npy").write_bytes(b"\x80\x04 text")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez("many.npz", np.ones(3))
    reasons = {
        "cut.npy": "the file is cut off or damaged",
        "other.npy": "it is not a .npy file",
        "objects.npy": "it holds objects of Python",
        "many.npz": "an archive of several arrays",
        "none.npy": "No such file or directory",
    }
    for name, reason in reasons.items():
        assert main(["run", str(ADD), *GIVEN[1:], f"--arg=a={name}"]) == 2
        said = capsys.readouterr().err
        assert "PTO-U037" in said and name in said and reason in said
        assert "pickle" not in said
