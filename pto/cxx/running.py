"""Compilers, generators and kernels as child processes that end when the command is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_lock = threading.Lock()
_running: set[subprocess.Popen[Any]] = set()
_ended = threading.Event()


class Interrupted(Exception):
    """The command has been interrupted, so no process is started."""


@contextmanager
def tracked(process: subprocess.Popen[Any]) -> Generator[None]:
    """Make an interrupt end a process that leads its own process group."""
    with _lock:
        _running.add(process)
    try:
        if _ended.is_set():
            _kill(process)
        yield
    finally:
        with _lock:
            _running.discard(process)


def run(command: Sequence[str], seconds: float, **how: Any) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run` with captured text; an interrupt ends it and its child processes."""
    if _ended.is_set():
        raise Interrupted
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        command, **piped, text=True, errors="replace", start_new_session=True, **how
    )
    with tracked(process):
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            _kill(process)
            process.communicate()
            raise
    if _ended.is_set():
        raise Interrupted
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def each(work: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """`work` on every item in threads; an interrupt ends all child processes, and raises."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(work, items))
        except KeyboardInterrupt:
            _ended.set()
            with _lock:
                for process in _running:
                    _kill(process)
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            _ended.clear()


def _kill(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
