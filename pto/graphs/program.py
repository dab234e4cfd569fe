"""Graphs of a Python file: every `pto.graph()` that a variable of the module holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pto.graphs.diff import ValueLog
from pto.graphs.python import PythonRun, TaskGraph
from pto.graphs.runs import RunnableGraph
from pto.lang.file import executed, users_code


@dataclass
class PythonGraph(RunnableGraph):
    """One graph of a file; it is run on copies of its arrays."""

    name: str
    graph: TaskGraph
    tolerances: tuple[float, float] = (1e-5, 1e-5)

    @property
    def profile(self) -> str:
        return "" if self.graph.device is None else self.graph.device.profile.name

    @property
    def has_golden(self) -> bool:
        return bool(self.graph.goldens)

    def limited(self, most: Mapping[str, int]) -> PythonGraph:
        """The graph itself: a file has no parameters."""
        return self

    def made(self, seed: int | None = None, log: ValueLog | None = None) -> PythonRun:
        return self.graph.on_copies(seed, log)

    def judge(self) -> str:
        assert isinstance(self.last, PythonRun)
        return self.last.judge()


def find(file: Path) -> Iterator[PythonGraph]:
    """The graphs of a file, which is executed with the user's rights."""
    with users_code():
        module = executed(file)
    for name, value in vars(module).items():
        if isinstance(value, TaskGraph):
            yield PythonGraph(f"{file.stem}/{name}", value)
