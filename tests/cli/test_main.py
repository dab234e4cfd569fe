"""The command frame: exit codes, help, lazy imports, and never a traceback for a user's mistake."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pto import __version__
from pto.cli import main as frame
from pto.cli.main import VERBS, main
from pto.core.errors import Diagnostic, PtoError

Capture = pytest.CaptureFixture[str]


def verb(run) -> ModuleType:
    module = ModuleType("pto.cli.fake")
    module.EXAMPLES = "  pto fake\n"
    module.add_arguments = lambda parser: parser.add_argument("--n", type=int)
    module.run = run
    return module


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Put a verb `fake` into the table whose body is the given function."""

    def put(run) -> None:
        monkeypatch.setitem(VERBS, "fake", "does what the test says")
        monkeypatch.setitem(sys.modules, "pto.cli.fake", verb(run))

    return put


def raise_error(error: BaseException):
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def test_version(capsys: Capture):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pto {__version__}\n"


def test_help_lists_every_verb_with_its_line(capsys: Capture):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, line in VERBS.items():
        assert f"  {name}" in shown
        assert line in shown


def test_no_command_is_a_usage_error_that_shows_the_help(capsys: Capture):
    assert main([]) == 2
    assert "usage: pto COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_with_examples(name: str, capsys: Capture):
    assert main([name, "--help"]) == 0
    by_option = capsys.readouterr().out
    assert "examples:" in by_option
    assert f"pto {name}" in by_option.partition("examples:")[2]
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == by_option


def test_unknown_verb_names_the_nearest(capsys: Capture):
    assert main(["layuot"]) == 2
    assert capsys.readouterr().err == (
        "error[PTO-U001]: there is no command `layuot`\n   = help: did you mean `layout`?\n"
    )


def test_hopeless_verb_points_to_the_help(capsys: Capture):
    assert main(["qqqqq"]) == 2
    assert "`pto --help` lists the commands" in capsys.readouterr().err


def test_unknown_option_is_a_usage_error(capsys: Capture):
    assert main(["explain", "--bogus"]) == 2
    assert "--bogus" in capsys.readouterr().err


def test_the_verbs_result_is_the_exit_code(install):
    install(lambda args: args.n)
    assert main(["fake", "--n", "1"]) == 1
    assert main(["fake", "--n", "0"]) == 0


def test_an_error_prints_every_finding_and_no_traceback(install, capsys: Capture):
    install(raise_error(PtoError(Diagnostic("PTO-T001", "one"), Diagnostic("PTO-T002", "two"))))
    assert main(["fake"]) == 1
    assert capsys.readouterr().err == "error[PTO-T001]: one\n\nerror[PTO-T002]: two\n"


def test_a_usage_finding_exits_as_usage(install):
    install(raise_error(PtoError(Diagnostic("PTO-U003", "what?"))))
    assert main(["fake"]) == 2


def test_interrupt_is_quiet(install, capsys: Capture):
    install(raise_error(KeyboardInterrupt()))
    assert main(["fake"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_leaves_early_is_quiet():
    command = f"{sys.executable} -m pto.cli.main explain | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "pto.cli.main", "explain"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], {"numpy", "rich", "matplotlib", "llvmlite", "pto.cli.layout"}),
        (["--version"], {"numpy", "rich", "matplotlib", "llvmlite", "pto.cli.explain"}),
        (["explain", "u001"], {"numpy", "rich", "matplotlib", "pto.cli.layout"}),
        (["nonsense"], {"numpy", "rich", "matplotlib", "pto.cli.layout"}),
    ],
)
def test_a_command_loads_only_what_it_needs(words: list[str], absent: set[str]):
    script = f"import sys; from pto.cli.main import main; main({words!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split("\n")[-2].split())
    assert "pto.cli.main" in loaded
    assert loaded & absent == set()


def test_the_table_and_the_files_agree():
    for name in VERBS:
        parser = frame.verb_parser(name, frame.load(name))
        assert parser.prog == f"pto {name}"


@pytest.mark.parametrize(
    "words",
    [
        ["a=zeros:9999999999999999999999xf32"],
        ["a=full(abc):16x64xf32"],
        [f"a=zeros:{'1x' * 201}f32"],
        ["a=rand:16x64xf32", "--seed", "-1"],
    ],
)
def test_arguments_that_mean_nothing_are_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rest = ["--arg", "b=ones:16x64xf32", "--arg", "c=zeros:16x64xf32", "--arg", "rows=16"]
    assert main(["run", "examples/add.pto", *rest, "--arg", *words]) == 2
    assert "PTO-U036" in capsys.readouterr().err


BOXED = """
module attributes {pto.target_arch = "a5"} {
  func.func @kernel() attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x32xf16, blayout=col_major, slayout=row_major>
    return
  }
}
"""


def test_an_edition_is_chosen_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The manual's table has no boxed vec tiles on a5; programs of today do."""
    file = tmp_path / "k.pto"
    file.write_text(BOXED)
    assert [main(["check", str(file), "--edition", e]) for e in ("current", "april")] == [0, 0]
    assert main(["check", str(file), "--edition", "manual"]) == 1
    assert "PTO-X001" in capsys.readouterr().out
