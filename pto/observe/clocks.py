"""Vector clocks of pipes: what each is known to come after. The one rule of order stands here.

A pipe issues in order and need not complete in order, so its own entry lags: it moves at a barrier,
through another pipe, or after every operation where the profile calls the pipe memory-ordered.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.ir.graph import Operation
from pto.run.watch.events import Event

Clock = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Moment:
    """One operation of one pipe, as reports name it."""

    op: Operation
    counters: tuple[int, ...]
    number: int  # in program order of its agent


@dataclass(slots=True, eq=False)
class Thread:
    """A pipe of an agent: its clock, and every operation it has executed."""

    index: int
    agent: Agent
    pipe: str
    ordered: bool  # sees its own earlier accesses without a barrier
    clock: Clock
    moments: list[Moment] = field(default_factory=list[Moment])
    queue: deque[Item] = field(default_factory=deque["Item"])
    # by thread: the flag last waited for, and where
    heard: dict[int, tuple[Any, Operation]] = field(
        default_factory=dict[int, tuple[Any, Operation]]
    )
    issued: int = -1  # the state of the scalar unit that this pipe has last seen

    @property
    def now(self) -> int:
        return len(self.moments)

    def tick(self, moment: Moment) -> int:
        """One more operation; its time."""
        self.moments.append(moment)
        return len(self.moments)

    def done(self) -> None:
        """After an operation: an ordered pipe sees it at once."""
        if self.ordered:
            self.clock[self.index] = len(self.moments)

    def settle(self) -> None:
        """All of its own operations are complete."""
        self.clock[self.index] = len(self.moments)

    def published(self) -> Clock:
        """What holds when a flag fires after all earlier operations of this pipe."""
        clock = self.clock.copy()
        clock[self.index] = len(self.moments)
        return clock


@dataclass(slots=True, eq=False)
class Item:
    """An event on its way through the queue of its pipe."""

    event: Event
    moment: Moment
    scope: list[tuple[Event, Moment]] | None = None  # of a vector scope, in program order
    need: int = 0  # releases of a buffer id that came before it
    clock: Clock | None = None  # of the scalar unit when it was issued
    version: int = 0


@dataclass(slots=True, eq=False)
class Agent:
    """One core side: its pipes, what waits to be issued, and its flags."""

    name: str
    block: int
    cluster: int  # a number for all agents of one core
    automatic: bool  # a compiler orders its pipes
    launch: int = 0  # of several; 0 where there is but one
    rank: int = 0
    base: Clock | None = None  # of everything that was over before its launch began
    threads: dict[str, Thread] = field(default_factory=dict[str, Thread])
    waiting: deque[Item] = field(default_factory=deque[Item])
    flags: dict[Any, deque[tuple[Clock, Item]]] = field(
        default_factory=dict[Any, deque[tuple[Clock, Item]]]
    )
    buffers: dict[int, list[Clock]] = field(default_factory=dict[int, list[Clock]])
    releases: dict[int, int] = field(default_factory=dict[int, int])
    users: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    unit: Clock | None = None  # of the operations that mark tiles of L0C by unit flags
    count: int = 0
    version: int = 0  # grows when the clock of the scalar unit may have changed


class Clocks:
    """All threads of a launch. Clocks grow as agents begin."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []
        self._width = 64

    def new(self, agent: Agent, pipe: str, ordered: bool) -> Thread:
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


def join(thread: Thread, other: Clock) -> None:
    """`thread` comes after everything `other` has seen."""
    size = other.size
    if size == thread.clock.size:
        np.maximum(thread.clock, other, out=thread.clock)
    else:
        part = thread.clock[:size]
        np.maximum(part, other, out=part)


def joined(a: Clock, b: Clock | None) -> Clock:
    """The later of two clocks in every entry; they may be of different widths."""
    if b is None:
        return a
    wide, narrow = (a, b) if a.size >= b.size else (b, a)
    out = wide.copy()
    np.maximum(out[: narrow.size], narrow, out=out[: narrow.size])
    return out
