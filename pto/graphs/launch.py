"""One task on the machine: its cube and vector kernels, each from a build of its own.

A kernel is compiled once for its side of a core. A task launches the kernels it names together, so
that they can signal each other. This module runs in the child process with the native code.
"""

from __future__ import annotations

import ctypes as c
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.memory import Memory
from pto.cxx.feed import BuildSide
from pto.cxx.memory import ProgramMemory
from pto.cxx.native import NativeBuild
from pto.graphs.footprint import Bytes, TaskFootprint, TaskUse, merged, union
from pto.graphs.model import Task, Use
from pto.graphs.orchestration import GraphMem
from pto.ir.graph import Operation
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.chips import Bench
from pto.observe.timing.kinds import regions_of
from pto.observe.timing.report import time_launch
from pto.observe.timing.stream import Recording, RecordStream
from pto.run import sites as s
from pto.run.machine.core import Core
from pto.run.machine.device import Device
from pto.run.watch.events import Observer
from pto.run.watch.outline import DryRun
from pto.target.facts import Profile

_SMALL = 1 << 16  # bytes that scalar code may go through
_SCALAR = Operation("scalar code")
SIDES = {"aic": "cube", "aiv": "vector"}
ENTRY = """
#if __has_include("intrinsic.h")
#include "intrinsic.h"
#define PTO_GRAPH_CONTEXT 1
#endif
extern "C" __attribute__((visibility("default"))) void pto_task(const void* given)
{
    int64_t words[64];
    __builtin_memcpy(words, given, sizeof words);
#ifdef PTO_GRAPH_CONTEXT
    // The index of the block and the number of blocks; runtimes name these fields differently.
    LocalContext local{int32_t(::pto::machine::now->block), int32_t(::pto::machine::now->blocks)};
    GlobalContext global{};
    global.sub_block_id = int32_t(::pto::machine::now->sub);
    words[SPMD_LOCAL_CONTEXT_INDEX] = int64_t(&local);
    words[SPMD_GLOBAL_CONTEXT_INDEX] = int64_t(&global);
#if PTO_MACHINE_PROFILE == 2  // a2a3: this register is 0 in both lanes (docs/decisions_isa.md)
    ::pto::machine::now->sub = 0;
#endif
#endif
    kernel_entry(words);
}
"""

# Before ENTRY, for a kernel that leaves the end of its task to counters of other kernels.
DEFERRED_API = "pto_async_kernel_api.h"
DEFERRED = """
static void pto_graph_deferred(int64_t* words)
{
    DeferredCompletionSlab left{};
    auto* local = reinterpret_cast<LocalContext*>(words[SPMD_LOCAL_CONTEXT_INDEX]);
    local->async_ctx = AsyncCtx::make(PTO2TaskId{0}, &left);
    kernel_entry(words);
    for (uint32_t n = 0; n < left.count; ++n) {
        const auto& each = left.entries[n];
        if (each.completion_type != COMPLETION_TYPE_COUNTER)
            throw std::runtime_error("a task ends by an event of a DMA engine: not modelled");
        ::pto::comm::Signal counter(reinterpret_cast<int32_t*>(each.addr));
        ::pto::comm::TWAIT(counter, int32_t(each.expected_value), ::pto::comm::WaitCmp::GE);
    }
}
#define kernel_entry pto_graph_deferred
"""


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
        found = self._loaded.get(number)
        if found is None:
            name, side, path = self._builds[number]
            made = self._natives.get((path, side))
            if made is None:
                native = NativeBuild(Path(path))
                call = c.cast(native.lib.pto_task, c.c_void_p).value or 0
                made = self._natives[path, side] = BuildSide(native, side, self._profile), call
            found = self._loaded[number] = TaskKernel(name, *made)
        return found

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
        self._order = sorted(range(len(memory.starts)), key=memory.starts.__getitem__)
        self._addresses = [memory.starts[n] for n in self._order]
        self._attached: dict[int, Memory] = {}
        self.numbers: dict[int, int] = {}  # of attached memories: buffer by identity

    def find(self, address: int) -> tuple[Memory, int]:
        at = bisect_right(self._addresses, address) - 1
        if at >= 0:
            number, start = self._order[at], self._addresses[at]
            array = self._memory.arrays[number]
            if address <= start + array.size:
                found = self._attached.get(number)
                if found is None:
                    found = self._attached[number] = self._device.attach(array)
                    self.numbers[id(found)] = number
                return found, address - start
        raise fail("PTO-M114", f"{address:#x} is in no memory of the graph")


def launch(
    task: Task,
    kernels: Kernels,
    profile: Profile,
    memory: GraphMem,
    observer: Observer | None = None,
) -> TaskMemory:
    """Run a task to its end; raises what it does wrong."""
    run, shared = begun(task, kernels, profile, memory, observer)
    if not run.go_on():
        raise run.deadlock
    return shared


def begun(
    task: Task,
    kernels: Kernels,
    profile: Profile,
    memory: GraphMem,
    observer: Observer | None = None,
) -> tuple[s.RecordLaunch, TaskMemory]:
    """A task with blocks that are ready to run."""
    device = Device(profile, observer=observer, engine="reference")
    shared = TaskMemory(device, memory)
    sides = list(_sides(task, kernels, shared, device))
    return s.RecordLaunch(device, profile, sides, task.blocks), shared


@dataclass(slots=True)
class TaskLaunch:
    """A task, described block by block for the timing; nothing is executed."""

    task: Task
    kernels: Kernels
    profile: Profile
    memory: GraphMem
    _last: tuple[int, RecordStream] = field(default_factory=lambda: (-1, RecordStream()))

    @property
    def blocks(self) -> int:
        return self.task.blocks

    @property
    def arrays(self) -> list[tuple[int, int]]:
        used = {a.region.buffer for a in self.task.arguments}
        return [(self.memory.starts[n], self.memory.arrays[n].size) for n in sorted(used)]

    def record(self, number: int) -> RecordStream:
        if self._last[0] != number:
            recording = Recording(self.profile.sync)
            device = Device(self.profile, engine="reference")
            device.watch(DryRun(recording))
            shared = TaskMemory(device, self.memory)
            sides = list(_sides(self.task, self.kernels, shared, device))
            run = s.RecordLaunch(device, self.profile, sides, self.blocks, [number])
            if not run.go_on():
                raise run.deadlock
            recording.end()
            self._last = number, recording.stream
        return self._last[1]

    def regions(self, number: int) -> list[GlobalRegion]:
        return regions_of(self.record(number))


def block_us(launch: TaskLaunch, chip: Bench) -> float:
    """The time of one block on a core of a chip."""
    found = time_launch(launch, chip, launch.task.name)
    return found.core_us / max(found.rounds, 1)


def watched(task: Task, kernels: Kernels, profile: Profile, memory: GraphMem) -> list[TaskUse]:
    """Run a task and return the bytes it touched.

    Scalar code of a kernel runs natively. Bytes of a small argument that have changed and that no
    instruction writes count as written; a small input that no instruction touches counts as read.
    """
    before = {
        a.region.buffer: memory.arrays[a.region.buffer].copy()
        for a in task.arguments
        if memory.arrays[a.region.buffer].size <= _SMALL
    }
    observer = TaskFootprint()
    used = launch(task, kernels, profile, memory, observer)
    found = observer.take(lambda memory: (used.numbers[id(memory)], 0))
    seen = {t.buffer for t in found}
    for buffer, old in before.items():
        changed = np.flatnonzero(old != memory.arrays[buffer]).astype(np.int64)
        written = union([t.bytes for t in found if t.buffer == buffer and t.how != "reads"])
        own = merged(changed, changed + 1).without(written)
        if len(own.starts):
            found.append(TaskUse(buffer, "writes", _SCALAR, own))
    for argument in task.arguments:
        region = argument.region
        low, high = region.span
        if argument.use is Use.IN and region.buffer not in seen and 0 < high - low <= _SMALL:
            whole = Bytes(np.array([low], np.int64), np.array([high], np.int64))
            found.append(TaskUse(region.buffer, "reads", _SCALAR, whole))
    return found


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
    found: list[TaskKernel | None] | list[TaskKernel],
    task: Task,
    memory: TaskMemory,
    device: Device,
) -> s.RecordSide:
    """The agents of one side of every block: sub-block n runs the n-th kernel."""
    name = next(k.side.name for k in found if k is not None)
    for kernel in found:
        if kernel is not None:
            kernel.side.begin(device)

    def feed(core: Core) -> Iterator[Any]:
        kernel = found[core.sub]
        if kernel is None:
            return iter(())
        side = kernel.side
        return side.feed(side.build.agent(kernel.call, task.words, core), core, memory)

    return s.RecordSide(name, len(found), feed)


def named(error: PtoError, task: Task) -> PtoError:
    """The findings of a task, each with a note that says which task and where it was submitted."""
    from dataclasses import replace

    from pto.core.errors import Note

    note = Note(f"in {task.title}, submitted here", task.loc)
    return PtoError(*(replace(d, notes=(*d.notes, note)) for d in error.diagnostics))
