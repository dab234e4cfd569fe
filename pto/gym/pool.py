"""Runs many programs in worker processes, and leaves nothing behind when it stops.

A worker that dies or hangs costs one case: the rest of its program goes to a new worker. Results
are yielded as they arrive; `run_programs` returns them in the order of the checkout.
"""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.core.selection import select
from pto.gym.cases import GymProgram
from pto.gym.models.kernels import ModelKernel
from pto.gym.result import GymResult
from pto.gym.script_server import die_with_parent
from pto.gym.scripts import Scripts
from pto.run.launch.call import PtoWarning
from pto.run.launch.engine import cluster_target

CASES = "pto.gym.runner:Runner"
MODELS = "pto.gym.models.runner:ModelRunner"
ENGINE = "pto.run.launch.host:launch"
SANITIZED = "pto.observe.sanitize:launch_sanitized"  # a finding makes a case fail
TIMED = "pto.gym.timed:launch_timed"  # also reports the time of every launch on a chip
MUTATED = "pto.gym.mutate:launch_mutated"  # every mutant of a program is judged too
_TICK = 0.5  # seconds between two checks of the clock
_GRACE = 5.0  # seconds for a worker to notice by itself that a script ran out of time
Pipe = Any  # a connection; its class differs between systems


@dataclass(frozen=True, slots=True)
class Options:
    """How cases are run; sent to workers, so it has names instead of objects."""

    engine: str = "reference"
    profile: str | None = None
    expression: str = ""  # selects cases
    seconds: float = 600.0  # for one case or script
    keep: Path | None = None  # where work directories are kept
    launch: str = ENGINE  # module:function
    runner: str = CASES  # module:class
    sync: bool = False  # insert flags if a compiler is to do it
    schedule: str = ""  # order of effects that synchronisation leaves open


@dataclass(frozen=True, slots=True)
class _CaseJob:
    program: GymProgram | ModelKernel
    skip: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Pipe
    job: _CaseJob
    case: str = ""  # the current case
    since: float = math.inf  # time of its last message; the start of a process does not count
    done: set[str] = field(default_factory=set[str])
    is_busy: bool = True

    def take(self, job: _CaseJob) -> None:
        self.job, self.case, self.done, self.is_busy = job, "", set(), True
        self.pipe.send(job)


Programs = Sequence[GymProgram] | Sequence[ModelKernel]


def run_programs(
    programs: Programs,
    options: Options,
    jobs: int,
    seen: Callable[[GymResult], bool | None] = lambda result: None,
) -> list[GymResult]:
    """Run every selected case; `seen` is called with each result, and returns True to stop."""
    found: list[GymResult] = []
    with _work_directory(options.keep) as root, _ends_on_terminate():
        results = _elsewhere(programs, options) or _Pool(programs, options, jobs, root).run()
        with closing(results):
            for result in results:
                found.append(result)
                if seen(result):
                    break
    order = {program.name: index for index, program in enumerate(programs)}
    return sorted(found, key=lambda r: order[r.program])  # stable: cases keep their order


def _elsewhere(programs: Programs, options: Options) -> Generator[GymResult] | None:
    """The results of workers on other machines, if a cluster is selected."""
    if cluster_target() is None:
        return None
    from pto.cluster import tasks

    def lost(program: GymProgram | ModelKernel, why: str) -> GymResult:
        return _lost(program, "", f"was not run to its end: {why}")

    ordered, limit = _largest_first(programs), 2 * options.seconds + _GRACE
    found = tasks.cases(
        "pto.gym.pool:work_for", ordered, options, lost, streams=True, seconds=limit
    )
    return None if found is None else (result for _, result in found)


_kept: dict[Options, _Pool] = {}  # on a cluster worker: the process that runs its cases


def work_for(options: Options, program: GymProgram | ModelKernel) -> Iterator[GymResult]:
    """Run one program in a separate process, which is kept for the next one."""
    pool = _kept.get(options)
    if pool is None:
        root = options.keep or Path(tempfile.mkdtemp(prefix="pto-gym-"))
        if options.keep is None:
            atexit.register(shutil.rmtree, root, ignore_errors=True)
        pool = _kept[options] = _Pool([], options, 1, root, stays=True)
    pool.queue.append(_CaseJob(program))
    yield from pool.results()


def _largest_first(programs: Programs) -> list[GymProgram | ModelKernel]:
    return sorted(programs, key=lambda p: -p.weight)


def _lost(program: GymProgram | ModelKernel, case: str, reason: str) -> GymResult:
    """The result of a case that ended its process: failed."""
    name = case or program.name
    found = Diagnostic("PTO-U069", f"{name} {reason}")
    return GymResult(name, program.name, program.family, "failed", "run", diagnostics=(found,))


class _Pool:
    def __init__(
        self, programs: Programs, options: Options, jobs: int, root: Path, stays: bool = False
    ) -> None:
        self.queue = [_CaseJob(p) for p in reversed(_largest_first(programs))]
        self.stays = stays  # an idle worker waits for the next call
        self.options = options
        self.jobs = max(1, min(jobs, len(self.queue)))
        self.root = root
        self.workers: list[_Worker] = []
        self.context = multiprocessing.get_context("spawn")

    def run(self) -> Generator[GymResult]:
        """All results; nothing is left behind, however it ends."""
        try:
            yield from self.results()
        finally:
            self.stop()

    def results(self) -> Iterator[GymResult]:
        while self.queue or any(worker.is_busy for worker in self.workers):
            for worker in self.workers:
                if self.queue and not worker.is_busy:
                    worker.take(self.queue.pop())
            while self.queue and len(self.workers) < self.jobs:
                self._start(self.queue.pop())
            ready = wait([w.pipe for w in self.workers], timeout=_TICK)
            for worker in list(self.workers):
                if worker.pipe in ready:
                    yield from self._receive(worker)
                elif (
                    worker.is_busy
                    and time.monotonic() - worker.since > self.options.seconds + _GRACE
                ):
                    limit = f"took longer than {self.options.seconds:g} seconds"
                    yield from self._lose(worker, limit)

    def _start(self, job: _CaseJob) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(
            target=_work, args=(there, self.options, self.root), daemon=True
        )
        process.start()
        there.close()
        worker = _Worker(process, here, job)
        self.workers.append(worker)
        here.send(job)

    def _receive(self, worker: _Worker) -> Iterator[GymResult]:
        try:
            kind, body = worker.pipe.recv()
        except (EOFError, ConnectionError):
            worker.process.join(1)
            yield from self._lose(worker, f"ended its process ({worker.process.exitcode})")
            return
        worker.since = time.monotonic()
        if kind == "started":
            worker.case = body
        elif kind == "result":
            worker.done.add(body.name)
            yield body
        elif self.queue:
            worker.take(self.queue.pop())
        elif self.stays:
            worker.is_busy = False
        else:
            self._end(worker)

    def _lose(self, worker: _Worker, reason: str) -> Iterator[GymResult]:
        """Report the case that ended its worker as failed; requeue the rest of its program."""
        self._end(worker)
        program, case = worker.job.program, worker.case or worker.job.program.name
        yield _lost(program, case, reason)
        if case != program.name:
            finished = worker.job.skip | worker.done | {case}
            self.queue.append(_CaseJob(program, frozenset(finished)))

    def _end(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()

    def stop(self) -> None:
        for worker in list(self.workers):
            self._end(worker)


def _work(pipe: Pipe, options: Options, root: Path) -> None:
    """A worker: programs in, results out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends this
    if sys.platform == "linux":
        die_with_parent()
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(cache)  # removed, also if a compiler is killed
    warnings.simplefilter("ignore", PtoWarning)  # cases are judged by their results
    scripts = Scripts(options.seconds, cache)
    selection = select(options.expression)
    runner: Any = _named(options.runner)(scripts, _named(options.launch), options)
    try:
        while True:
            job: _CaseJob = pipe.recv()
            folder = root / job.program.name.replace("/", "__")
            if not job.skip:
                shutil.rmtree(folder, ignore_errors=True)  # kept from an earlier run
            folder.mkdir(parents=True, exist_ok=True)

            def started(case: str) -> None:
                pipe.send(("started", case))

            for result in runner.run(
                job.program, selection, folder, skip=job.skip, started=started
            ):
                pipe.send(("result", result))
            if options.keep is None:
                shutil.rmtree(folder, ignore_errors=True)
            pipe.send(("idle", None))
    except (EOFError, ConnectionError):
        return
    finally:
        scripts.close()


def _named(path: str) -> Callable[..., object]:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@contextmanager
def _work_directory(keep: Path | None) -> Generator[Path]:
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise PtoError(Diagnostic("PTO-U064", f"{keep} cannot be made: {reason}")) from None
        yield keep.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="pto-gym-"))
    try:
        yield root
    finally:
        for _ in range(5):  # a script that is just ending may still write
            shutil.rmtree(root, ignore_errors=True)
            if not root.exists():
                break
            time.sleep(0.1)


@contextmanager
def _ends_on_terminate() -> Generator[None]:
    """SIGTERM ends the run as Ctrl-C does, so that it cleans up."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: it has no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
