"""The child process of graphs: native code of orchestrations and of every kernel.

The parent (`process.py`) sends one request after another and reads one answer each.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto.cxx.child import packed, serve
from pto.graphs.diff import ValueLog
from pto.graphs.orchestration import GraphMem
from pto.graphs.orders import KnownResults
from pto.graphs.runs import Ran, RunnableGraph, ran
from pto.graphs.session import GraphProgram, GraphSession, run_together
from pto.observe.timing.chips import bench
from pto.target.profile import DeviceSpec


class CppGraphs(RunnableGraph):
    """The graphs of one request, on the buffers of a file."""

    def __init__(
        self,
        programs: Sequence[GraphProgram],
        buffers: Sequence[tuple[int, bool]],
        runs: Sequence[Mapping[str, Any]],
        file: str,
    ) -> None:
        self._programs = programs
        self._buffers = buffers  # bytes, and whether the file has values for them
        self._runs = runs
        self._file = Path(file)
        self._known: KnownResults | None = None
        self._chip: DeviceSpec | None = None  # that is timed

    def sessions(self, seed: int | None = None, log: ValueLog | None = None) -> list[GraphSession]:
        """A run of each graph, on the same memory."""
        for program in self._programs:
            program.clear()
        memory = GraphMem()
        with self._file.open("rb") as values:
            for size, has_values in self._buffers:
                number = memory.allocate(size)
                if has_values:
                    memory.arrays[number][:] = np.fromfile(values, np.uint8, size)
        programs = [self._programs[run["program"]] for run in self._runs]
        pairs = zip(programs, self._runs, strict=True)
        return [GraphSession(p, run, memory, seed, log, self._chip) for p, run in pairs]

    def made(self, seed: int | None = None, log: ValueLog | None = None) -> GraphSession:
        (session,) = self.sessions(seed, log)
        session.known = self._known
        return session

    def outline(self) -> GraphSession:
        """The orchestration alone. No task touches the pages of its buffers: they may take more
        address space."""
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        session = self.made()
        session.orchestration.is_dry = True
        session.submit()
        return session

    def run(self, seed: int | None = None, watched: bool = False) -> Ran:
        outcome = super().run(seed, watched)
        assert isinstance(self.last, GraphSession)
        self._write_back(self.last.memory)
        return outcome

    def orders(self, count: int) -> Ran:
        self._known = KnownResults()
        return super().orders(count)

    def time(self, device: str | None = None, edges: bool = False) -> dict[str, Any]:
        profile = self._programs[0].profile
        self._chip = bench(device or profile.device, profile.name).device
        return super().time(device, edges)

    def together(self, seed: int | None = None) -> Ran:
        """Run graphs that may wait for each other."""
        sessions = self.sessions(seed)
        run_together(sessions, seed)
        self._write_back(sessions[0].memory)
        return ran(sessions, [d for run in sessions for d in run.warnings])

    def _write_back(self, memory: GraphMem) -> None:
        """Write the buffers to the file as they are after a run."""
        with self._file.open("wb") as out:
            for number, (_, has_values) in enumerate(self._buffers):
                if has_values:
                    memory.arrays[number].tofile(out)


class GraphServer:
    """Answers requests about graphs."""

    def load(self, programs: Sequence[Mapping[str, Any]]) -> None:
        self._programs = [GraphProgram(**program) for program in programs]

    def act(self, action: str, options: Mapping[str, Any], **payload: Any) -> Any:
        """Do one of the actions of `RunnableGraph`."""
        answer = getattr(CppGraphs(self._programs, **payload), action)(**options)
        if isinstance(answer, Ran):
            answer.findings = [packed(d) for d in answer.findings]
        return answer


if __name__ == "__main__":
    serve(GraphServer())
