"""A pool of cluster workers: one for each processor, restarted when they die.

A job is a method of `Worker` and its arguments. The caller gets the result of each job, or that its
worker was lost, and decides whether to try again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pto.cluster.worker import Hello, Worker
from pto.core.errors import PtoError, fail

_SMALL = 1 << 15  # bytes; smaller values are sent with the job itself
_TICK = 0.1  # seconds between two checks of the clock
_RESOURCE_POLL = 2.0  # seconds between two counts of the processors
_PATIENCE = 180.0  # seconds until the first worker must have started: a busy node is slow
_COMING = 3.0  # seconds for the other workers, once one has started


@dataclass(frozen=True, slots=True)
class LostWorker:
    """The worker of a job died, or was killed, before the job was done."""

    why: str
    late: bool = False  # the job exceeded its time, and would again

    def error(self, who: str) -> PtoError:
        return fail("PTO-U306", f"{who}: its worker {self.why}")


class WorkerDied(Exception):
    """A worker died during a call of several workers."""


@dataclass(slots=True, eq=False)
class Job:
    method: str
    args: tuple[Any, ...]
    about: Any = None  # data of the caller
    seconds: float | None = None  # time limit
    streams: bool = False  # the job yields several results
    tries: int = 0


@dataclass(slots=True, eq=False)
class WorkerHandle:
    """The local handle of one worker."""

    actor: Any
    hello: Any  # reference to its first answer
    node: str = ""
    host: str = ""  # host name
    pid: int = 0
    job: Job | None = None
    answer: Any = None  # a reference, or a stream of references
    since: float = 0.0


@dataclass(slots=True)
class WorkerPool:
    """The workers of a cluster and their jobs."""

    ray: Any
    workers: list[WorkerHandle] = field(default_factory=list[WorkerHandle])
    _seen: float = 0.0  # time of the last count of processors
    _alone: float = 0.0  # time since which there has been no worker
    _actor: Any = None  # the actor class of workers

    def __post_init__(self) -> None:
        actor_class = self.ray.remote(num_cpus=1, max_restarts=0, max_concurrency=1)(Worker)
        self._actor = actor_class.options(scheduling_strategy="SPREAD")

    # ---- workers

    @property
    def size(self) -> int:
        """The maximum number of workers: one for each processor."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def ready(self) -> list[WorkerHandle]:
        return [worker for worker in self.workers if worker.node]

    def wait_for_workers(self, count: int | None = None) -> int:
        """Wait for a worker to start, or for `count` of them if possible; returns their number."""
        self._start_workers()
        wanted = min(count or len(self.workers), len(self.workers))
        start = time.monotonic()
        while len(self.ready) < wanted:
            # after the first worker, wait only briefly: other processors may be busy
            patience = _COMING if self.ready and count is None else _PATIENCE
            if time.monotonic() - start > patience:
                break
            self._receive_hellos(0.1)
            self._start_workers()
        self.require_worker()
        return len(self.ready)

    def _start_workers(self) -> None:
        """Start a worker for each processor that has none."""
        if time.monotonic() - self._seen < _RESOURCE_POLL:
            return
        self._seen = time.monotonic()
        for _ in range(self.size - len(self.workers)):
            actor = self._actor.remote()
            self.workers.append(WorkerHandle(actor, actor.hello.remote()))

    def _receive_hellos(self, seconds: float) -> None:
        waiting = {worker.hello: worker for worker in self.workers if not worker.node}
        if waiting:
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=seconds)
            for ref in done:
                self._admit(waiting[ref])

    def _admit(self, worker: WorkerHandle) -> None:
        try:
            hello: Hello = self.ray.get(worker.hello)
        except self.ray.exceptions.RayError:
            self._stop(worker)
            return
        hello.require_alike()
        worker.node = hello.node
        worker.host = hello.host
        worker.pid = hello.pid

    def require_worker(self) -> None:
        if not self.ready:
            raise fail(
                "PTO-U304",
                f"no worker of the cluster started within {_PATIENCE:g} s",
                help="check with `ray status` that processors are free and nodes are alive",
            )

    def _stop(self, worker: WorkerHandle) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        self._seen = 0.0  # another worker may be started at once
        self.ray.kill(worker.actor)

    def abandon(self) -> None:
        """Kill all workers that have a job, and drop their results."""
        for worker in [worker for worker in self.workers if worker.job is not None]:
            self._stop(worker)

    def shutdown(self) -> None:
        for worker in list(self.workers):
            self._stop(worker)

    # ---- work

    def shared(self, value: Any, nbytes: int) -> Any:
        """A job argument: stored once in the object store, unless it is small."""
        return value if nbytes < _SMALL else self.ray.put(value)

    def results(
        self, jobs: deque[Job], look: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Job, Any, WorkerHandle]]:
        """Yield the result of each job as it arrives, or `LostWorker`. The caller may add to `jobs`
        meanwhile. `look` is called regularly, and may raise."""
        try:
            yield from self._results(jobs, look)
        except BaseException:
            self.abandon()
            raise

    def _results(
        self, jobs: deque[Job], look: Callable[[], None]
    ) -> Generator[tuple[Job, Any, WorkerHandle]]:
        self._alone = time.monotonic()
        while jobs or any(worker.job for worker in self.workers):
            self._start_workers()
            for worker in self.ready:
                if worker.job is None and jobs:
                    self._submit(worker, jobs.popleft())
            waiting = {
                h.answer if h.job else h.hello: h for h in self.workers if h.job or not h.node
            }
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=_TICK)
            look()
            for ref in done:
                worker = waiting[ref]
                if worker.job is None:
                    self._admit(worker)
                else:
                    yield from self._received(worker, worker.job)
            yield from self._timed_out()
            if self.ready:
                self._alone = time.monotonic()
            elif time.monotonic() - self._alone > _PATIENCE:
                self.require_worker()

    def broadcast(self, method: str) -> None:
        """Call a method of all workers without waiting."""
        for worker in self.ready:
            getattr(worker.actor, method).remote()

    def call_all(
        self,
        workers: Sequence[WorkerHandle],
        method: str,
        argses: Sequence[tuple[Any, ...]],
        returns: int,
    ) -> list[Any]:
        """Call a method of each of these workers and return all answers; raises `WorkerDied`. Of a
        call with several results only the first is fetched; the rest stay in the object store."""
        answers: list[list[Any]] = []
        try:
            for worker, args in zip(workers, argses, strict=True):
                worker.job = Job(method, args)
                references = (
                    getattr(worker.actor, method).options(num_returns=returns).remote(*args)
                )
                answers.append(list(references) if returns > 1 else [references])
            left = [answer[0] for answer in answers]
            while left:
                _, left = self.ray.wait(left, num_returns=len(left), timeout=_TICK)
            results = [self._answer(*pair) for pair in zip(workers, answers, strict=True)]
        except BaseException:
            self.abandon()
            raise
        for worker in workers:
            worker.job = None
        if any(isinstance(answer_of, LostWorker) for answer_of in results):
            raise WorkerDied
        return results

    def _answer(self, worker: WorkerHandle, answer: Sequence[Any]) -> Any:
        try:
            first = self.ray.get(answer[0])
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            self._stop(worker)
            return LostWorker(_reason(error))
        return (first, *answer[1:]) if len(answer) > 1 else first

    def _submit(self, worker: WorkerHandle, job: Job) -> None:
        job.tries += 1
        method = getattr(worker.actor, job.method)
        if job.streams:
            method = method.options(num_returns="streaming")
        worker.job, worker.since, worker.answer = job, time.monotonic(), method.remote(*job.args)

    def _received(self, worker: WorkerHandle, job: Job) -> Iterator[tuple[Job, Any, WorkerHandle]]:
        try:
            ref = next(worker.answer) if job.streams else worker.answer
            result = self.ray.get(ref)
        except StopIteration:
            worker.job = None
            return
        except self.ray.exceptions.RayTaskError as error:
            worker.job = None
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            yield from self._report_lost(worker, job, LostWorker(_reason(error)))
            return
        worker.since = time.monotonic()
        if not job.streams:
            worker.job = None
        yield job, result, worker

    def _timed_out(self) -> Iterator[tuple[Job, Any, WorkerHandle]]:
        for worker in list(self.workers):
            job = worker.job
            if job and job.seconds and time.monotonic() - worker.since > job.seconds:
                late = LostWorker(f"took longer than {job.seconds:g} seconds", late=True)
                yield from self._report_lost(worker, job, late)

    def _report_lost(
        self, worker: WorkerHandle, job: Job, lost: LostWorker
    ) -> Iterator[tuple[Job, Any, WorkerHandle]]:
        worker.job = None
        self._stop(worker)
        yield job, lost, worker


def _reason(error: Exception) -> str:
    """A short reason for the loss of a worker."""
    text = str(error)
    if "OutOfMemory" in type(error).__name__ or "memory" in text.lower():
        return "was ended because its node ran out of memory"
    if "node" in text.lower() and "died" in text.lower():
        return "was lost with its node"
    return f"ended its process ({type(error).__name__})"
