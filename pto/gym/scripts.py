"""Running a case's own scripts: its generator and its judge.

On Linux they run in a `script_server` that forks; elsewhere each starts its own Python. Both give
the same: a fixed hash seed, an interpreter of their own, a bounded time.
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

from pto.core import process

_SERVER = Path(__file__).with_name("script_server.py")
_FIXED = {
    "PYTHONHASHSEED": "0",  # generators draw from hash()
    "COMPARE_STRICT": "1",
    "OPENBLAS_NUM_THREADS": "1",  # one thread gives one order of sums
    "OMP_NUM_THREADS": "1",
}
TIMED_OUT = -14  # SIGALRM


@dataclass(frozen=True, slots=True)
class ScriptOutcome:
    """How a script ended; `code` is negative when a signal ended it."""

    code: int
    output: str
    difference: dict[str, Any] | None = None


class Scripts:
    """Runs scripts for one worker; close it when done."""

    def __init__(self, seconds: float, cache: Path, forks: bool = sys.platform == "linux") -> None:
        self.seconds = seconds
        self._cache = cache  # of compiled scripts: a checkout is only read
        self._forks = forks
        self._server: subprocess.Popen[str] | None = None

    def run(self, script: Path, directory: Path, arguments: Sequence[str] = ()) -> ScriptOutcome:
        """Run `script` in `directory`."""
        return self.run_all(script, directory, [arguments])[0]

    def run_all(
        self,
        script: Path,
        directory: Path,
        runs: Sequence[Sequence[str]],
        spy: bool = False,
    ) -> list[ScriptOutcome]:
        """Run `script` once for each list of arguments; `spy` records what a judge rejects."""
        if not self._forks:
            return [self._run_alone(script, directory, arguments) for arguments in runs]
        outcomes: list[ScriptOutcome] = []
        while len(outcomes) < len(runs):  # a run that ends the process leaves the rest to another
            request = {
                "script": str(script),
                "directory": str(directory),
                "runs": [list(arguments) for arguments in runs[len(outcomes) :]],
                "seconds": self.seconds,
                "spy": spy,
            }
            outcomes += self._ask(json.dumps(request))
        return outcomes

    def _ask(self, line: str) -> list[ScriptOutcome]:
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
            return [ScriptOutcome(-1, "the process that runs scripts ended")]
        runs: list[dict[str, Any]] = json.loads(answer)
        return [ScriptOutcome(run["code"], run["output"], run["difference"]) for run in runs]

    def _start(self) -> subprocess.Popen[str]:
        return process.start(
            [sys.executable, "-P", str(_SERVER), str(self._cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_FIXED},
            text=True,
        )

    def _run_alone(self, script: Path, directory: Path, arguments: Sequence[str]) -> ScriptOutcome:
        paths = {"PYTHONPATH": str(script.parent.parent), "PYTHONPYCACHEPREFIX": str(self._cache)}
        try:
            done = process.run(
                [sys.executable, str(script), *arguments],
                self.seconds,
                cwd=directory,
                env={**os.environ, **_FIXED, **paths},
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired:
            return ScriptOutcome(TIMED_OUT, "")
        return ScriptOutcome(done.returncode, done.stdout)

    def close(self) -> None:
        if self._server is not None:
            process.end(self._server)
            self._server = None
