"""How far a long run is: blocks done, on a terminal, once it has lasted a while.

A short run, a pipe and a dumb terminal see nothing. `rich` is imported only when something shows.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from types import TracebackType
from typing import Any

Progress = Callable[[int, int], None]  # blocks done, blocks of the launch
PATIENCE = 1.0  # seconds before anything is shown


class ProgressBar:
    """`with Bar() as seen:` `seen` is called for each finished block and draws a progress bar."""

    def __init__(self, noun: str = "blocks", patience: float = PATIENCE) -> None:
        self._what = noun
        self._timer = Timer(patience, self._start)
        self._timer.daemon = True
        self._done, self._total = 0, 1
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._timer.start()
        return self._seen

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._timer.join()  # it may be starting the bar just now
        if self._bar is not None:
            self._bar.stop()

    def _seen(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def _start(self) -> None:
        bar = _bar()
        if bar is None:
            return
        self._task = bar.add_task(self._what, total=self._total, completed=self._done)
        bar.start()
        self._bar = bar


def _bar() -> Any:
    """A bar on standard error; None where no person would see it move."""
    bar = new_bar()
    return bar if bar.console.is_terminal and not bar.console.is_dumb_terminal else None


def new_bar() -> Any:
    """A bar on standard error, which goes when it stops."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), words, TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
