"""The child process of graphs: native code of orchestrations and of every kernel.

The parent (`process.py`) sends one request after another as JSON lines and reads one answer each.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto.cxx.child import packed, serve
from pto.graphs import runs as reports
from pto.graphs.diff import ValueLog
from pto.graphs.orchestration import GraphMem
from pto.graphs.session import GraphProgram, GraphSession, run_together

Buffers = Sequence[tuple[int, bool]]  # bytes, and whether the file has values for them
Runs = Sequence[Mapping[str, Any]]


class GraphServer:
    """Answers requests about graphs."""

    def load(self, programs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._programs = [GraphProgram(**program) for program in programs]
        return {}

    def _sessions(
        self,
        buffers: Buffers,
        runs: Runs,
        file: str,
        seed: int | None = None,
        log: ValueLog | None = None,
    ) -> list[GraphSession]:
        """Runs on the buffers of a file."""
        for program in self._programs:
            program.clear()
        memory = GraphMem()
        with Path(file).open("rb") as values:
            for size, has_values in buffers:
                number = memory.allocate(size)
                if has_values:
                    memory.arrays[number][:] = np.fromfile(values, np.uint8, size)
        programs = [self._programs[run["program"]] for run in runs]
        pairs = zip(programs, runs, strict=True)
        return [GraphSession(p, run, memory, seed, log) for p, run in pairs]

    def run(
        self,
        buffers: Buffers,
        runs: Runs,
        file: str,
        seed: int | None,
        watched: bool = False,
        together: bool = False,
    ) -> dict[str, Any]:
        """Run graphs on the buffers of a file, which receives what they become."""
        sessions = self._sessions(buffers, runs, file, seed)
        if together:
            run_together(sessions, seed)
        else:
            sessions[0].touches = {} if watched else None
            sessions[0].run()
        memory = sessions[0].memory
        with Path(file).open("wb") as out:
            for number, (_, has_values) in enumerate(buffers):
                if has_values:
                    memory.arrays[number].tofile(out)
        warnings = [d for program in self._programs for d in program.kernels.warnings]
        return _answer(reports.ran(sessions, warnings))

    def record(
        self,
        buffers: Buffers,
        runs: Runs,
        file: str,
        folder: str,
        kept: int | None,
        inputs: bool,
    ) -> dict[str, Any]:
        """Run a graph and write what each task leaves behind into a folder."""
        with ValueLog(Path(folder), kept, inputs) as log:
            (session,) = self._sessions(buffers, runs, file, log=log)
            session.run()
        return {"tasks": len(session.graph.tasks)}

    def dry(self, buffers: Buffers, runs: Runs, file: str) -> dict[str, Any]:
        """Run an orchestration alone, on tensors that may have no values."""
        return _answer(reports.submitted(self._submitted(buffers, runs, file)))

    def _submitted(self, buffers: Buffers, runs: Runs, file: str) -> GraphSession:
        """An orchestration that has run alone. Its buffers have pages that no task touches: they
        may take more address space."""
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        (session,) = self._sessions(buffers, runs, file)
        session.orchestration.is_dry = True
        session.submit()
        return session

    def time(
        self, buffers: Buffers, runs: Runs, file: str, device: str | None, edges: bool
    ) -> dict[str, Any]:
        """Time every task and schedule them on the cores."""
        if edges:
            (session,) = self._sessions(buffers, runs, file)
            session.touches = {}
            session.run()
        else:
            session = self._submitted(buffers, runs, file)
        return reports.timed(session, device)


def _answer(found: reports.Ran) -> dict[str, Any]:
    return {**vars(found), "findings": [packed(d) for d in found.findings]}


if __name__ == "__main__":
    serve(GraphServer())
