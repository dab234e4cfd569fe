"""A pool without a cluster: workers are objects of this process, and take turns."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pto.cluster.worker import Worker
from pto.cluster.worker_pool import Job, LostWorker, WorkerDied, WorkerHandle


class Here:
    """What a pool offers; `loses` says which of the jobs given lose their worker."""

    def __init__(self, size: int = 2, loses: Callable[[int], bool] = lambda number: False) -> None:
        self.workers = [WorkerHandle(Worker(), None, node=f"node {n}") for n in range(size)]
        self.loses = loses
        self.given = 0

    def wait_for_workers(self, count: int | None = None) -> int:
        return len(self.workers)

    def broadcast(self, method: str) -> None:
        for worker in self.workers:
            getattr(worker.actor, method)()

    def shared(self, value: Any, nbytes: int) -> Any:
        return value

    @property
    def ready(self) -> list[WorkerHandle]:
        return self.workers

    def call_all(
        self,
        workers: Sequence[WorkerHandle],
        method: str,
        argses: Sequence[tuple[Any, ...]],
        returns: int,
    ) -> list[Any]:
        self.given += 1
        if self.loses(self.given - 1):
            raise WorkerDied
        pairs = zip(workers, argses, strict=True)
        return [
            getattr(worker.actor, method)(*pickle.loads(pickle.dumps(a))) for worker, a in pairs
        ]

    def results(
        self, jobs: deque[Job], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Job, Any, WorkerHandle]]:
        while jobs:
            job, worker = jobs.popleft(), self.workers[self.given % len(self.workers)]
            job.tries += 1
            lost, self.given = self.loses(self.given), self.given + 1
            look()
            worker.actor._node = lambda name=worker.node: name
            if lost:
                yield job, LostWorker("died"), worker
                continue
            answer = getattr(worker.actor, job.method)(*job.args)
            for result in answer if job.streams else [answer]:
                yield job, result, worker
