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
from random import Random
from typing import Any, TypeVar

import numpy as np

from pto.core.errors import PtoError
from pto.cxx.native import NativeBuild
from pto.graphs.diff import ValueLog
from pto.graphs.footprint import TaskUse
from pto.graphs.launch import CppRun, Kernels, told
from pto.graphs.limits import RuntimeLimits, limits_of
from pto.graphs.model import Predicate, Task, Use
from pto.graphs.orchestration import GraphMem, Orchestration
from pto.graphs.runs import named
from pto.ir.graph import Operation
from pto.run.sites import RecordLaunch
from pto.target.library import library
from pto.target.profile import DeviceSpec, devices_of
from pto.target.profile import profile as find_profile

T = TypeVar("T")
_ROUNDS = 50  # of the agents of a task, before other tasks run
_RANKS = 64  # capacity of a context
_CONTEXT = f"<QQIIQ{_RANKS}Q{_RANKS}Q"
_PREDICATE = Operation("predicate")
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
        self.kernels = Kernels(builds, self.profile)
        self._sides = {number: (name, side) for number, (name, side, _) in builds.items()}

    @property
    def limits(self) -> RuntimeLimits:
        return limits_of(self.runtime, self._settings)

    def clear(self) -> None:
        """Forget the tasks of earlier requests."""
        self._native.lib.pto_graph_clear()

    def start(self, memory: GraphMem, chip: DeviceSpec | None) -> Orchestration:
        """An orchestration with the cores of a chip, or of the largest chip of the profile."""
        chip_used = chip or max(devices_of(self.profile.name), key=lambda each: each.cube_cores)
        cores = chip_used.cube_cores, chip_used.vector_cores
        return Orchestration(self._native, self._source, self._sides, cores, memory)


class GraphSession(CppRun):
    """One run of an orchestration."""

    def __init__(
        self,
        program: GraphProgram,
        described: Mapping[str, Any],
        memory: GraphMem,
        seed: int | None = None,
        log: ValueLog | None = None,
        chip: DeviceSpec | None = None,
    ) -> None:
        self.orchestration = program.start(memory, chip)
        super().__init__(self.orchestration.graph, seed, log)
        self.orchestration.finish, self.orchestration.in_order = self.schedule.run, seed is None
        self.kernels, self.memory = program.kernels, memory
        self.profile, self.limits = program.profile, program.limits
        self.chip: int = described["chip"]
        self.after: Sequence[int] = described["after"]
        self.is_done = False
        self._was_submitted = False
        self._open: list[tuple[Task, RecordLaunch | None]] = []
        self._words: list[int] = [0]
        self._texts: list[c.Array[c.c_char]] = []
        for argument in described["given"]:
            self._add(argument)

    @property
    def assumed(self) -> int:
        return self.orchestration.assumed

    def is_run(self, task: Task) -> bool:
        """True unless a task has no kernel, or its predicate is false."""
        if task.kind == "task" and task.predicate is not None and not _holds(task.predicate):
            task.was_skipped = True
        return task.kind == "task" and not task.was_skipped

    def decided(self, task: Task) -> list[TaskUse]:
        if task.predicate is None:
            return []
        buffer, at = self.memory.find(task.predicate.address)
        element = np.array([[at, at + task.predicate.width]], np.int64)
        return [TaskUse(buffer, "reads", _PREDICATE, element)]

    def _add(self, argument: Mapping[str, Any]) -> None:
        """An argument: a number, a tensor, an address in a buffer, or a context of ranks."""
        memory = self.memory
        self._words[0] += 1
        if "shape" in argument:
            shape, use = argument["shape"], Use(argument["use"])
            buffer = self.orchestration.adopt(argument["buffer"], argument["name"])
            buffer.use = use
            text = c.create_string_buffer(argument["element"].encode())
            self._texts.append(text)
            number = (Use.IN, Use.OUT, Use.INOUT).index(use)
            address = buffer.address + argument["offset"]
            self._words += [1, address, len(shape), c.addressof(text), number, *shape]
            return
        if "word" in argument:
            word = argument["word"]
        elif "windows" in argument:
            starts = [memory.starts[n] for n in argument["windows"]]
            listed = [*starts, *[0] * (2 * _RANKS - len(starts))]
            record = struct.pack(
                _CONTEXT, 0, 0, argument["rank"], len(starts), argument["size"], *listed
            )
            number = memory.allocate(len(record))
            memory.arrays[number][:] = np.frombuffer(record, np.uint8)
            word = memory.starts[number]
        else:
            word = memory.starts[argument["buffer"]] + argument["offset"]
        self._words += [0, word - (1 << 64) if word >= 1 << 63 else word]

    def submit(self) -> None:
        """Call the orchestration."""
        self._was_submitted = True
        self.orchestration.is_watched = self.touches is not None
        self.orchestration.run(self._words)

    def run(self) -> None:
        self.submit()
        super().run()

    # ---- together with other graphs

    def advance(self, random: Random | None = None) -> bool:
        """Run every task that may run, or some of them; True if more may happen."""
        moved = not self._was_submitted
        if not self._was_submitted:
            self.submit()
        while (number := self.schedule.take()) is not None:
            task, launch = self.graph.tasks[number], None
            if self.is_run(task):
                launch, _ = self.begun(task)
            self._open.append((task, launch))
            moved = True
            if random is not None and random.random() < 0.5:
                break  # others begin after some of these have run
        for open_task in _shuffled(self._open, random):
            moved |= self._step(*open_task)
        if not self._open and not self.schedule.ready:
            self.schedule.require_end()
            self.is_done = moved = True
        return moved

    def _step(self, task: Task, launch: RecordLaunch | None) -> bool:
        try:
            with told(task):
                has_ended = launch is None or launch.go_on(_ROUNDS)
        except PtoError as error:
            raise named(error, task) from None
        if has_ended:
            self._open.remove((task, launch))
            self.schedule.finish(task.number)
        return has_ended or (launch is not None and launch.moved)

    @property
    def deadlock(self) -> PtoError | None:
        """The error of the first blocked task, with its wait."""
        blocked = ((t, run) for t, run in self._open if run is not None)
        return next((named(run.deadlock, task) for task, run in blocked), None)


def run_together(runs: Sequence[GraphSession], seed: int | None = None) -> None:
    """Advance graphs that may run until all have ended; a seed chooses among their orders."""
    random = None if seed is None else Random(seed)
    while not all(r.is_done for r in runs):
        busy: set[int] = set()  # chips with an earlier graph that has not ended
        free: list[GraphSession] = []
        for run in runs:
            if not run.is_done:
                if run.chip not in busy and all(runs[n].is_done for n in run.after):
                    free.append(run)
                busy.add(run.chip)
        moved = [run.advance(random) for run in _shuffled(free, random)]
        if not any(moved):
            raise next(error for r in runs if (error := r.deadlock) is not None)


def _shuffled(items: Sequence[T], random: Random | None) -> list[T]:
    return list(items) if random is None else random.sample(items, len(items))


def _holds(predicate: Predicate) -> bool:
    raw = c.string_at(predicate.address, predicate.width)
    value = int.from_bytes(raw, "little", signed=True)
    return bool(_COMPARE[predicate.comparison](value, predicate.target))
