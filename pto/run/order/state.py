"""The state of the model in `model.py`: pipes, agents, and operations on their way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pto.ir.graph import Operation
from pto.isa.meaning import Blocked
from pto.isa.row.flag import Flag
from pto.run.order import effects as fx
from pto.run.order.buffers import Releases

S = TypeVar("S")  # a stamp: what is known to be done


@dataclass(slots=True, eq=False)
class Item:
    """An operation on its way through its pipe."""

    op: Operation
    pipe: str
    number: int  # in program order of its agent
    effect: fx.Effect | None = None
    mark: fx.Mark | None = None  # its unit flag
    need: int = -1  # releases of its buffer id that come before it; -1: it is not issued
    after: tuple[tuple[Releases[Any], int], ...] = ()  # releases that this completes, by number
    stamp: Any = None  # of the scalar unit when it was issued; None: that of now
    version: int = 0  # of the scalar unit then
    reason: Blocked | None = None  # why it did not start when it was tried
    is_done: bool = False


I = TypeVar("I", bound=Item)  # noqa: E741


@dataclass(slots=True, eq=False, kw_only=True)
class Pipe(ABC, Generic[S, I]):
    """A queue of an agent, in order to issue; its clock is what a subclass adds."""

    queue: deque[I] = field(default_factory=deque[I])
    seen: int = -1  # the version of the scalar unit that this pipe has last joined

    @abstractmethod
    def publish(self) -> S:
        """What holds once all earlier work of this pipe is complete."""

    def handed(self) -> S:
        """Of the scalar unit: what holds for an operation that it hands out."""
        return self.publish()

    @abstractmethod
    def join(self, stamp: S) -> None:
        """The pipe goes on after what `stamp` tells of."""

    @abstractmethod
    def knows(self, stamp: S) -> bool:
        """Whether the pipe already goes on after that."""

    @abstractmethod
    def settle(self) -> None:
        """A barrier of the pipe: its own earlier work is complete."""


P = TypeVar("P", bound=Pipe[Any, Any])


@dataclass(slots=True, eq=False, kw_only=True)
class Unit(Generic[S, P, I]):
    """One agent: its pipes, and the state of its flags and buffer ids."""

    block: int = 0
    launch: int = 0  # of several; 0 where there is but one
    pipes: dict[str, P] = field(default_factory=dict[str, P])
    waiting: deque[I] = field(default_factory=deque[I])  # for room in a queue
    flags: dict[Flag, deque[tuple[S, I]]] = field(default_factory=dict[Flag, deque[tuple[S, I]]])
    buffers: dict[int, Releases[S]] = field(default_factory=dict[int, Releases[S]])  # by id
    marked: list[I] = field(default_factory=list[I])  # that have a unit flag and are not done
    marks: dict[str, S] = field(default_factory=dict[str, S])  # that unit flags have told
    version: int = 0  # grows when the clock of the scalar unit may have changed

    def items(self) -> Iterator[I]:
        for pipe in self.pipes.values():
            yield from pipe.queue

    def signal(self, key: tuple[int, Any]) -> tuple[tuple[int, int], Any]:
        """A signal belongs to a block of a launch."""
        block, name = key
        return (self.launch, block), name

    def meeting(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """Queues and meetings of blocks belong to their launch; those of ranks to everyone."""
        return key if key[0] == fx.RANKS else (self.launch, *key)

    @property
    def is_idle(self) -> bool:
        return not any(pipe.queue for pipe in self.pipes.values())


class NoClock(Pipe[None, I]):
    """For who only asks what may start."""

    __slots__ = ()

    def publish(self) -> None:
        return None

    def join(self, stamp: None) -> None:
        return None

    def knows(self, stamp: None) -> bool:
        return True

    def settle(self) -> None:
        return None


def wanted(item: Item) -> str:
    """What an operation that cannot start waits for."""
    effect = item.effect
    if isinstance(effect, fx.WaitFlag):
        return f"flag {effect.flag}"
    if isinstance(effect, fx.Acquire):
        return f"buffer id {effect.id}"
    return "a signal of another agent"


def answers(unit: Unit[Any, Any, Any], item: Item, waiting: Item) -> bool:
    """Whether an operation of the same agent lets another go on."""
    mine, theirs = waiting.effect, item.effect
    if isinstance(mine, fx.WaitFlag):
        return isinstance(theirs, fx.SetFlag) and mine.key == theirs.key
    if not isinstance(mine, fx.Acquire):
        return False
    releases = unit.buffers[mine.id]  # the first that is not done holds the acquire
    if isinstance(theirs, fx.Release) and theirs.id == mine.id and item.need == releases.done:
        return True
    return (releases, releases.done) in item.after
