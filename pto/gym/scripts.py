"""Running a case's own scripts: its generator and its judge.

On Linux they run in a `script_server` that forks; elsewhere each starts its own Python. Both give
the same: a fixed hash seed, a fresh interpreter, a bounded time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).with_name("script_server.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a script ended; `code` is negative when a signal ended it."""

    code: int
    output: str
    difference: dict[str, Any] | None = None


def environment() -> dict[str, str]:
    """What the scripts see: generators draw from hash(), and one thread gives one order of sums."""
    fixed = {
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # a checkout is only read
        "COMPARE_STRICT": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **fixed}


class Scripts:
    """Runs scripts for one worker; close it when done."""

    def __init__(self, seconds: float, forks: bool = sys.platform == "linux") -> None:
        self.seconds = seconds
        self._forks = forks
        self._server: subprocess.Popen[str] | None = None

    def run(
        self, script: Path, directory: Path, arguments: Sequence[str] = (), spy: bool = False
    ) -> Outcome:
        """Run `script` in `directory`; `spy` asks what a judge rejected."""
        if not self._forks:
            return self._run_alone(script, directory, arguments)
        request = {
            "script": str(script),
            "directory": str(directory),
            "arguments": list(arguments),
            "seconds": self.seconds,
            "spy": spy,
        }
        answer = self._ask(json.dumps(request))
        return Outcome(answer["code"], answer["output"], answer["difference"])

    def _ask(self, line: str) -> dict[str, Any]:
        if self._server is None or self._server.poll() is not None:
            self._server = self._start()
        assert self._server.stdin is not None and self._server.stdout is not None
        try:
            self._server.stdin.write(line + "\n")
            self._server.stdin.flush()
            answer = self._server.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            return {"code": -1, "output": "the script server ended", "difference": None}
        return json.loads(answer)

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(_SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )

    def _run_alone(self, script: Path, directory: Path, arguments: Sequence[str]) -> Outcome:
        above = {"PYTHONPATH": os.pathsep.join([str(script.parent), str(script.parent.parent)])}
        try:
            done = subprocess.run(
                [sys.executable, str(script), *arguments],
                cwd=directory,
                env=environment() | above,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self.seconds,
                text=True,
                errors="replace",
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(-14, "")
        return Outcome(done.returncode, done.stdout)

    def close(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
