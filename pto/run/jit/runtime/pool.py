"""A pool of threads: starting a thread takes longer than many launches."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final


class ThreadJob:
    """Work that another thread does, starting now."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work  # never raises
        self._over = threading.Event()
        try:
            thread = _idle.pop()
        except IndexError:
            thread = SimpleQueue[ThreadJob]()
            threading.Thread(target=_run, args=(thread,), name="pto worker", daemon=True).start()
        thread.put(self)

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        self._over.wait()

    def do(self) -> None:
        try:
            if self._work is not None:
                self._work()
        finally:
            self._work = None
            self._over.set()


_idle: Final = list[SimpleQueue[ThreadJob]]()  # the job queues of waiting threads
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


def _run(jobs: SimpleQueue[ThreadJob]) -> None:
    while True:
        jobs.get().do()
        _idle.append(jobs)
