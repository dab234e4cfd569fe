"""The progress of long commands: cases, blocks or a stage; only cases print lines in a pipe."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pto.cli import console, findings
from pto.run.launch.progress import Progress, ProgressBar, new_bar

_INTERVAL = 5.0  # seconds between lines of progress in a pipe


def of_blocks(args: argparse.Namespace) -> AbstractContextManager[Progress | None]:
    """A bar of finished blocks on a terminal."""
    return ProgressBar(first="compiling") if _is_shown(args) else nullcontext()


def stage(text: str, args: argparse.Namespace) -> AbstractContextManager[object]:
    """Show a stage such as "tracing k.py" and its time on a terminal."""
    return ProgressBar(text, counts=False) if _is_shown(args) else nullcontext()


def _is_shown(args: argparse.Namespace) -> bool:
    return sys.stderr.isatty() and not findings.is_quiet(args)


@contextmanager
def progress(expected: int, args: argparse.Namespace) -> Generator[Callable[[bool], None]]:
    """A function to call for each finished case, with whether it passed; writes to standard error.

    Nothing is written with `--quiet`.
    """
    done = 0
    bad = 0
    last = time.monotonic()
    is_quiet = findings.is_quiet(args)
    bar = new_bar() if console.wants_colour(sys.stderr) and not is_quiet else None
    task = None if bar is None else bar.add_task("cases", total=expected)

    def advance(passed: bool) -> None:
        nonlocal done, bad, last
        done += 1
        bad += not passed
        if bar is not None:
            bar.update(task, advance=1, description=f"cases, {bad} not passed")
        elif time.monotonic() - last > _INTERVAL and not is_quiet:
            last = time.monotonic()
            line = f"{done} of {expected} cases, {bad} not passed"
            print(line, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield advance
