"""The child process of graphs: native code of orchestrations and of every kernel.

The parent (`process.py`) sends one request after another as JSON lines and reads one answer each.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.cxx.child import packed, serve
from pto.graphs import dry, races, timing
from pto.graphs import launch as tasks
from pto.graphs.diff import ValueLog
from pto.graphs.limits import usage
from pto.graphs.model import Task
from pto.graphs.orchestration import GraphMem
from pto.graphs.session import GraphProgram, GraphSession, run_together
from pto.graphs.timing import DISPATCH, GraphTime
from pto.observe.timing.chips import Bench, bench

_SCALARS = 8  # sets of scalars of one kind of task that are timed
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
    ) -> tuple[list[GraphSession], GraphMem]:
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
        return [GraphSession(p, run, memory, seed, log) for p, run in pairs], memory

    def run(
        self,
        buffers: Buffers,
        runs: Runs,
        file: str,
        seed: int | None = None,
        watched: bool = False,
        together: bool = False,
    ) -> dict[str, Any]:
        """Run graphs on the buffers of a file, which receives what they become."""
        began = time.perf_counter()
        sessions, memory = self._sessions(buffers, runs, file, seed)
        if together:
            run_together(sessions)
        for session in sessions if not together else ():
            session.touches = {} if watched else None
            session.run()
        with Path(file).open("wb") as out:
            for number, (_, has_values) in enumerate(buffers):
                if has_values:
                    memory.arrays[number].tofile(out)
        found = [d for program in self._programs for d in program.kernels.warnings]
        needless = 0
        for session in sessions if watched else ():
            assert session.touches is not None
            found = races.findings(session.graph, session.touches)
            found += usage(session.graph, session.program.limits).findings
            needless = len(races.needless(session.graph, session.touches))
        graphs = [session.graph for session in sessions]
        return {
            "tasks": sum(len(graph.tasks) for graph in graphs),
            "skipped": sum(task.was_skipped for graph in graphs for task in graph.tasks),
            "edges": sum(len(graph.edges) for graph in graphs),
            "seconds": time.perf_counter() - began,
            "findings": [packed(d) for d in found],
            "needless": needless,
        }

    def record(
        self, buffers: Buffers, runs: Runs, file: str, folder: str, kept: int | None
    ) -> dict[str, Any]:
        """Run a graph and write what each task leaves behind into a folder."""
        log = ValueLog(Path(folder), kept)
        (session,), _ = self._sessions(buffers, runs, file, log=log)
        try:
            session.run()
        finally:
            log.end()
        return {"tasks": len(session.graph.tasks)}

    def dry(self, buffers: Buffers, runs: Runs, file: str) -> dict[str, Any]:
        """Run an orchestration alone, on tensors that may have no values."""
        began = time.perf_counter()
        session = self._submitted(buffers, runs, file)
        found = dry.report(session.graph, session.program.limits)
        return {
            "tasks": len(session.graph.tasks),
            "edges": len(session.graph.edges),
            "seconds": time.perf_counter() - began,
            "findings": [packed(d) for d in found.findings],
            "slots": found.usage.slots,
            "heap": found.usage.bytes,
            "undecided": found.undecided,
            "assumed": session.orchestration.assumed,
        }

    def _submitted(self, buffers: Buffers, runs: Runs, file: str) -> GraphSession:
        """An orchestration that has run alone. Its buffers have pages that no task touches: they
        may take more address space."""
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        (session,), _ = self._sessions(buffers, runs, file)
        session.orchestration.is_dry = True
        session.submit()
        return session

    def time(
        self, buffers: Buffers, runs: Runs, file: str, device: str | None, edges: bool
    ) -> dict[str, Any]:
        """Time every task and schedule them on the cores."""
        if edges:
            (session,), _ = self._sessions(buffers, runs, file)
            session.touches = {}
            session.run()
        else:
            session = self._submitted(buffers, runs, file)
        own, graph = session.program, session.graph
        chip = bench(device or own.profile.device, own.profile.name)
        times, kinds, alike = _times(session, chip)
        costs = DISPATCH[own.runtime]
        found = timing.schedule(graph, times, chip.device.cube_cores, costs)
        needless = set(races.needless(graph, session.touches or {}))
        fewer = timing.schedule(graph, times, chip.device.cube_cores, costs, needless)
        return {
            "device": chip.device.name,
            "us": found.us,
            "busy": found.busy,
            "path": found.path,
            "tasks": [_described(task, found) for task in graph.tasks],
            "slices": [[s.task, s.block, s.core, s.begin, s.end] for s in found.slices],
            "edges": len(graph.edges),
            "needless": len(needless) if edges else None,
            "fewer_us": fewer.us,
            "kinds": kinds,
            "alike": alike,
            "untimed": sorted(own.kernels.missing),
            "costs": costs.source,
        }


def _times(session: GraphSession, chip: Bench) -> tuple[dict[int, float], int, int]:
    """The time of a block of each task, the number of timed tasks, the number that equal another.

    Tasks with the same kernel, blocks, shapes and scalars are timed once. Of tasks that differ
    in scalars alone two are timed, or more if these differ; the rest get their average.
    """
    found: dict[int, float] = {}
    exact: dict[object, float] = {}
    kinds: dict[object, list[float]] = defaultdict(list)
    alike = 0
    for task in session.graph.tasks:
        if task.kind != "task" or task.was_skipped:
            continue
        shapes = tuple((a.region.extents, a.region.strides) for a in task.arguments)
        kind = (task.kernels, task.blocks, shapes)
        key = (kind, tuple(task.scalars))
        if key not in exact and not _settled(kinds[kind]):
            exact[key] = _block_us(task, session, chip)
            kinds[kind].append(exact[key])
        alike += key not in exact
        found[task.number] = exact.get(key, sum(kinds[kind]) / len(kinds[kind]))
    return found, len(exact), alike


def _block_us(task: Task, session: GraphSession, chip: Bench) -> float:
    kernels = session.program.kernels
    if any(k is not None and kernels.is_missing(k) for k in task.kernels):
        return 0.0
    try:
        return tasks.block_us(tasks.TaskLaunch(task, session.runner), chip)
    except PtoError as error:
        raise tasks.named(error, task) from None


def _settled(times: Sequence[float]) -> bool:
    """True if further tasks of this kind need not be timed."""
    alike = len(times) > 1 and abs(times[-1] - times[-2]) <= 0.01 * times[-1]
    return alike or len(times) >= _SCALARS


def _described(task: Task, found: GraphTime) -> list[Any]:
    """Name, file and line of the submission, and when it was ready and ended."""
    loc = task.loc
    place = ("", 0) if loc is None else (loc.file, loc.line)
    return [task.name, *place, found.ready.get(task.number, 0.0), found.ended.get(task.number, 0.0)]


if __name__ == "__main__":
    serve(GraphServer())
