"""The state of the model in `model.py`: pipes, agents, and issued operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pto.ir.graph import Operation
from pto.isa.meaning.kinds import Blocked
from pto.isa.row.flag import Flag
from pto.run.order import effects as fx
from pto.run.order.buffers import Releases

S = TypeVar("S")  # a stamp: the work known to be complete


@dataclass(slots=True, eq=False)
class QueuedOp:
    """An issued operation."""

    op: Operation
    pipe: str
    number: int  # in program order of its agent
    effect: fx.Effect | None = None
    mark: fx.UnitFlag | None = None  # its unit flag
    need: int = -1  # unit flag
    # releases of its buffer id before it; -1: not issued
    after: tuple[tuple[Releases[Any], int], ...] = ()
    stamp: Any = None  # of the scalar unit when it was issued; None: that of now
    version: int = 0  # of the scalar unit at that time
    reason: Blocked | None = None  # why it could not start
    is_done: bool = False


I = TypeVar("I", bound=QueuedOp)  # noqa: E741


@dataclass(slots=True, eq=False, kw_only=True)
class PipeQueue(ABC, Generic[S, I]):
    """An in-order queue of an agent; a subclass adds the clock."""

    queue: deque[I] = field(default_factory=deque[I])
    seen: int = -1  # the version of the scalar unit that this pipe last joined

    @abstractmethod
    def publish(self) -> S:
        """The stamp of all earlier work of this pipe."""

    def handed(self) -> S:
        """The stamp of the scalar unit for an operation that it issues."""
        return self.publish()

    @abstractmethod
    def join(self, stamp: S) -> None:
        """Order later work of the pipe after `stamp`."""

    @abstractmethod
    def knows(self, stamp: S) -> bool:
        """True if later work of the pipe is already ordered after `stamp`."""

    @abstractmethod
    def settle(self) -> None:
        """A barrier of the pipe: its own earlier work is complete."""


P = TypeVar("P", bound=PipeQueue[Any, Any])


@dataclass(slots=True, eq=False, kw_only=True)
class Issuer(Generic[S, P, I]):
    """One agent: its pipes, and the state of its flags and buffer ids."""

    block: int = 0
    launch: int = 0  # among several launches; 0 if there is only one
    pipes: dict[str, P] = field(default_factory=dict[str, P])
    waiting: deque[I] = field(default_factory=deque[I])  # for a free entry in a queue
    flags: dict[Flag, deque[tuple[S, I]]] = field(default_factory=dict[Flag, deque[tuple[S, I]]])
    buffers: dict[int, Releases[S]] = field(default_factory=dict[int, Releases[S]])  # by id
    marked: list[I] = field(default_factory=list[I])  # with a unit flag, not done
    marks: dict[fx.UnitFlag, S] = field(default_factory=dict[fx.UnitFlag, S])  # stamps by setter
    version: int = 0  # grows when the clock of the scalar unit may have changed

    def items(self) -> Iterator[I]:
        for pipe in self.pipes.values():
            yield from pipe.queue

    def signal(self, key: tuple[int, Any]) -> tuple[tuple[int, int], Any]:
        """The key of a signal within the block of its launch."""
        block, name = key
        return (self.launch, block), name

    def meeting(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key of a queue or barrier: within its launch, except for barriers of ranks."""
        return key if key[0] == fx.RANKS else (self.launch, *key)

    @property
    def is_idle(self) -> bool:
        return not any(pipe.queue for pipe in self.pipes.values())


def wanted(item: QueuedOp) -> str:
    """The thing that a blocked operation waits for, as text."""
    effect = item.effect
    if isinstance(effect, fx.FlagWait):
        return f"flag {effect.flag}"
    if isinstance(effect, fx.BufferAcquire):
        return f"buffer id {effect.id}"
    return "a signal of another agent"


def answers(unit: Issuer[Any, Any, Any], item: QueuedOp, waiting: QueuedOp) -> bool:
    """True if an operation of the same agent unblocks another."""
    mine, theirs = waiting.effect, item.effect
    if isinstance(mine, fx.FlagWait):
        return isinstance(theirs, fx.FlagSet) and mine.key == theirs.key
    if not isinstance(mine, fx.BufferAcquire):
        return False
    releases = unit.buffers[mine.id]  # the first that is not done holds the acquire
    if isinstance(theirs, fx.BufferRelease) and theirs.id == mine.id and item.need == releases.done:
        return True
    return (releases, releases.done) in item.after
