"""Runs of orchestrations in the child process: one graph, or graphs of several chips.

A chip runs its graphs in order, and a graph waits for earlier ones that use the same buffers.
Tasks of different chips may wait for each other's signals: a blocked task yields to other tasks.
The chips share one memory, so that an address of another chip is an address.
"""

from __future__ import annotations

import ctypes as c
import operator
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.cxx.native import NativeBuild
from pto.graphs import launch as tasks
from pto.graphs.diff import ValueLog
from pto.graphs.footprint import TaskUse
from pto.graphs.limits import RuntimeLimits, limits_of
from pto.graphs.model import Graph, Predicate, Task, Use
from pto.graphs.orchestration import GraphMem, Orchestration
from pto.graphs.schedule import TaskSchedule
from pto.run.sites import RecordLaunch
from pto.target.library import library
from pto.target.profile import profile as find_profile

_CORES = {"a2a3": (24, 48), "a5": (36, 72)}  # cube and vector cores, as a runtime reports them
_ROUNDS = 50  # of the agents of a task, before other tasks run
_RANKS = 64  # capacity of a context
_CONTEXT = f"<QQIIQ{_RANKS}Q{_RANKS}Q"
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class GraphProgram:
    """The builds of an orchestration and its kernels, loaded."""

    def __init__(
        self,
        build: str,
        source: str,
        kernels: Mapping[str, Sequence[str]],
        profile: str,
        runtime: str,
        settings: Mapping[str, Any],
    ) -> None:
        self.profile = library(find_profile(profile))
        self.runtime, self._settings = runtime, settings
        self._native = NativeBuild(Path(build))
        self._native.lib.pto_graph_run.argtypes = [c.POINTER(c.c_int64)]
        self._native.lib.pto_graph_run.restype = None
        self._source = Path(source)
        builds = {int(n): (k[0], k[1], k[2]) for n, k in kernels.items()}
        self.kernels = tasks.Kernels(builds, self.profile)
        self._names = {number: name for number, (name, _, _) in builds.items()}

    @property
    def limits(self) -> RuntimeLimits:
        return limits_of(self.runtime, self._settings)

    def clear(self) -> None:
        """Forget the tasks of earlier requests."""
        self._native.lib.pto_graph_clear()

    def start(self, memory: GraphMem) -> Orchestration:
        cores = _CORES[self.profile.name]
        return Orchestration(self._native, self._source, self._names, cores, memory)


class GraphSession:
    """One run of an orchestration."""

    def __init__(
        self,
        program: GraphProgram,
        described: Mapping[str, Any],
        memory: GraphMem,
        seed: int | None = None,
        log: ValueLog | None = None,
    ) -> None:
        self.program, self.memory = program, memory
        self.runner = tasks.TaskRunner(program.kernels, program.profile, memory)
        self.chip: int = described["chip"]
        self.after: Sequence[int] = described["after"]
        self.touches: dict[int, list[TaskUse]] | None = None  # of watched tasks
        self.is_done = False
        self.orchestration = program.start(memory)
        self.schedule = TaskSchedule(self.graph, self._execute, seed)
        self.orchestration.finish = self.schedule.run
        self._log = log
        self._was_submitted = False
        self._open: list[tuple[Task, RecordLaunch | None]] = []
        self._words: list[int] = [0]
        self._texts: list[c.Array[c.c_char]] = []
        for each in described["given"]:
            self._add(each)

    @property
    def graph(self) -> Graph:
        return self.orchestration.graph

    def _add(self, each: Mapping[str, Any]) -> None:
        """An argument: a number, a tensor, an address in a buffer, or a context of ranks."""
        memory = self.memory
        self._words[0] += 1
        if "shape" in each:
            shape, use = each["shape"], Use(each["use"])
            buffer = self.orchestration.adopt(each["buffer"], each["name"])
            buffer.use = use
            text = c.create_string_buffer(each["element"].encode())
            self._texts.append(text)
            number = (Use.IN, Use.OUT, Use.INOUT).index(use)
            place = buffer.address + each["offset"]
            self._words += [1, place, len(shape), c.addressof(text), number, *shape]
            return
        if "word" in each:
            word = each["word"]
        elif "windows" in each:
            starts = [memory.starts[n] for n in each["windows"]]
            listed = [*starts, *[0] * (2 * _RANKS - len(starts))]
            record = struct.pack(_CONTEXT, 0, 0, each["rank"], len(starts), each["size"], *listed)
            number = memory.allocate(len(record))
            memory.arrays[number][:] = np.frombuffer(record, np.uint8)
            word = memory.starts[number]
        else:
            word = memory.starts[each["buffer"]] + each["offset"]
        self._words += [0, word - (1 << 64) if word >= 1 << 63 else word]

    def submit(self) -> None:
        """Call the orchestration."""
        self._was_submitted = True
        self.orchestration.run(self._words)

    def run(self) -> None:
        """Run every task to its end, in an order that the edges allow."""
        self.submit()
        self.schedule.run()
        self.schedule.require_end()

    def _execute(self, number: int) -> None:
        """Run one task to its end, unless its predicate says no."""
        task = self.graph.tasks[number]
        if not _is_run(task):
            return
        if self._log is not None:
            self._log.before(task, self.memory.arrays)
        try:
            if self.touches is not None:
                self.touches[number] = self.runner.watched(task)
            else:
                self.runner.launch(task)
        except PtoError as error:
            raise tasks.named(error, task) from None
        if self._log is not None:
            self._log.add(task, self.memory.arrays)

    # ---- together with other graphs

    def advance(self) -> bool:
        """Run every task that may run; True if anything happened."""
        moved = not self._was_submitted
        if not self._was_submitted:
            self.submit()
        while (number := self.schedule.take()) is not None:
            task, launch = self.graph.tasks[number], None
            if _is_run(task):
                launch, _ = self.runner.begun(task)
            self._open.append((task, launch))
            moved = True
        for each in list(self._open):
            moved |= self._step(*each)
        if not self._open and not self.schedule.ready:
            self.schedule.require_end()
            self.is_done = moved = True
        return moved

    def _step(self, task: Task, launch: RecordLaunch | None) -> bool:
        try:
            has_ended = launch is None or launch.go_on(_ROUNDS)
        except PtoError as error:
            raise tasks.named(error, task) from None
        if has_ended:
            self._open.remove((task, launch))
            self.schedule.finish(task.number)
        return has_ended or (launch is not None and launch.moved)

    @property
    def deadlock(self) -> PtoError | None:
        """The error of the first blocked task, with its wait."""
        found = ((t, run) for t, run in self._open if run is not None)
        return next((tasks.named(run.deadlock, task) for task, run in found), None)


def run_together(runs: Sequence[GraphSession]) -> None:
    """Advance graphs that may run until all have ended."""
    while not all(r.is_done for r in runs):
        moved = False
        busy: set[int] = set()  # chips with an earlier graph that has not ended
        for run in runs:
            if run.is_done:
                continue
            if run.chip not in busy and all(runs[n].is_done for n in run.after):
                moved |= run.advance()
            busy.add(run.chip)
        if not moved:
            raise next(error for r in runs if (error := r.deadlock) is not None)


def _is_run(task: Task) -> bool:
    """True unless a task has no kernel, or its predicate says no."""
    if task.kind == "task" and task.predicate is not None and not _holds(task.predicate):
        task.was_skipped = True
    return task.kind == "task" and not task.was_skipped


def _holds(predicate: Predicate) -> bool:
    raw = c.string_at(predicate.address, predicate.width)
    value = int.from_bytes(raw, "little", signed=True)
    return bool(_COMPARE[predicate.comparison](value, predicate.target))
