"""Runs many programs in worker processes, and nothing is left behind when it stops.

A worker that dies or hangs costs one case: the rest of its program goes to a new worker. Results
come as they are made; `run_programs` gives them in the order of the checkout.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.gym.cases import Program
from pto.gym.models.kernels import ModelKernel
from pto.gym.result import Result
from pto.gym.scripts import Scripts
from pto.gym.selection import select
from pto.run.launch.call import PtoWarning

CASES = "pto.gym.runner:Runner"
MODELS = "pto.gym.models.runner:ModelRunner"
ENGINE = "pto.run.launch.host:launch"
SANITIZED = "pto.observe.sanitize:launch_sanitized"  # a finding makes a case fail
TIMED = "pto.gym.timed:launch_timed"  # the time of every launch on a chip is told too
MUTATED = "pto.gym.mutate:launch_mutated"  # every mutant of a program is judged too
_TICK = 0.5  # seconds between looks at the clock
_GRACE = 5.0  # seconds a worker has to notice by itself that a script ran out of time
Pipe = Any  # a connection; its class differs between systems


@dataclass(frozen=True, slots=True)
class Options:
    """How cases are run; crosses into workers, so it names things instead of holding them."""

    engine: str = "reference"
    profile: str | None = None
    expression: str = ""  # which cases
    seconds: float = 600.0  # one case, one script
    keep: Path | None = None  # where work directories stay
    launch: str = ENGINE  # module:function
    runner: str = CASES  # module:class
    sync: bool = False  # insert flags where a compiler is to do it
    schedule: str = ""  # when effects happen, where order leaves that open


@dataclass(frozen=True, slots=True)
class _Job:
    program: Program | ModelKernel
    skip: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Pipe
    job: _Job
    case: str = ""  # what it is at
    since: float = math.inf  # when it last said something; the start of a process does not count
    done: set[str] = field(default_factory=set[str])


def run_programs(
    programs: Sequence[Program] | Sequence[ModelKernel],
    options: Options,
    jobs: int,
    seen: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run every case asked for; `seen` hears of each as it ends."""
    with _work_directory(options.keep) as root, _ends_on_terminate():
        pool = _Pool(programs, options, jobs, root)
        try:
            found: list[Result] = []
            for result in pool.results():
                seen(result)
                found.append(result)
        finally:
            pool.stop()
    order = {program.name: index for index, program in enumerate(programs)}
    return sorted(found, key=lambda r: order[r.program])  # stable: cases keep their order


class _Pool:
    def __init__(
        self,
        programs: Sequence[Program] | Sequence[ModelKernel],
        options: Options,
        jobs: int,
        root: Path,
    ) -> None:
        largest_first = sorted(programs, key=lambda p: -p.weight)
        self.queue = [_Job(p) for p in reversed(largest_first)]
        self.options = options
        self.jobs = max(1, min(jobs, len(self.queue)))
        self.root = root
        self.workers: list[_Worker] = []
        self.context = multiprocessing.get_context("spawn")

    def results(self) -> Iterator[Result]:
        while self.queue or self.workers:
            while self.queue and len(self.workers) < self.jobs:
                self._start(self.queue.pop())
            ready = wait([w.pipe for w in self.workers], timeout=_TICK)
            for worker in list(self.workers):
                if worker.pipe in ready:
                    yield from self._hear(worker)
                elif time.monotonic() - worker.since > self.options.seconds + _GRACE:
                    limit = f"took longer than {self.options.seconds:g} seconds"
                    yield from self._lose(worker, limit)

    def _start(self, job: _Job) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(
            target=_work, args=(there, self.options, self.root), daemon=True
        )
        process.start()
        there.close()
        worker = _Worker(process, here, job)
        self.workers.append(worker)
        here.send(job)

    def _hear(self, worker: _Worker) -> Iterator[Result]:
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
            worker.job, worker.case, worker.done = self.queue.pop(), "", set()
            worker.pipe.send(worker.job)
        else:
            self._end(worker)

    def _lose(self, worker: _Worker, reason: str) -> Iterator[Result]:
        """A case that ended its worker: it failed; the others of its program go on elsewhere."""
        self._end(worker)
        program, case = worker.job.program, worker.case or worker.job.program.name
        found = Diagnostic("PTO-U069", f"{case} {reason}")
        yield Result(case, program.name, program.family, "failed", "run", diagnostics=(found,))
        if case != program.name:
            finished = worker.job.skip | worker.done | {case}
            self.queue.append(_Job(program, frozenset(finished)))

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
    warnings.simplefilter("ignore", PtoWarning)  # cases are judged by their results
    scripts = Scripts(options.seconds, root / ".cache")
    selection = select(options.expression)
    runner: Any = _named(options.runner)(
        scripts,
        _named(options.launch),
        engine=options.engine,
        profile=options.profile,
        schedule=options.schedule,
        sync=options.sync,
    )
    try:
        while True:
            job: _Job = pipe.recv()
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
    except ValueError:  # not the main thread: somebody else's signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def default_jobs() -> int:
    """As many workers as this process may use processors."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
