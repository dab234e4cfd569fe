"""How many cases of a long command are done: a bar on a terminal, periodic lines in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

from pto.cli import console
from pto.run.launch.progress import new_bar

_SAY_EVERY = 5.0  # seconds between lines of progress in a pipe


@contextmanager
def progress(expected: int) -> Generator[Callable[[bool], None]]:
    """A function to call for each finished case, with whether it passed; writes to standard error.

    Several threads may call it.
    """
    lock, done, bad, said = threading.Lock(), 0, 0, time.monotonic()
    bar = new_bar() if console.wants_colour(sys.stderr) else None
    task = None if bar is None else bar.add_task("cases", total=expected)

    def seen(passed: bool) -> None:
        nonlocal done, bad, said
        with lock:
            done, bad = done + 1, bad + (not passed)
            if bar is not None:
                bar.update(task, advance=1, description=f"cases, {bad} not passed")
            elif time.monotonic() - said > _SAY_EVERY:
                said = time.monotonic()
                line = f"{done} of {expected} cases, {bad} not passed"
                print(line, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield seen
