"""The child process of a graph: native code of the orchestration and of every kernel.

The parent (`process.py`) sends one request after another as JSON lines and reads one answer each.
"""

from __future__ import annotations

import ctypes as c
import json
import operator
import resource
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError
from pto.cxx.child import packed, serve
from pto.cxx.native import NativeBuild
from pto.graphs import dry, races, timing
from pto.graphs import launch as tasks
from pto.graphs.diff import ValueLog
from pto.graphs.footprint import TaskUse
from pto.graphs.limits import limits_of, usage
from pto.graphs.model import Graph, Predicate, Task, Use
from pto.graphs.orchestration import GraphMem, Orchestration
from pto.graphs.schedule import TaskSchedule
from pto.graphs.timing import DISPATCH, GraphTime
from pto.observe.timing.chips import Bench, bench
from pto.run.sites import RecordLaunch
from pto.target.library import library
from pto.target.profile import profile as find_profile

_DECLARED = (Use.IN, Use.OUT, Use.INOUT)  # by number of `process.USES`
_SCALARS = 8  # sets of scalars of one kind of task that are timed
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class GraphServer:
    """Answers requests about one graph."""

    _recorder: ValueLog | None = None

    def load(
        self,
        orchestration: Mapping[str, str],
        kernels: Mapping[str, Sequence[str]],
        profile: str,
        cores: Sequence[int],
    ) -> dict[str, Any]:
        """Load the builds: the orchestration, and (name, side, path) of each kernel."""
        self._profile = library(find_profile(profile))
        self._native = NativeBuild(Path(orchestration["build"]))
        self._native.lib.pto_graph_run.argtypes = [c.POINTER(c.c_int64)]
        self._native.lib.pto_graph_run.restype = None
        self._source = Path(orchestration["source"])
        self._kernels = tasks.Kernels(
            {int(n): (k[0], k[1], k[2]) for n, k in kernels.items()}, self._profile
        )
        self._names = {int(n): k[0] for n, k in kernels.items()}
        self._cores = (int(cores[0]), int(cores[1]))
        return {}

    def run(
        self, given: Sequence[Mapping[str, Any]], file: str, seed: int | None = None
    ) -> dict[str, Any]:
        """Run the graph on the tensors of a file, which receives what they become."""
        _, counts = self._execute_all(given, file, seed, watched=False)
        return {**counts, "findings": [packed(d) for d in self._kernels.warnings]}

    def record(
        self, given: Sequence[Mapping[str, Any]], file: str, folder: str, kept: int | None
    ) -> dict[str, Any]:
        """Run the graph and write what each task leaves behind into a folder."""
        session = GraphSession.on(self, given, np.fromfile(file, np.uint8))
        self._recorder = ValueLog(Path(folder), kept)
        try:
            session.run()
        finally:
            self._recorder.end()
            self._recorder = None
        return {"tasks": len(session.orchestration.graph.tasks)}

    def sanitize(
        self,
        given: Sequence[Mapping[str, Any]],
        file: str,
        runtime: str,
        settings: Mapping[str, Any],
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Run the graph with every task watched; answers the findings between tasks."""
        self._touches: dict[int, list[TaskUse]] = {}
        graph, counts = self._execute_all(given, file, seed, watched=True)
        found = races.findings(graph, self._touches)
        found += usage(graph, limits_of(runtime, settings)).findings
        return {
            **counts,
            "findings": [packed(d) for d in found],
            "needless": len(races.needless(graph, self._touches)),
        }

    def _execute_all(
        self, given: Sequence[Mapping[str, Any]], file: str, seed: int | None, watched: bool
    ) -> tuple[Graph, dict[str, Any]]:
        """Run every task on the tensors of a file and write them back; the graph and its counts."""
        began = time.perf_counter()
        raw = np.fromfile(file, np.uint8)
        session = GraphSession.on(self, given, raw, seed, watched)
        session.run()
        session.give_back(raw)
        raw.tofile(file)
        graph = session.orchestration.graph
        return graph, {
            "tasks": len(graph.tasks),
            "skipped": sum(t.was_skipped for t in graph.tasks),
            "edges": len(graph.edges),
            "seconds": time.perf_counter() - began,
        }

    def dry(
        self,
        given: Sequence[Mapping[str, Any]],
        file: str,
        runtime: str,
        settings: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Run the orchestration alone, on tensors that may have no values."""
        began = time.perf_counter()
        _lift_limit()
        session = GraphSession.on(self, given, np.fromfile(file, np.uint8))
        own = session.orchestration
        own.is_dry = True
        session.submit()
        found = dry.report(own.graph, limits_of(runtime, settings))
        return {
            "tasks": len(own.graph.tasks),
            "edges": len(own.graph.edges),
            "seconds": time.perf_counter() - began,
            "findings": [packed(d) for d in found.findings],
            "slots": found.usage.slots,
            "heap": found.usage.bytes,
            "undecided": found.undecided,
            "assumed": own.assumed,
        }

    def time(
        self,
        given: Sequence[Mapping[str, Any]],
        file: str,
        runtime: str,
        settings: Mapping[str, Any],
        device: str | None,
        edges: bool,
    ) -> dict[str, Any]:
        """Time every task and schedule them on the cores; the answer goes to the file."""
        raw = np.fromfile(file, np.uint8)
        chip = bench(device or self._profile.device, self._profile.name)
        self._touches = {}
        if not edges:
            _lift_limit()
        session = GraphSession.on(self, given, raw, None, watched=edges)
        own = session.orchestration
        own.is_dry = not edges
        (session.run if edges else session.submit)()
        times, kinds, alike = self._times(own, chip)
        costs = DISPATCH[runtime]
        found = timing.schedule(own.graph, times, chip.device.cube_cores, costs)
        needless = set(races.needless(own.graph, self._touches)) if edges else set()
        fewer = timing.schedule(own.graph, times, chip.device.cube_cores, costs, needless)
        answer = {
            "device": chip.device.name,
            "us": found.us,
            "busy": found.busy,
            "path": found.path,
            "tasks": [_described(task, found) for task in own.graph.tasks],
            "slices": [[s.task, s.block, s.core, s.begin, s.end] for s in found.slices],
            "edges": len(own.graph.edges),
            "needless": len(needless) if edges else None,
            "fewer_us": fewer.us,
            "kinds": kinds,
            "alike": alike,
            "untimed": sorted(self._kernels.missing),
            "costs": costs.source,
        }
        Path(file).write_text(json.dumps(answer), encoding="utf-8")
        return {}

    def _times(self, own: Orchestration, chip: Bench) -> tuple[dict[int, float], int, int]:
        """The time of a block of each task, the number of timed tasks, the number that equal
        another.

        Tasks with the same kernel, blocks, shapes and scalars are timed once. Of tasks that differ
        in scalars alone two are timed, or more if these differ; the rest get their average.
        """
        found: dict[int, float] = {}
        exact: dict[object, float] = {}
        kinds: dict[object, list[float]] = defaultdict(list)
        alike = 0
        for task in own.graph.tasks:
            if task.kind != "task" or task.was_skipped:
                continue
            shapes = tuple((a.region.extents, a.region.strides) for a in task.arguments)
            kind = (task.kernels, task.blocks, shapes)
            key = (kind, tuple(task.scalars))
            if key not in exact and not _settled(kinds[kind]):
                exact[key] = self._block_us(task, own.memory, chip)
                kinds[kind].append(exact[key])
            alike += key not in exact
            found[task.number] = exact.get(key, sum(kinds[kind]) / len(kinds[kind]))
        return found, len(exact), alike

    def _block_us(self, task: Task, memory: GraphMem, chip: Bench) -> float:
        if any(k is not None and self._kernels.is_missing(k) for k in task.kernels):
            return 0.0
        try:
            launch = tasks.TaskLaunch(task, self._kernels, self._profile, memory)
            return tasks.block_us(launch, chip)
        except PtoError as error:
            raise tasks.named(error, task) from None

    # ---- for sessions

    def clear(self) -> None:
        """Forget the tasks of earlier requests."""
        self._native.lib.pto_graph_clear()

    def start(self, memory: GraphMem) -> Orchestration:
        return Orchestration(self._native, self._source, self._names, self._cores, memory)

    def execute(self, graph: Graph, memory: GraphMem, number: int, watched: bool) -> None:
        """Run one task, unless its predicate says no."""
        task = graph.tasks[number]
        if not _is_run(task):
            return
        given = (task, self._kernels, self._profile, memory)
        if self._recorder is not None:
            self._recorder.before(task, memory.arrays)
        try:
            if watched:
                self._touches[number] = tasks.watched(*given)
            else:
                tasks.launch(*given)
        except PtoError as error:
            raise tasks.named(error, task) from None
        if self._recorder is not None:
            self._recorder.add(task, memory.arrays)

    def begin(self, task: Task, memory: GraphMem) -> RecordLaunch | None:
        """Begin a task that may wait for other tasks; None if it has no kernel to run."""
        if not _is_run(task):
            return None
        return tasks.begun(task, self._kernels, self._profile, memory)[0]


class GraphSession:
    """One run of the orchestration on one set of tensors."""

    def __init__(
        self, server: GraphServer, memory: GraphMem, seed: int | None = None, watched: bool = False
    ) -> None:
        self._memory = memory
        self.orchestration = server.start(memory)
        graph = self.orchestration.graph
        self.schedule = TaskSchedule(
            graph, lambda number: server.execute(graph, memory, number, watched), seed
        )
        self.orchestration.finish = self.schedule.run
        self._words: list[int] = [0]
        self._texts: list[c.Array[c.c_char]] = []
        self._outputs: list[tuple[int, int]] = []  # where in the file, which buffer

    @classmethod
    def on(
        cls,
        server: GraphServer,
        given: Sequence[Mapping[str, Any]],
        raw: np.ndarray[Any, np.dtype[np.uint8]],
        seed: int | None = None,
        watched: bool = False,
    ) -> GraphSession:
        """A run on the tensors of a file."""
        server.clear()
        made = cls(server, GraphMem(), seed, watched)
        for each in given:
            made._add(each, raw)
        return made

    def _add(self, each: Mapping[str, Any], raw: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        if "word" in each:
            self.add_word(each["word"])
            return
        at, size = each["at"], each["size"]
        number = self._memory.allocate(size)
        if at is not None:
            self._memory.arrays[number][:] = raw[at : at + size]
            self._outputs.append((at, number))
        self.add_tensor(number, each)

    def add_word(self, word: int) -> None:
        """The next argument: a scalar."""
        self._words[0] += 1
        self._words += [0, _signed(word)]

    def add_tensor(self, number: int, described: Mapping[str, Any], offset: int = 0) -> None:
        """The next argument: a tensor at an offset in a buffer."""
        shape, use = described["shape"], described["use"]
        buffer = self.orchestration.adopt(number, described["name"])
        buffer.use = _DECLARED[use]
        text = c.create_string_buffer(described["element"].encode())
        self._texts.append(text)
        self._words[0] += 1
        self._words += [1, buffer.address + offset, len(shape), c.addressof(text), use, *shape]

    def submit(self) -> None:
        """Call the orchestration."""
        self.orchestration.run(self._words)

    def run(self) -> None:
        self.submit()
        self.schedule.run()
        require_end(self.orchestration.graph, self.schedule)

    def give_back(self, raw: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        for at, number in self._outputs:
            array = self._memory.arrays[number]
            raw[at : at + array.size] = array


def _is_run(task: Task) -> bool:
    """True unless a task has no kernel, or its predicate says no."""
    if task.kind == "task" and task.predicate is not None and not _holds(task.predicate):
        task.was_skipped = True
    return task.kind == "task" and not task.was_skipped


def _settled(times: Sequence[float]) -> bool:
    """True if further tasks of this kind need not be timed."""
    alike = len(times) > 1 and abs(times[-1] - times[-2]) <= 0.01 * times[-1]
    return alike or len(times) >= _SCALARS


def _described(task: Task, found: GraphTime) -> list[Any]:
    """Name, file and line of the submission, and when it was ready and ended."""
    loc = task.loc
    place = ("", 0) if loc is None else (loc.file, loc.line)
    return [task.name, *place, found.ready.get(task.number, 0.0), found.ended.get(task.number, 0.0)]


def require_end(graph: Graph, schedule: TaskSchedule) -> None:
    """Refuse a graph with tasks that no order reaches."""
    stuck = schedule.stuck
    if not stuck:
        return
    first = graph.tasks[stuck[0]]
    before = next(b for b, after in graph.edges if after == first.number and b in stuck)
    message = f"{first.title} waits for {graph.tasks[before].title}, which never runs"
    raise PtoError(Diagnostic("PTO-G005", message, first.loc))


def _lift_limit() -> None:
    """Allow more address space: buffers of a dry run have pages that no task touches."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _holds(predicate: Predicate) -> bool:
    raw = c.string_at(predicate.address, predicate.width)
    value = int.from_bytes(raw, "little", signed=True)
    return bool(_COMPARE[predicate.comparison](value, predicate.target))


if __name__ == "__main__":
    serve(GraphServer())
