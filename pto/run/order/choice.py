"""The policies that choose which ready operation runs next: as early, or as late, as the order
allows.

Early: a ready operation runs before earlier ones of other pipes. Late: an operation runs only when
a later one needs it, the newest first, so that operations without dependents run last. Random:
pipes have speeds, drawn again from time to time from a seed, and blocks run in random order.
Program: each runs as soon as it is ready, for programs in which a wait precedes its set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any

from pto.run.order.pipes import Issued, Pipes, place_of
from pto.run.order.schedule import Schedule

# the operation that the scalar unit needs next; None if it can continue
Wanted = Callable[[], Issued | None]


class Choice(ABC):
    """Decides when issued operations run, and in which order scalar units continue: unless a policy
    changes that, in the order in which they began, without yielding."""

    def ordered(self, agents: list[Any]) -> list[Any]:
        """The order in which scalar units run, each as far as it can."""
        return agents

    def pauses(self) -> bool:
        """True if a scalar unit yields to another."""
        return False

    def issued(self, pipes: Pipes) -> None:  # noqa: B027 (a policy may do nothing)
        """Called after an operation was issued that no wait needs."""

    @abstractmethod
    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        """Run operations until the scalar unit of an agent needs none any more."""

    @abstractmethod
    def unstick(self, pipes: Pipes) -> None:
        """Called when every agent is blocked."""


class _InOrder(Choice):
    """Each operation as soon as it is ready: program order, except past a wait."""

    def issued(self, pipes: Pipes) -> None:
        while any(pipes.do(item) for item in pipes.heads()):
            pass

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        self.issued(pipes)

    def unstick(self, pipes: Pipes) -> None:
        self.issued(pipes)


class _LastBlockFirst(Choice):
    def ordered(self, agents: list[Any]) -> list[Any]:
        return agents[::-1]


class _Early(_LastBlockFirst):
    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        if wanted() is not None:
            self.unstick(pipes)

    def unstick(self, pipes: Pipes) -> None:
        while any(pipes.do(item) for item in sorted(pipes.heads(), key=place_of, reverse=True)):
            pass


class _Late(_LastBlockFirst):
    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        while (item := wanted()) is not None and pipes.require(item):
            pass

    def unstick(self, pipes: Pipes) -> None:
        any(pipes.require(item) for item in pipes.pending())


_SPEEDS = (0.0, 0.1, 0.5, 1.0)
_PAUSES = 1 / 4  # probability that a scalar unit yields
_REDRAWN = 1 / 32  # probability that speeds change, for each issued operation


class _Random(Choice):
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._speeds: dict[tuple[int, str], float] = {}

    def ordered(self, agents: list[Any]) -> list[Any]:
        return self._random.sample(agents, len(agents))

    def pauses(self) -> bool:
        return self._random.random() < _PAUSES

    def issued(self, pipes: Pipes) -> None:
        if self._random.random() < _REDRAWN:
            self._speeds.clear()
        for item in self._shuffled(pipes):
            while self._random.random() < self._speed(item):
                queue = pipes.pipe(item.unit, item.pipe).queue
                if not pipes.can_try(item) or not pipes.do(item) or not queue:
                    break
                item = queue[0]

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        while wanted() is not None and self._one(pipes):
            pass

    def unstick(self, pipes: Pipes) -> None:
        self._one(pipes)

    def _one(self, pipes: Pipes) -> bool:
        return any(pipes.do(item) for item in self._shuffled(pipes))

    def _shuffled(self, pipes: Pipes) -> list[Issued]:
        """Ready operations in random order, those of faster pipes first."""
        items = pipes.heads()
        self._random.shuffle(items)
        return sorted(items, key=lambda item: -self._speed(item))

    def _speed(self, item: Issued) -> float:
        key = (item.unit.index, item.pipe)
        speed = self._speeds.get(key)
        if speed is None:
            speed = self._speeds[key] = self._random.choice(_SPEEDS)
        return speed


def choice_of(schedule: Schedule) -> Choice:
    """A new policy of a schedule; equal seeds give equal choices."""
    if schedule.name == "random":
        return _Random(schedule.seed)
    return {"program": _InOrder, "early": _Early, "late": _Late}[schedule.name]()
