"""Runs the cases of a suite in worker processes, and leaves nothing behind when it stops.

A worker that dies or hangs costs one result: the rest of its case goes to a new worker. Results
are passed on as they arrive; `run` returns them in the order of the cases. On a cluster each case
is a task, and each machine runs it in such a worker.
"""

from __future__ import annotations

import atexit
import math
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, fail
from pto.core.process import Peer, python_path
from pto.run.launch.engine import cluster_target
from pto.suite.case import Case, Suite
from pto.suite.result import Result

_TICK = 0.5  # seconds between two checks of the clock
_GRACE = 5.0  # seconds for a worker to notice by itself that a script ran out of time
_ENDING = 3.0  # seconds for a worker to end its own child processes
_STANDARD_ERROR = 2  # tests print: standard output is ours


@dataclass(frozen=True, slots=True)
class CaseJob:
    """A case for a worker, without the results that are known."""

    case: Case
    skip: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Worker:
    peer: Peer
    job: CaseJob | None = None
    result: str = ""  # the name of the result that is being made
    since: float = math.inf  # time of its last message; the start of a process does not count
    done: set[str] = field(default_factory=set[str])

    def take(self, job: CaseJob) -> None:
        self.job = job
        self.result = ""
        self.done = set()
        self.peer.pipe.send(job)


def run(
    suite: Suite, jobs: int, report: Callable[[Result], bool | None] = lambda result: None
) -> list[Result]:
    """Run every case; `report` is called with each result, and returns True to stop."""
    results: list[Result] = []
    with _work_folder(suite.keep) as root, _terminate_interrupts():
        stream = _on_cluster(suite) or _Pool(suite, suite.cases, jobs, root).run()
        with closing(stream):
            for result in stream:
                results.append(result)
                if report(result):
                    break
    order = {case.name: number for number, case in enumerate(suite.cases)}
    return sorted(results, key=lambda r: order[r.case])  # stable: results of a case keep theirs


def _on_cluster(suite: Suite) -> Generator[Result] | None:
    """The results of workers on other machines, if a cluster is selected."""
    if cluster_target() is None:
        return None
    from pto.cluster import tasks

    def lost(case: Case, why: str) -> Result:
        return _lost(case, "", f"was not run to its end: {why}")

    cases, settings = _longest_first(suite.cases), (suite.function, suite.settings, suite.keep)
    limit = 2 * suite.seconds + _GRACE
    stream = tasks.cases(
        "pto.suite.pool:work_for",
        cases,
        (*settings, suite.seconds),
        lost,
        streams=True,
        seconds=limit,
    )
    return None if stream is None else (result for _, result in stream)


_cluster_pools: dict[str, _Pool] = {}  # on a cluster worker: the process that runs its cases


def work_for(settings: tuple[str, Any, Path | None, float], case: Case) -> Iterator[Result]:
    """Run one case in a separate process, which stays for the next one."""
    key = repr(settings)
    pool = _cluster_pools.get(key)
    if pool is None:
        function, values, keep, seconds = settings
        root = keep or Path(tempfile.mkdtemp(prefix="pto-suite-"))
        if keep is None:
            atexit.register(shutil.rmtree, root, ignore_errors=True)
        suite = Suite(function, (), values, seconds, keep)
        pool = _cluster_pools[key] = _Pool(suite, (), 1, root, stays=True)
        atexit.register(pool.stop)
    pool.queue.append(CaseJob(case))
    yield from pool.results()


def _longest_first(cases: Sequence[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: -case.weight)


def _lost(case: Case, name: str, reason: str) -> Result:
    """The result of a case that ended its process: failed."""
    name = name or case.name
    diagnostic = Diagnostic("PTO-U069", f"{name} {reason}")
    return Result(name, case.name, case.group, "failed", "crashed", diagnostics=(diagnostic,))


class _Pool:
    def __init__(
        self, suite: Suite, cases: Sequence[Case], jobs: int, root: Path, stays: bool = False
    ) -> None:
        self.queue = [CaseJob(case) for case in reversed(_longest_first(cases))]
        self.stays = stays  # an idle worker waits for the next call
        self.suite = suite
        self.jobs = max(1, min(jobs, len(self.queue)))
        self.root = root
        self.workers: list[_Worker] = []

    def run(self) -> Generator[Result]:
        """All results; nothing is left behind, however it ends."""
        try:
            yield from self.results()
        finally:
            self.stop()

    def results(self) -> Iterator[Result]:
        limit = self.suite.seconds
        while self.queue or any(worker.job for worker in self.workers):
            for worker in self.workers:
                if self.queue and worker.job is None:
                    worker.take(self.queue.pop())
            while self.queue and len(self.workers) < self.jobs:
                self._start(self.queue.pop())
            ready = wait([worker.peer.pipe for worker in self.workers], timeout=_TICK)
            for worker in list(self.workers):
                if worker.peer.pipe in ready:
                    yield from self._receive(worker)
                elif worker.job and time.monotonic() - worker.since > limit + _GRACE:
                    yield from self._lose(worker, f"took longer than {limit:g} seconds")

    def _start(self, job: CaseJob) -> None:
        peer = Peer(
            "pto.suite.worker", env=python_path(), stdout=_STANDARD_ERROR, stderr=_STANDARD_ERROR
        )
        worker = _Worker(peer)
        self.workers.append(worker)
        peer.pipe.send((self.suite.function, self.suite.settings, self.root, self.suite.keep))
        worker.take(job)

    def _receive(self, worker: _Worker) -> Iterator[Result]:
        try:
            kind, body = worker.peer.pipe.recv()
        except (EOFError, ConnectionError):
            yield from self._lose(worker, "")
            return
        worker.since = time.monotonic()
        if kind == "started":
            worker.result = body
        elif kind == "result":
            worker.done.add(body.name)
            yield body
        elif kind == "error":
            raise body
        elif self.queue:
            worker.take(self.queue.pop())
        elif self.stays:
            worker.job = None
        else:
            self._end(worker)

    def _lose(self, worker: _Worker, reason: str) -> Iterator[Result]:
        """Report the result that ended its worker as failed; requeue the rest of its case."""
        status = self._end(worker)
        job = worker.job
        assert job is not None
        name = worker.result or job.case.name
        yield _lost(job.case, name, reason or f"ended its process ({status})")
        if name != job.case.name:
            self.queue.append(CaseJob(job.case, frozenset(job.skip | worker.done | {name})))

    def _end(self, worker: _Worker) -> int:
        self.workers.remove(worker)
        return worker.peer.end(_ENDING)

    def stop(self) -> None:
        for worker in self.workers:
            worker.peer.process.terminate()  # all at once; each has the same time to end
        for worker in list(self.workers):
            self._end(worker)


@contextmanager
def _work_folder(keep: Path | None) -> Generator[Path]:
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise fail("PTO-U064", f"{keep} cannot be made: {reason}") from None
        yield keep.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="pto-suite-"))
    try:
        yield root
    finally:
        for _ in range(5):  # a script that is just ending may still write
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():
                break
            time.sleep(0.1)


@contextmanager
def _terminate_interrupts() -> Generator[None]:
    """SIGTERM ends the run as Ctrl-C does, so that it cleans up."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: it has no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
