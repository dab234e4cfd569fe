"""One task on the machine: its cube and vector kernels, each from a build of its own.

A kernel is compiled once for its side of a core. A task launches the kernels it names together, so
that they can signal each other. This module runs in the child process with the native code.
"""

from __future__ import annotations

import ctypes as c
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic
from pto.core.intervals import merged, without
from pto.core.memory import Memory
from pto.cxx.child import tell
from pto.cxx.feed import BuildSide
from pto.cxx.memory import ProgramMemory
from pto.cxx.native import NativeBuild
from pto.cxx.program import decided
from pto.cxx.timing import RecordedLaunch
from pto.graphs.footprint import COMPARED, SMALL, TaskFootprint, TaskUse
from pto.graphs.model import Task, Use
from pto.graphs.orchestration import Bytes, CallChain, GraphMem
from pto.graphs.runs import GraphRun, block_us
from pto.ir.graph import Operation
from pto.observe.sanitize import watch_run
from pto.observe.timing.chips import Bench
from pto.run import sites as s
from pto.run.machine.core import Core
from pto.run.machine.device import Device
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile

_SCALAR = Operation("scalar code")


@dataclass(frozen=True, slots=True)
class TaskKernel:
    """A compiled kernel: its side of a core, and the entry to call."""

    name: str
    side: BuildSide
    call: int


class Kernels:
    """The kernels of a graph by number; each build is loaded once."""

    def __init__(self, builds: dict[int, tuple[str, str, str]], profile: Profile) -> None:
        self._builds = builds  # number -> name, side, path
        self._profile = profile
        self._loaded: dict[int, TaskKernel] = {}
        self._natives: dict[tuple[str, str], tuple[BuildSide, int]] = {}

    def find(self, number: int) -> TaskKernel:
        kernel = self._loaded.get(number)
        if kernel is None:
            name, side, path = self._builds[number]
            side_and_call = self._natives.get((path, side))
            if side_and_call is None:
                native = NativeBuild(Path(path))
                call = c.cast(native.lib.pto_task, c.c_void_p).value or 0
                side_and_call = self._natives[path, side] = (
                    BuildSide(native, side, self._profile),
                    call,
                )
            kernel = self._loaded[number] = TaskKernel(name, *side_and_call)
        return kernel

    def is_missing(self, number: int) -> bool:
        """True if the kernel could not be compiled."""
        return not self._builds[number][2]

    @property
    def missing(self) -> list[str]:
        return [name for name, _, path in self._builds.values() if not path]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for side, _ in self._natives.values() for d in side.warnings]


class TaskMemory(ProgramMemory):
    """Global memory of one task: a buffer is attached when an instruction first touches it."""

    def __init__(self, device: Device, memory: GraphMem) -> None:
        super().__init__(device, ())
        self._memory = memory
        self._attached: dict[int, Memory] = {}
        self.numbers: dict[int, int] = {}  # of attached memories: buffer by identity

    def find(self, address: int) -> tuple[Memory, int]:
        number, offset = self._memory.find(address)
        memory = self._attached.get(number)
        if memory is None:
            memory = self._attached[number] = self._device.attach(self._memory.arrays[number])
            self.numbers[id(memory)] = number
        return memory, offset


@contextmanager
def told(task: Task) -> Generator[None]:
    """Send the current task to the parent process: native code may end this process."""
    where = task.where
    assert isinstance(where, CallChain)
    tell(json.dumps([task.number, task.name, str(where.path), str(where.source), *where.frames]))
    try:
        yield
    finally:
        tell("")


class CppRun(GraphRun):
    """A run of a graph with C++ kernels."""

    kernels: Kernels
    memory: GraphMem

    @property
    def arrays(self) -> Sequence[Bytes]:
        return self.memory.arrays

    @property
    def untimed(self) -> Sequence[str]:
        return self.kernels.missing

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        return self.kernels.warnings

    def begun(
        self,
        task: Task,
        observer: Observer | None = None,
        tap: Hook | None = None,
        only: Sequence[int] | None = None,
    ) -> tuple[s.RecordLaunch, TaskMemory]:
        """A task with blocks that are ready to run: all, or only some."""
        device = Device(self.profile, observer=observer, engine="reference")
        if tap is not None:
            device.watch(tap)
        shared = TaskMemory(device, self.memory)
        sides = list(_sides(task, self.kernels, shared, device))
        return s.RecordLaunch(device, self.profile, sides, task.blocks, only), shared

    def launch(
        self,
        task: Task,
        observer: Observer | None = None,
        tap: Hook | None = None,
        only: Sequence[int] | None = None,
    ) -> TaskMemory:
        run, shared = self.begun(task, observer, tap, only)
        with told(task):
            if not run.go_on():
                raise run.deadlock
        return shared

    def sanitized(self, task: Task) -> list[Diagnostic]:
        """Run a task several times from the same bytes."""
        arrays = self.memory.arrays
        before = {a.region.buffer: arrays[a.region.buffer].copy() for a in task.arguments}

        def run(observer: Observer | None = None, tap: Hook | None = None) -> None:
            restore()
            self.launch(task, observer, tap)

        def restore() -> None:
            for number, old in before.items():
                arrays[number][:] = old

        try:
            findings = watch_run(self.profile, run, lambda: None, lambda tap: run(tap=tap))
            return decided(
                findings, [self.kernels.find(k).side for k in task.kernels if k is not None]
            )
        finally:
            restore()

    def watched(self, task: Task) -> list[TaskUse]:
        """Scalar code of a kernel runs natively. Bytes that have changed and that no instruction
        writes count as written; a small input that no instruction touches counts as read."""
        arrays = self.memory.arrays
        before = {
            a.region.buffer: arrays[a.region.buffer].copy()
            for a in task.arguments
            if arrays[a.region.buffer].size <= (SMALL if a.use is Use.IN else COMPARED)
        }
        observer = TaskFootprint()
        used = self.launch(task, observer)
        uses = observer.take(lambda memory, touched: (used.numbers[id(memory)], touched))
        buffers = {t.buffer for t in uses}
        for buffer, old in before.items():
            changed = np.flatnonzero(old != arrays[buffer]).astype(np.int64)
            written = merged([t.bytes for t in uses if t.buffer == buffer and t.how != "reads"])
            unseen = without(merged([np.stack([changed, changed + 1], axis=1)]), written)
            if len(unseen):
                uses.append(TaskUse(buffer, "writes", _SCALAR, unseen))
        for argument in task.arguments:
            region = argument.region
            low, high = region.span
            if argument.use is Use.IN and region.buffer not in buffers and 0 < high - low <= SMALL:
                everything = np.array([[low, high]], np.int64)
                uses.append(TaskUse(region.buffer, "reads", _SCALAR, everything))
        return uses

    def block_us(self, task: Task, chip: Bench) -> float:
        if any(k is not None and self.kernels.is_missing(k) for k in task.kernels):
            return 0.0
        used = sorted({a.region.buffer for a in task.arguments})
        arrays = [(self.memory.starts[n], self.memory.arrays[n].size) for n in used]

        def dry_run(tap: Hook, number: int) -> None:
            self.launch(task, tap=tap, only=[number])

        launch = RecordedLaunch(self.profile, task.blocks, arrays, dry_run)
        return block_us(launch, chip, task.name)


def _sides(
    task: Task, kernels: Kernels, memory: TaskMemory, device: Device
) -> Iterator[s.RecordSide]:
    cube, first, second = task.kernels
    if cube is not None:
        yield _side([kernels.find(cube)], task, memory, device)
    if first is not None or second is not None:
        vectors = [None if k is None else kernels.find(k) for k in (first, second)]
        yield _side(vectors if second is not None else vectors[:1], task, memory, device)


def _side(
    kernels: list[TaskKernel | None] | list[TaskKernel],
    task: Task,
    memory: TaskMemory,
    device: Device,
) -> s.RecordSide:
    """The agents of one side of every block: sub-block n runs the n-th kernel."""
    name = next(k.side.name for k in kernels if k is not None)
    for kernel in kernels:
        if kernel is not None:
            kernel.side.begin(device)

    def feed(core: Core) -> Iterator[Any]:
        kernel = kernels[core.sub]
        if kernel is None:
            return iter(())
        side = kernel.side
        return side.feed(side.build.agent(kernel.call, task.words, core), core, memory)

    return s.RecordSide(name, len(kernels), feed)
