"""What the machine under us refuses: a message and exit code 2, and nothing half-written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pto.cli.main import main

ROOT = Path(__file__).parents[2]
ADD = ROOT / "examples" / "add.pto"
ARRAYS = [f"--arg={name}={kind}:40x64xf32" for name, kind in (("a", "rand"), ("b", "ones"))]
RUN = ["run", str(ADD), *ARRAYS, "--arg=c=zeros:40x64xf32", "--arg=rows=40", "--blocks=3"]


def pto(
    *words: str,
    limits: dict[int, int] | None = None,
    env: dict[str, str] | None = None,
    stdout: int = subprocess.PIPE,
) -> tuple[int, str, str]:
    """A command in a process of its own, on the reference engine, with less than it may want."""

    def less() -> None:
        for name, value in (limits or {}).items():
            resource.setrlimit(name, (value, value))

    kept = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    if limits:  # else Python leaves the beginnings of its .pyc files in this tree
        kept["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "pto.cli.main", *words],
        env={**kept, "PTO_ENGINE": "reference", **(env or {})},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=less if limits else None,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout or "", done.stderr


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"of before")
    limits = {resource.RLIMIT_FSIZE: 2_000}
    code, _, said = pto(*RUN, "--out", str(tmp_path), limits=limits)
    assert code == 2 and "error[PTO-U011]" in said and "a.npy cannot be written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]
    assert (tmp_path / "a.npy").read_bytes() == b"of before"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, said = pto(*RUN, "--out", str(tmp_path / "file" / "x"))
    assert code == 2 and "error[PTO-U011]" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_goes_nowhere() -> None:
    with Path("/dev/full").open("w") as full:
        code, _, said = pto("explain", stdout=full.fileno())
    assert code == 2 and "standard output cannot be used: No space left on device" in said


def test_no_memory_left() -> None:
    words = [
        "run",
        str(ADD),
        "--arg=a=zeros:900000000xf32",
        *ARRAYS[1:],
        "--arg=c=zeros",
        "--arg=rows=40",
    ]
    code, _, said = pto(*words, limits={resource.RLIMIT_AS: 2 << 30})
    assert code == 2 and "error[PTO-U008]" in said


@pytest.mark.parametrize("count", ["²", "0", "-1", "many"])
def test_a_number_of_threads_that_is_none(count: str) -> None:
    code, _, said = pto(*RUN, "--engine=jit", env={"PTO_THREADS": count})
    assert code == 2 and "error[PTO-U091]" in said


def test_a_user_without_a_home() -> None:
    code, said, _ = pto(*RUN, "--engine=jit", env={"PTO_CACHE_DIR": ""})
    assert code == 0 and "2,560 of 2,560 elements changed" in said


def test_a_program_for_a_target_that_there_is_not(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pto"
    wrong.write_text('module attributes {pto.target_arch = "a9"} {\n}\n')
    code, said, _ = pto("check", str(tmp_path), str(ADD))
    assert code == 1 and "there is no profile `a9`" in said and "wrong.pto:1:1" in said
    code, _, said = pto("check", "--profile", "a9", str(ADD))
    assert code == 2 and "there is no profile `a9`" in said


@pytest.mark.parametrize("verb", ["check", "plan", "sync", "fmt", "run", "time"])
def test_a_file_that_there_is_not(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "none.pto"]) == 2
    assert "none.pto" in capsys.readouterr().err
