"""A crew without a cluster: workers are objects of this process, and take turns."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pto.cluster.crew import Hand, Job, Lost
from pto.cluster.worker import Worker


class Here:
    """What a crew offers; `loses` says which of the jobs given lose their worker."""

    def __init__(self, size: int = 2, loses: Callable[[int], bool] = lambda number: False) -> None:
        self.hands = [Hand(Worker(), None, node=f"node {n}") for n in range(size)]
        self.loses = loses
        self.given = 0

    def muster(self, count: int | None = None) -> int:
        return len(self.hands)

    def tell(self, method: str) -> None:
        for hand in self.hands:
            getattr(hand.actor, method)()

    def shared(self, value: Any, nbytes: int) -> Any:
        return value

    @property
    def ready(self) -> list[Hand]:
        return self.hands

    def together(
        self, hands: Sequence[Hand], method: str, argses: Sequence[tuple[Any, ...]], returns: int
    ) -> list[Any] | Lost:
        self.given += 1
        if self.loses(self.given - 1):
            return Lost("died")
        pairs = zip(hands, argses, strict=True)
        return [getattr(hand.actor, method)(*pickle.loads(pickle.dumps(a))) for hand, a in pairs]

    def results(
        self, jobs: deque[Job], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Job, Any, Hand]]:
        while jobs:
            job, hand = jobs.popleft(), self.hands[self.given % len(self.hands)]
            job.tries += 1
            lost, self.given = self.loses(self.given), self.given + 1
            look()
            hand.actor._node = lambda name=hand.node: name
            yield job, Lost("died") if lost else getattr(hand.actor, job.method)(*job.args), hand
