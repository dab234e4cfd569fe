"""Child processes: each leads a session of its own, and ends with all that it has started.

`run` waits for a command. A `Peer` is a Python module that answers over a pipe. `end_all` ends
every child of this process, for a process that is itself being ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

try:
    import resource
except ModuleNotFoundError:  # Windows has time limits only
    resource = None

_lock = threading.Lock()
_running: set[subprocess.Popen[Any]] = set()


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a command as the leader of a session; `end` ends it."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    with _lock:
        _running.add(process)
    return process


def end(process: subprocess.Popen[Any], grace: float = 0.0) -> int:
    """End a process and those it has started; return its exit status.

    With a `grace` in seconds it is first asked to end by itself (SIGTERM).
    """
    with _lock:
        if process not in _running:  # its number may be another process's
            return process.wait()
        _running.discard(process)
    if grace and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
    return process.wait()


def end_all() -> None:
    """End every child process of this one."""
    with _lock:
        processes = list(_running)
    for process in processes:
        end(process)


def run(command: Sequence[str], seconds: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its status and text; nothing that it started stays.

    Raises `subprocess.TimeoutExpired` after `seconds`.
    """
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = start(command, text=True, errors="replace", **piped)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        status = end(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return subprocess.CompletedProcess(command, status, out, err)


def limit(**limits: int) -> None:
    """Set limits of this process by the names of `resource`: `AS=1 << 30`, `CPU=60`.

    A limit that is stricter already stays.
    """
    if resource is None:
        return
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        current, hard = resource.getrlimit(kind)
        values = [n for n in (most, current, hard) if n != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min(values), hard))


class Peer:
    """A Python module in a child process, which answers over `pipe` (see `parent_pipe`)."""

    def __init__(
        self, module: str, *flags: str, env: Mapping[str, str], stdout: int, stderr: int | None
    ) -> None:
        self.pipe: Any  # its class differs between systems
        self.pipe, theirs = Pipe()
        lifeline, line = os.pipe()
        self._lifeline: int | None = line  # closed by the end of this process, however it ends
        with theirs:
            numbers = [theirs.fileno(), lifeline]
            self.process: subprocess.Popen[bytes] = start(
                [sys.executable, *flags, "-m", module, *map(str, numbers)],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **env},
            )
        os.close(lifeline)

    def end(self, grace: float = 0.0) -> int:
        """End the process and close the pipe; return the exit status."""
        status = end(self.process, grace)
        self.pipe.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        return status


def parent_pipe() -> Connection[Any, Any]:
    """In a `Peer`: the pipe to the parent. This process and what it starts end with the parent."""
    pipe, lifeline = map(int, sys.argv[1:3])
    _end_with(lifeline)
    return Connection(pipe)


def _end_with(lifeline: int) -> None:
    """Linux: have this session killed, whatever it runs, when the other end of a pipe closes."""
    if sys.platform == "linux":
        import fcntl
        import select

        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_RDONLY | os.O_ASYNC)
        hangup = select.poll()
        hangup.register(lifeline)
        if hangup.poll(0):  # it has closed before
            os.killpg(os.getpgrp(), signal.SIGKILL)


def python_path() -> dict[str, str]:
    """The environment with which a child imports what this process can import."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
