"""Graphs of a Python file: every `pto.graph()` that a variable of the module holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.graphs import runs
from pto.graphs.diff import ValueLog
from pto.graphs.python import PythonRun, TaskGraph
from pto.lang.file import executed, users_code


@dataclass(slots=True)
class PythonGraph:
    """One graph of a file; it is run on copies of its arrays."""

    name: str
    graph: TaskGraph
    tolerances: tuple[float, float] = (1e-5, 1e-5)
    _last: PythonRun | None = field(default=None, init=False)

    @property
    def profile(self) -> str:
        return "" if self.graph.device is None else self.graph.device.profile.name

    @property
    def has_golden(self) -> bool:
        return bool(self.graph.goldens)

    def limited(self, most: Mapping[str, int]) -> PythonGraph:
        """The graph itself: a file has no parameters."""
        return self

    def run(self, seed: int | None = None, watched: bool = False) -> runs.Ran:
        """Run every task; a watched run reports races between tasks."""
        made = self._last = self.graph.on_copies(seed)
        made.touches = {} if watched else None
        made.run()
        return runs.ran([made])

    def outputs(self) -> dict[str, npt.NDArray[np.uint8]]:
        """The bytes of all arrays after the last run."""
        assert self._last is not None
        buffers = self._last.graph.buffers
        return {f"{n} ({buffers[n].title})": a for n, a in self._last.arrays.items()}

    def judge(self) -> str:
        return "" if self._last is None else self._last.judge()

    def dry(self) -> runs.Ran:
        return runs.submitted(self.graph.on_copies())

    def record(self, folder: Path, kept: int | None, inputs: bool) -> int:
        """Run and keep what each task leaves behind; returns the tasks."""
        with ValueLog(folder, kept, inputs) as log:
            self.graph.on_copies(log=log).run()
        return len(self.graph.model.tasks)

    def time(self, device: str | None, edges: bool) -> dict[str, Any]:
        made = self.graph.on_copies()
        if edges:
            made.touches = {}
            made.run()
        return runs.timed(made, device)


def find(file: Path) -> Iterator[PythonGraph]:
    """The graphs of a file, which is executed with the user's rights."""
    with users_code():
        module = executed(file)
    for name, value in vars(module).items():
        if isinstance(value, TaskGraph):
            yield PythonGraph(f"{file.stem}/{name}", value)
