"""Which of the operations that may be done is done: as early, or as late, as the order allows.

Early: an operation that nothing holds goes ahead of earlier ones of other pipes. Late: one is done
only when another that comes after it must be, the newest first, so that what nothing waits for is
done last. Random: pipes have speeds, drawn again now and then from a seed, and blocks take turns at
random. Program: each as soon as nothing holds it, for programs in which a wait stands before its
set.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from pto.run.order.pipes import Issued, Pipes, place_of
from pto.run.order.schedule import Schedule

Wanted = Callable[[], Issued | None]  # what the scalar unit needs done next; None: it can go on


class Choice(Protocol):
    """Decides when work that was issued is done, and which scalar unit goes on."""

    def turns(self, agents: list[Any]) -> list[Any]:
        """The order in which scalar units go on, each as far as it can."""
        ...

    def pauses(self) -> bool:
        """Whether one lets the others go on first."""
        ...

    def issued(self, pipes: Pipes) -> None:
        """One more was issued, and nobody waits for it."""
        ...

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        """The scalar unit of an agent stands still until nothing is wanted any more."""
        ...

    def unstick(self, pipes: Pipes) -> None:
        """No agent can go on by itself."""
        ...


class _AsFarAsItCan:
    """Scalar units in the order they began, none waits for another."""

    def turns(self, agents: list[Any]) -> list[Any]:
        return agents

    def pauses(self) -> bool:
        return False


class _InOrder(_AsFarAsItCan):
    """As soon as it can be: in program order, but for what a wait holds back."""

    def issued(self, pipes: Pipes) -> None:
        while any(pipes.do(item) for item in pipes.heads()):
            pass

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        self.issued(pipes)

    def unstick(self, pipes: Pipes) -> None:
        self.issued(pipes)


class _LastBlockFirst(_AsFarAsItCan):
    def turns(self, agents: list[Any]) -> list[Any]:
        return agents[::-1]


class _Early(_LastBlockFirst):
    def issued(self, pipes: Pipes) -> None:
        pass

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        if wanted() is not None:
            self.unstick(pipes)

    def unstick(self, pipes: Pipes) -> None:
        while any(pipes.do(item) for item in sorted(pipes.heads(), key=place_of, reverse=True)):
            pass


class _Late(_LastBlockFirst):
    def issued(self, pipes: Pipes) -> None:
        pass

    def settle(self, pipes: Pipes, wanted: Wanted) -> None:
        while (item := wanted()) is not None and pipes.require(item):
            pass

    def unstick(self, pipes: Pipes) -> None:
        any(pipes.require(item) for item in pipes.pending())


_SPEEDS = (0.0, 0.1, 0.5, 1.0)
_PAUSES = 1 / 4  # how often a scalar unit lets the others go on
_REDRAWN = 1 / 32  # how often speeds change, for each operation that is issued


class _Random:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._speeds: dict[tuple[int, str], float] = {}

    def turns(self, agents: list[Any]) -> list[Any]:
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
        """Those that can be tried, the pipes that are fast now before the others."""
        found = pipes.heads()
        self._random.shuffle(found)
        return sorted(found, key=lambda item: -self._speed(item))

    def _speed(self, item: Issued) -> float:
        key = (item.unit.index, item.pipe)
        found = self._speeds.get(key)
        if found is None:
            found = self._speeds[key] = self._random.choice(_SPEEDS)
        return found


def choice_of(schedule: Schedule) -> Choice:
    """A fresh one: the same seed decides the same way."""
    if schedule.name == "random":
        return _Random(schedule.seed)
    return {"program": _InOrder, "early": _Early, "late": _Late}[schedule.name]()
