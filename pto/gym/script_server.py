"""Runs a case's own Python scripts, each request in a forked process.

Started as a separate program with a fixed hash seed. It imports NumPy once and forks for each
request, so a script gets a fresh interpreter in milliseconds. Requests and answers are lines of
JSON. It imports nothing of this package but the modules beside it: the scripts must not see it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any

_MOST_OUTPUT = 1 << 16
_WARM = ("argparse", "math", "ml_dtypes", "numpy", "struct")  # what scripts import
_SPY = Path(__file__).resolve().with_name("spy.py")
_LIBC = ctypes.CDLL(None)


def main(cache: str) -> None:
    """`cache`: the folder for compiled scripts; libraries have their own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starting process ends this one
    die_with_parent()
    for name in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = cache
    gc.freeze()
    for line in sys.stdin:
        answer = _answer(json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def die_with_parent() -> None:
    """Linux: be killed when the starting process is gone, so nothing runs on after Ctrl-C."""
    set_death_signal = 1  # PR_SET_PDEATHSIG
    _LIBC.prctl(set_death_signal, signal.SIGKILL)


def _answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    """One outcome for each run; the last run may have ended the process."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as record:
        child = os.fork()
        if child == 0:
            _be_script(request, output, record)
        _, status = os.waitpid(child, 0)
        record.seek(0)
        runs: list[dict[str, Any]] = [json.loads(line) for line in record]
        outcomes: list[dict[str, Any]] = []
        start = 0
        for run in runs:
            outcomes.append({**run, "output": _text(output, start, run["end"])})
            start = run["end"]
        if len(runs) < len(request["runs"]):
            end = output.seek(0, os.SEEK_END)
            code = os.waitstatus_to_exitcode(status)
            broken = {"code": code or -1, "difference": None, "output": _text(output, start, end)}
            outcomes.append(broken)
        return outcomes


def _text(output: IO[bytes], start: int, end: int) -> str:
    """The output of a run, or its end if it is long."""
    output.seek(max(start, end - _MOST_OUTPUT))
    return output.read(end - output.tell()).decode("utf-8", "replace")


def _be_script(request: dict[str, Any], output: IO[bytes], record: IO[bytes]) -> None:
    """Run the script in this forked process, run after run; never returns."""
    try:
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"])
        _redirect(output)
        os.chdir(request["directory"])
        script: str = request["script"]
        folder = Path(script).parent
        sys.path[:] = [str(folder), *sys.path, str(folder.parent)]
        for arguments in request["runs"]:
            sys.argv = [script, *arguments]
            done = _watched(script) if request["spy"] else {"code": _exit_code_of(script)}
            sys.stdout.flush()
            sys.stderr.flush()
            end = os.lseek(1, 0, os.SEEK_CUR)
            record.write(json.dumps({"difference": None, **done, "end": end}).encode() + b"\n")
            record.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _redirect(output: IO[bytes]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _exit_code_of(script: str) -> int:
    """Run a script as Python would; returns its exit code."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _watched(script: str) -> dict[str, Any]:
    """Run a judge again; returns the element that it rejects."""
    watch = runpy.run_path(str(_SPY))["Spy"]
    with watch() as spy:
        code = _exit_code_of(script)
    return {"code": code, "difference": spy.difference()}


if __name__ == "__main__":
    main(sys.argv[1])
