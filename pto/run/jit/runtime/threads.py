"""Runs blocks in compiled code, in order or on several threads, with the same results.

A kernel that is one compiled region runs in a compiled loop over blocks. If the program and the
sizes of the call prove that blocks are independent (`independent.py`), threads share them. Else a
slice of the region computes the footprint of each block in global memory. Blocks run in order on
one thread if two of them conflict, if one would fail, or if the footprint is unknown.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from pto.core.errors import PtoError, fail
from pto.core.processors import usable
from pto.ir.graph import Operation
from pto.run.jit.emit.unit import Unit
from pto.run.jit.runtime import clock, team
from pto.run.jit.runtime.context import HEAD, LOG, TOUCH, Words, by_machine_address, context_of
from pto.run.jit.runtime.independent import Given, Independence, Key, conflict, given_of
from pto.run.jit.runtime.pool import ThreadJob
from pto.run.jit.runtime.region import CompiledRegion
from pto.run.launch.engine import SAID, variable
from pto.run.machine.core import Cluster, Core
from pto.run.machine.limit import Limit, Stopped
from pto.run.reference.code import Regs, located

if TYPE_CHECKING:
    from pto.run.launch.prepared import LaunchGrid
    from pto.run.launch.progress import Progress

WAVE: Final = 1 << 17  # blocks analysed together: their footprints are kept in memory
_FEW: Final = 1 << 11  # accesses to global memory that most launches do not exceed
_CAPACITY: Final = 1 << 20  # maximum number of logged accesses
_BLOCK: Final = 4e-6  # seconds that a block must take to be worth an analysis
_LAUNCH: Final = 1e-3  # seconds that all must take to be worth threads
_TRIAL: Final = 1e-4  # seconds of blocks in order, to measure one
_TURN: Final = 1e-4  # minimum seconds of blocks for a thread
_SHORT: Final = 1e-5  # minimum seconds of blocks for a compiled loop
_CHUNKS: Final = 16  # chunks of a compiled loop for each thread
_ASKED: Final = variable("PTO_THREADS")


def count() -> int:
    """The number of threads: PTO_THREADS, else one for each processor."""
    return _count(SAID.get(_ASKED))


@lru_cache(maxsize=16)
def _count(said: bytes | str | None) -> int:
    asked = os.fsdecode(said or "")
    if not asked:
        return usable()
    if not asked.isascii() or not asked.isdigit() or int(asked) < 1:
        raise fail("PTO-U091", f"PTO_THREADS is a number of threads, not `{asked}`")
    return int(asked)


class BlockWorker:
    """An agent that runs block after block; it and its buffers are kept for later launches."""

    def __init__(self, unit: Unit, region: CompiledRegion, core: Core) -> None:
        self.core = core
        self.context = context_of(core, unit.needs)
        self.context.host_calls = region.host_calls
        self.signature: object = None  # the call signature it is set up for, if any,
        self.arrays: list[int] = []  # the memory numbers of its arrays,
        self.numbers: list[Any] = []  # and the numbers of the last call
        self._unit = unit
        self._region = region
        self._rounds, taken = unit.rounds()
        self._raw = np.zeros(region.nbytes + 64, np.uint8)
        self.context.frame = self._raw.data
        self.pointers = self.context.pointer, self._raw.ctypes.data
        # the address of the loop that takes blocks from a counter that threads share
        self.takes = ctypes.cast(taken, ctypes.c_void_p).value or 0

    def begin(self, cluster: Cluster, regs: Regs) -> bool:
        """Prepare for a launch; False if an argument has no representation in compiled code."""
        self.signature = self.context.unmade = None
        self.core.reuse_for(cluster)
        self.context.reuse_for(self.core)
        return self._region.fill(self._raw.data, regs, self.context)

    def run(self, first: int, end: int, seen: Callable[[int], None] | None = None) -> None:
        """Run these blocks in order; `seen` is called regularly with the current block."""
        self.context.seen = seen
        if self._call(self._rounds, first, end, 0) < end:
            raise self.failure()

    def failure(self) -> BaseException:
        error = self.context.failed()
        return located(error, self._region.op) if isinstance(error, PtoError) else error

    def _call(self, function: Any, first: int, end: int, where: int) -> int:
        state = self.context.begin()
        try:
            return function(*self.pointers, first, end, where)
        finally:
            clock.leave(state)

    def footprint(
        self, first: int, end: int, capacity: int = _FEW
    ) -> tuple[int, Words, Words] | None:
        """The footprint of the next blocks: the block where it ends, the accesses by machine
        address, and the block of each. None if it is unknown, or if a block would fail."""
        function = self._unit.surveys()
        if function is None:
            return None
        log, ends = np.empty(HEAD + capacity * TOUCH, np.int64), np.zeros(1 + end - first, np.int64)
        log[:HEAD] = 0, capacity
        context, context.seen = self.context, None
        context.words[LOG] = log.ctypes.data
        if self._call(function, first, end, ends[1:].ctypes.data) < end:
            error, context.error = context.error or clock.interrupted(), None
            if error is not None:
                raise error
            return None
        if (uses := int(ends[-1])) > capacity < _CAPACITY:
            return self.footprint(first, end, min(uses, _CAPACITY))
        ends = ends[: np.searchsorted(ends, capacity, "right")]
        words = log[HEAD : HEAD + int(ends[-1]) * TOUCH].reshape(-1, TOUCH)
        blocks = np.arange(len(ends) - 1)
        words = by_machine_address(words, context)
        return first + len(blocks), words, np.repeat(blocks, np.diff(ends))


class BlockTask(Protocol):
    """A launch as the thread pool sees it: its blocks, its limit, its begin and end."""

    here: tuple[int, int]
    blocks: int  # of the whole launch
    limit: Limit | None
    progress: Progress | None

    def cluster(self) -> Cluster: ...
    def begin(self, worker: BlockWorker) -> bool: ...
    def given(self, worker: BlockWorker) -> Given: ...
    def end(self, worker: BlockWorker) -> None: ...


class GridTask(BlockTask):
    """A launch with a grid and arguments."""

    def __init__(self, grid: LaunchGrid, regs: Regs) -> None:
        self._grid = grid
        self._regs = regs
        self.here, self.blocks = grid.here, grid.blocks
        self.limit, self.progress = grid.limit, grid.progress

    def cluster(self) -> Cluster:
        return self._grid.cluster()

    def begin(self, worker: BlockWorker) -> bool:
        return worker.begin(self._grid.cluster(), self._regs)

    def given(self, worker: BlockWorker) -> Given:
        return given_of(self._grid.values, worker.context)

    def end(self, worker: BlockWorker) -> None:
        self._grid.collect(worker.core)
        worker.context.forget()


class ThreadPool:
    """The workers of a kernel, one for each thread, and the distribution of blocks to them."""

    def __init__(
        self,
        unit: Unit,
        region: CompiledRegion,
        make: Callable[[Cluster], Core],
        function: Operation,
        names: Sequence[str],
    ) -> None:
        self.region = region
        self.needs = unit.needs
        self._proved = function, names
        self._make = lambda cluster: BlockWorker(unit, region, make(cluster))
        self._idle: list[BlockWorker] = []

    @cached_property
    def independence(self) -> Independence:
        return Independence(*self._proved)

    def run(self, grid: LaunchGrid, regs: Regs) -> bool:
        """Run all blocks of a launch; False if compiled code cannot take an argument."""
        return self.do(GridTask(grid, regs))

    def do(self, task: BlockTask) -> bool:
        """Run all blocks of a task, which may have only the addresses of its arguments."""
        first, end = task.here
        workers = [self._take(task)]
        try:
            if not task.begin(workers[0]):
                return False
            threads = min(count(), end - first) if end - first > 1 else 1
            if threads > 1 or task.progress is not None:
                _ParallelLaunch(self, task, workers, threads).run()
            else:
                workers[0].run(first, end)
        finally:
            for worker in workers:
                task.end(worker)
            self._idle += workers
        return True

    def footprint(self, grid: LaunchGrid, regs: Regs) -> Words | None:
        """The footprint of all blocks of a launch; None if it is unknown or blocks conflict."""
        task = GridTask(grid, regs)
        worker, (first, end) = self._take(task), task.here
        try:
            if end - first > WAVE or not task.begin(worker):
                return None
            found = worker.footprint(first, end)
            if found is None or found[0] < end or conflict(*found[1:]):
                return None
            return found[1]
        finally:
            worker.context.forget()
            self._idle.append(worker)

    def add(self, workers: list[BlockWorker], task: BlockTask) -> None:
        workers.append(self._take(task))
        task.begin(workers[-1])
        workers[-1].core.cluster.limit = task.limit

    def _take(self, task: BlockTask) -> BlockWorker:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make(task.cluster())


class _ParallelLaunch:
    """One parallel launch: the first worker runs blocks in order while another checks for
    conflicts. Without conflicts, all workers run blocks in parallel."""

    def __init__(
        self, pool: ThreadPool, task: BlockTask, workers: list[BlockWorker], threads: int
    ) -> None:
        self._pool = pool
        self._task = task
        self._workers = workers
        self._lock = threading.Lock()
        self._next, self._end = task.here  # blocks that have not started
        self._done = self._next
        self._wave = range(0)  # blocks analysed together
        self._apart: bool | None = None  # True if they do not conflict; None: not known yet
        self._threads = threads
        self._least = 1  # minimum number of blocks for a thread
        self._jobs: list[ThreadJob] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        end, (worker, *_) = self._end, self._workers
        if self._threads > 1:
            self._share()
        if self._next < end:
            worker.run(self._next, end, self._report)
        self._report(end)

    def _report(self, done: int) -> None:
        if self._task.progress is not None:
            self._task.progress(done, self._task.blocks)

    def _share(self) -> None:
        """Run as many of the blocks as are worth threads."""
        proofs, task = self._pool.independence, self._task
        key = self._key() if task.blocks in proofs.measured else None
        took = proofs.seconds.get(key, 0.0)
        if not took:
            took = self._trial(1)
            if (more := min(int(_TRIAL / took), self._end - self._next)) > 1:
                took = self._trial(more)
        self._least = max(1, int(_TURN / took))
        if (self._end - self._next) * took < _LAUNCH:
            return
        key = key or self._key()
        if key is not None and proofs.holds(key):
            proofs.measure(key, took)
            self._proved(took)
        while took > _BLOCK and (self._end - self._next) * took > _LAUNCH:
            if not self._together():
                return

    def _key(self) -> Key | None:
        return self._pool.independence.key(self._task.blocks, self._task.given(self._workers[0]))

    def _proved(self, took: float) -> None:
        """Run all blocks, which are known to be independent. Compiled code takes them from a
        counter: a thread that returned for more would wait for other threads to leave Python."""
        task, workers, (first, end) = self._task, self._workers, (self._next, self._end)
        task.limit = task.limit or Limit()
        workers[0].core.cluster.limit = task.limit
        self._wave, self._apart = range(first, end), True
        if task.progress is None and team.IS_SUPPORTED:
            chunk = max(int(_SHORT / took), (end - first) // (_CHUNKS * self._threads), 1)
            self._next = end
            self._in_team(range(first, end), chunk)
            return
        self._jobs = [self._joined(n) for n in range(1, self._threads)]
        self._guarded(self._work, workers[0])
        self._wait_for_all()

    def _in_team(self, blocks: range, chunk: int) -> None:
        """Run blocks on threads that need no Python. Raises the error of the first block that
        failed."""
        workers = self._workers
        while len(workers) < self._threads:
            self._pool.add(workers, self._task)
        threads = team.take()
        try:
            ends = threads.run(workers[0].takes, workers, blocks, chunk, self._stop)
        finally:
            team.give(threads)
        self._all_ended()
        failed = [(at, n) for n, at in enumerate(ends) if at < blocks.stop]
        errors = [workers[n].failure() for _, n in sorted(failed)]
        for error in (self._error, *errors):
            if error is not None and not isinstance(error, Stopped):
                raise error

    def _joined(self, n: int) -> ThreadJob:
        """Start another thread that takes blocks."""
        if n == len(self._workers):
            self._pool.add(self._workers, self._task)
        return ThreadJob(partial(self._guarded, self._work, self._workers[n]))

    def _trial(self, blocks: int) -> float:
        """Measure the seconds of one of the next blocks."""
        began, first = perf_counter(), self._next
        self._workers[0].run(first, first + blocks, self._report)
        self._next = self._done = first + blocks
        return (perf_counter() - began) / blocks

    def _together(self) -> bool:
        """Run a wave of blocks; False if conflicting ones are left. Raises the first error."""
        task, workers = self._task, self._workers
        task.limit = task.limit or Limit()
        if len(workers) == 1:
            self._pool.add(workers, task)
        workers[0].core.cluster.limit = task.limit
        self._wave = range(self._next, min(self._next + WAVE, self._end))
        self._apart, self._jobs = None, []
        self._guarded(self._lead)
        self._wait_for_all()
        return bool(self._apart)

    def _wait_for_all(self) -> None:
        for job in self._jobs:  # the first job adds the rest before it ends
            self._wait(job)
        self._all_ended()
        if self._error is not None:
            raise self._error

    def _lead(self) -> None:
        self._jobs.append(ThreadJob(partial(self._guarded, self._check_conflicts)))
        self._work(self._workers[0])

    def _check_conflicts(self) -> None:
        """Check for conflicts; without any, this thread and more take some of the blocks."""
        workers = self._workers
        first, end = self._wave.start, self._wave.stop
        found = workers[1].footprint(first, end)
        apart = found is not None and found[0] > first and not conflict(*found[1:])
        with self._lock:
            self._apart = apart
            if found is not None:
                self._wave = range(self._wave.start, found[0])
        if not self._apart:
            return
        self._jobs += [self._joined(n) for n in range(2, self._threads)]
        self._work(workers[1])

    def _work(self, worker: BlockWorker) -> None:
        while blocks := self._taken():
            worker.run(blocks.start, blocks.stop)
            with self._lock:
                self._done += len(blocks)
                self._report(self._done)

    def _taken(self) -> range:
        """The next blocks for a thread: ever fewer, so that all end together. Until conflicts are
        checked, only the first thread takes blocks."""
        with self._lock:
            first, end = self._next, self._wave.stop
            if self._error is not None or self._apart is False or first >= end:
                return range(0)
            size = (end - first) // (4 * self._threads)
            self._next = min(first + max(size, self._least), end)
            return range(first, self._next)

    def _wait(self, job: ThreadJob) -> None:
        """Wait until a job has ended; an interrupt ends it."""
        while not job.is_over:
            try:
                job.wait()
            except BaseException as error:
                self._stop(error)

    def _stop(self, error: BaseException | None) -> None:
        """Make all threads end at their next iteration. The first error is kept."""
        self._error = self._error or error
        if self._task.limit is not None:
            self._task.limit.stopped = True

    def _all_ended(self) -> None:
        """Allow later runs of the launch: the reference engine may run it again after an error."""
        if self._task.limit is not None:
            self._task.limit.stopped = False

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        """Run the function of a thread; an error stops all threads."""
        try:
            with np.errstate(all="ignore"):
                work(*given)
        except Stopped:
            pass
        except BaseException as error:
            self._stop(error)
