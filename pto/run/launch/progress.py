"""The progress of long work on a terminal, once it has lasted a while: finished blocks, or a stage.

Short work, a pipe and a dumb terminal show nothing. `rich` is imported only when something shows.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from types import TracebackType
from typing import Any

Progress = Callable[[int, int], None]  # blocks done, blocks of the launch
PATIENCE = 1.0  # seconds before anything is shown


class ProgressBar:
    """`with ProgressBar() as advance:` call `advance` for each finished block.

    `first` is shown until the first call. With `counts=False` the bar shows only a stage and its
    time.
    """

    def __init__(
        self,
        noun: str = "blocks",
        patience: float = PATIENCE,
        *,
        first: str = "",
        counts: bool = True,
    ) -> None:
        self._noun = noun
        self._first = first or noun
        self._counts = counts
        self._timer = Timer(patience, self._start)
        self._timer.daemon = True
        self._done: int = 0
        self._total: int | None = 1 if counts else None
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
            self._bar.update(self._task, completed=done, total=total, description=self._noun)

    def _start(self) -> None:
        bar = _bar(self._counts)
        if bar is None:
            return
        text = self._noun if self._done else self._first
        self._task = bar.add_task(text, total=self._total, completed=self._done)
        bar.start()
        self._bar = bar


def _bar(counts: bool = True) -> Any:
    """A bar on standard error; None if that is not a terminal."""
    bar = new_bar(counts)
    return bar if bar.console.is_terminal and not bar.console.is_dumb_terminal else None


def new_bar(counts: bool = True) -> Any:
    """A bar on standard error that disappears when it stops."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    numbers = (MofNCompleteColumn(),) if counts else ()
    columns = (BarColumn(), *numbers, TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
