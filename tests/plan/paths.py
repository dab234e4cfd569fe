"""Critical paths, counted in instructions: of a program with flags, and the least there can be.

Every instruction that touches memory takes one step of its pipe, pipes work side by side. With
flags, the model of pipes and queues says what waits for what. The least is what the bytes alone ask
for: an instruction comes after the last write of what it touches and, where it writes, after all
reads. Nobody who writes flags by hand can do with less, on the same pipes and buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.ir.graph import Module
from pto.isa.meaning.kinds import Blocked
from pto.run.launch.host import launch
from pto.run.machine.core import Core
from pto.run.order import state
from pto.run.order.model import Model
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import WatchedMemory
from pto.target.profile import profile as find


@dataclass(slots=True, eq=False)
class _Pipe(state.PipeQueue[int, state.QueuedOp]):
    time: int = 0

    def publish(self) -> int:
        return self.time

    def join(self, stamp: int) -> None:
        self.time = max(self.time, stamp)

    def knows(self, stamp: int) -> bool:
        return stamp <= self.time

    def settle(self) -> None:
        pass


class _Steps(Model[int, _Pipe, state.QueuedOp]):
    longest = 0

    def new_pipe(self, unit: Any, name: str) -> _Pipe:
        return _Pipe()

    def merged(self, a: int, b: int) -> int:
        return max(a, b)

    def work(self, unit: Any, pipe: _Pipe, item: state.QueuedOp) -> Blocked | None:
        pipe.time += getattr(item, "takes", 0)
        self.longest = max(self.longest, pipe.time)
        return None


@dataclass(slots=True, eq=False)
class _Item(state.QueuedOp):
    takes: int = 0


class _WithFlags(Observer):
    def __init__(self, sync: Any) -> None:
        self.model = _Steps(sync)
        self._units: dict[int, Any] = {}

    def begin(self, core: Core) -> None:
        self._units[id(core)] = state.Issuer[int, _Pipe, state.QueuedOp](block=core.block)

    def event(self, event: InstructionEvent) -> None:
        takes = int(bool(event.accesses))
        item = _Item(event.op, event.pipe, 0, event.effect, takes=takes)
        self.model.issue(self._units[id(event.core)], item)


class _Least(Observer):
    def __init__(self) -> None:
        self._free: dict[tuple[int, str], int] = {}
        self._written: dict[int, Any] = {}
        self._read: dict[int, Any] = {}
        self.longest = 0

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        for marks in (self._written, self._read):
            marks[id(memory)] = np.zeros(memory.size, np.int64)

    def event(self, event: InstructionEvent) -> None:
        if not event.accesses:
            return
        pipe, issued = (id(event.core), event.pipe), self._free.get((id(event.core), "S"), 0)
        start = max(self._free.get(pipe, 0), issued)
        touched = [(a.writes, id(a.memory), _bytes(a)) for a in event.accesses]
        for writes, memory, at in touched:
            start = max(start, int(self._written[memory][at].max()))
            if writes:
                start = max(start, int(self._read[memory][at].max()))
        for writes, memory, at in touched:
            (self._written if writes else self._read)[memory][at] = start + 1
        self._free[pipe] = start + 1
        self.longest = max(self.longest, start + 1)


def _bytes(access: Any) -> Any:
    return (access.addresses()[:, None] + np.arange(access.width)).reshape(-1)


def with_flags(module: Module, args: list[Any], profile: str) -> int:
    """How long a program takes as its flags order it, in instructions."""
    watcher = _WithFlags(find(profile).sync)
    launch(module, args=args, profile=profile, check=False, observer=watcher)
    return watcher.model.longest


def least(module: Module, args: list[Any], profile: str) -> int:
    """How long it takes where nothing waits but for bytes."""
    watcher = _Least()
    launch(module, args=args, profile=profile, check=False, observer=watcher)
    return watcher.longest
