"""Runs a command of `pto` in a separate process with limits on time, memory and output.

It runs in an empty folder, which is removed afterwards, and gets no environment variable that
changes the behaviour of pto. It is used for programs of coding agents and for Python files in an
editor; the process has the rights of the user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pto.core import process

_OUTPUT = 16 << 20  # bytes that a command may write
_SHOWN = 4000  # characters of standard error that are passed on
TIMED_OUT = 124


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of one command."""

    seconds: float = 60.0
    megabytes: int = 8192


def run(
    words: Sequence[str], files: Mapping[str, bytes], limits: ProcessLimits, module: str = "pto"
) -> dict[str, Any]:
    """Run `python -m MODULE WORDS` in a folder with these files: its status and JSON or text."""
    with TemporaryDirectory(prefix="pto-") as folder:
        home = Path(folder)
        for name, data in files.items():
            (home / name).write_bytes(data)
        with (home / "out").open("w+b") as out, (home / "err").open("w+b") as err:
            status = _ended([module, *words], home, limits, out, err)
            texts = [_read(stream, folder) for stream in (out, err)]
    return {"status": status, **_told(status, limits), **_result(*texts)}


def _ended(words: Sequence[str], home: Path, limits: ProcessLimits, out: Any, err: Any) -> int:
    try:
        return process.run(
            [sys.executable, "-P", "-m", *words],
            limits.seconds,
            cwd=home,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=None if sys.platform == "win32" else lambda: _limit(limits),
        ).returncode
    except subprocess.TimeoutExpired:
        return TIMED_OUT


def _limit(limits: ProcessLimits) -> None:
    seconds = 4 * (int(limits.seconds) + 1)
    process.limit(AS=limits.megabytes << 20, CPU=seconds, FSIZE=64 << 20, CORE=0)


def _environment() -> dict[str, str]:
    names = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT", "XDG_CACHE_HOME")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return {**environment, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONSAFEPATH": "1"}


def _read(file: Any, folder: str) -> str:
    file.seek(0)
    return file.read(_OUTPUT).decode("utf-8", "replace").replace(f"{folder}{os.sep}", "")


def _told(status: int, limits: ProcessLimits) -> dict[str, str]:
    if status == TIMED_OUT:
        return {"error": f"ended: it took longer than {limits.seconds:g} s"}
    if status < 0:
        return {"error": f"ended by signal {-status}: it may use {limits.megabytes} MB of memory"}
    return {}


def _result(out: str, err: str) -> dict[str, Any]:
    messages = {"messages": err[-_SHOWN:]} if err.strip() else {}
    try:
        return {"result": json.loads(out), **messages}
    except ValueError:
        return {"text": out, **messages} if out.strip() else messages
