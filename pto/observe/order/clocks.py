"""Vector clocks of pipes: the operations that each pipe is known to follow. The rule of order is
here.

A pipe issues in order and need not complete in order, so its own entry lags: it advances at a
barrier, through another pipe, or after every operation of a memory-ordered pipe of the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.row.flag import Flag
from pto.run.order import state
from pto.run.watch.events import InstructionEvent

Clock = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Moment:
    """One operation of one pipe, for reports."""

    op: Operation
    counters: tuple[int, ...]
    number: int  # in program order of its agent


class ScopeEvent(InstructionEvent):
    """A vector scope in progress: checked as it runs, or kept while its pipe has to wait."""

    __slots__ = ("begun", "kept")

    def __init__(self, first: InstructionEvent) -> None:
        super().__init__(first.op, first.core, "V", [], first.counters)
        self.number = first.number
        self.kept: list[InstructionEvent] = []
        self.begun: Any = None  # the `Scope`, once its pipe is ready


@dataclass(slots=True, eq=False)
class Thread(state.PipeQueue[Clock, InstructionEvent]):
    """A pipe of an agent: its clock, and every operation it has executed."""

    index: int
    agent: ClockAgent
    pipe: str
    ordered: bool  # sees its own earlier accesses without a barrier
    clock: Clock
    moments: list[Moment] = field(default_factory=list[Moment])
    # by thread: the last flag waited for, and its location
    heard: dict[int, tuple[Any, Operation]] = field(
        default_factory=dict[int, tuple[Any, Operation]]
    )
    implicit: int = 0  # the time of the last operation that ended with an internal barrier
    fenced: int = 0  # of the scalar unit: its accesses before all pipes
    # buffers in which it is ordered with itself, for accesses of at least so many bytes
    own_order: dict[Space, int] = field(default_factory=dict[Space, int])

    @property
    def now(self) -> int:
        return len(self.moments)

    def tick(self, event: InstructionEvent) -> int:
        """Add an operation; returns its time."""
        self.moments.append(Moment(event.op, event.counters, event.number))
        return len(self.moments)

    def done(self, fenced: bool = False) -> None:
        """End an operation: an ordered pipe sees it at once, as after a barrier of its own."""
        if self.ordered or fenced:
            self.clock[self.index] = len(self.moments)
        if fenced:
            self.implicit = len(self.moments)

    def handed(self) -> Clock:
        """The clock of operations that the scalar unit issues: everything it has waited for; its
        own accesses need a flag, as those of any pipe."""
        clock = self.clock.copy()
        clock[self.index] = self.fenced
        return clock

    def settle(self) -> None:
        self.clock[self.index] = len(self.moments)

    def publish(self) -> Clock:
        """The clock of a flag that is set after all earlier operations of this pipe."""
        clock = self.clock.copy()
        clock[self.index] = len(self.moments)
        return clock

    def join(self, stamp: Clock) -> None:
        """Order the pipe after everything in `stamp`."""
        clock = self.clock
        if stamp.size != clock.size:
            clock = clock[: stamp.size]
        np.maximum(clock, stamp, out=clock)

    def knows(self, stamp: Clock) -> bool:
        return bool((stamp <= self.clock[: stamp.size]).all())


@dataclass(slots=True, eq=False)
class ClockAgent(state.Issuer[Clock, Thread, InstructionEvent]):
    """One side of a core, for reports."""

    name: str
    cluster: int  # a number for all agents of one core
    automatic: bool  # a compiler orders its pipes
    rank: int = 0
    base: Clock | None = None  # of everything that had ended before its launch began
    count: int = 0
    core: Any = None  # while it runs
    taken: set[Flag] = field(default_factory=set[Flag])  # flags for which a wait ever ended
    # special registers: the last writer of each
    special: dict[str, tuple[Thread, int]] = field(default_factory=dict[str, tuple[Thread, int]])


class Clocks:
    """All threads of a launch. Clocks grow as agents begin."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []
        self._width = 64

    def new(self, agent: ClockAgent, pipe: str, ordered: bool) -> Thread:
        index = len(self.threads)
        if index == self._width:
            self._width *= 2
            for thread in self.threads:
                thread.clock = _wide(thread.clock, self._width)
        clock = np.zeros(self._width, np.int64)
        if agent.base is not None:
            clock[: agent.base.size] = agent.base
        thread = Thread(index, agent, pipe, ordered, clock)
        self.threads.append(thread)
        return thread

    @property
    def width(self) -> int:
        return self._width


def _wide(clock: Clock, width: int) -> Clock:
    out = np.zeros(width, np.int64)
    out[: clock.size] = clock
    return out


def joined(a: Clock, b: Clock | None) -> Clock:
    """The later of two clocks in every entry; they may be of different widths."""
    if b is None:
        return a
    wide, narrow = (a, b) if a.size >= b.size else (b, a)
    out = wide.copy()
    np.maximum(out[: narrow.size], narrow, out=out[: narrow.size])
    return out


def knows(clock: Clock | None, thread: int, time: int) -> bool:
    """True if a clock covers an operation of a thread, which may be newer than the clock."""
    return clock is not None and thread < clock.size and time <= int(clock[thread])
