"""Runs blocks in compiled code, in order or on several threads, with the same results.

A kernel that is one compiled region runs in a compiled loop over blocks. If the program and the
sizes of the call prove that blocks are independent (`independent.py`), threads share them. Else
blocks run in order on one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from pto.core.errors import PtoError, fail
from pto.core.processors import usable
from pto.ir.graph import Operation
from pto.run.jit.emit.unit import Unit
from pto.run.jit.runtime import team
from pto.run.jit.runtime.context import context_of
from pto.run.jit.runtime.independent import Given, Independence, Key, given_of
from pto.run.jit.runtime.region import CompiledRegion
from pto.run.launch.engine import ENVIRONMENT, variable
from pto.run.machine.core import Cluster, Core
from pto.run.machine.limit import Limit, Stopped
from pto.run.reference.code import Regs, located

if TYPE_CHECKING:
    from pto.run.launch.prepared import LaunchGrid
    from pto.run.launch.progress import Progress

_LAUNCH: Final = 1e-3  # seconds that all blocks must take to be worth threads
_TRIAL: Final = 1e-4  # seconds of blocks in order, to measure one
_SHORT: Final = 1e-5  # minimum seconds of the blocks that a thread takes at once
_CHUNKS: Final = 16  # times that each thread takes blocks
_LOGGED: Final = 1 << 20  # accesses of a worker to global memory that are logged at most
_ASKED: Final = variable("PTO_THREADS")


def count() -> int:
    """The number of threads: PTO_THREADS, else one for each processor."""
    return _count(ENVIRONMENT.get(_ASKED))


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
        self._block_loop, self.shared_loop = unit.block_loops()
        self._raw = np.zeros(region.nbytes + 64, np.uint8)
        self.context.frame = self._raw.data
        self.pointers = self.context.pointer, self._raw.ctypes.data
        if unit.needs.logs:
            self.context.log(_LOGGED)

    def begin(self, cluster: Cluster, regs: Regs) -> bool:
        """Prepare for a launch; False if an argument has no representation in compiled code."""
        self.signature = self.context.prepare = None
        self.core.reuse_for(cluster)
        self.context.reuse_for(self.core)
        return self._region.fill(self._raw.data, regs, self.context)

    def run(self, first: int, end: int, seen: Callable[[int], None] | None = None) -> None:
        """Run these blocks in order; `seen` is called regularly with the current block."""
        self.context.on_progress = seen
        if self.context.call(self._block_loop, *self.pointers, first, end, 0) < end:
            raise self.failure()

    def failure(self) -> BaseException:
        error = self.context.failed()
        return located(error, self._region.op) if isinstance(error, PtoError) else error


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
        if self._grid.ended is not None:
            self._grid.ended(worker.core.cluster)
        worker.context.release_arrays()


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
    """One launch on several threads: the first blocks run in order and are timed. Threads share the
    rest if that is worthwhile and blocks are proved to be independent."""

    def __init__(
        self, pool: ThreadPool, task: BlockTask, workers: list[BlockWorker], threads: int
    ) -> None:
        self._pool = pool
        self._task = task
        self._workers = workers
        self._next, self._end = task.here  # blocks that have not started
        self._threads = threads
        self._error: BaseException | None = None

    def run(self) -> None:
        if self._threads > 1:
            self._share()
        if self._next < self._end:
            self._workers[0].run(self._next, self._end, self._report)
        self._report(self._end)

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
        if (self._end - self._next) * took < _LAUNCH:
            return
        key = key or self._key()
        if key is not None and proofs.holds(key):
            proofs.measure(key, took)
            self._proved(took)

    def _key(self) -> Key | None:
        return self._pool.independence.key(self._task.blocks, self._task.given(self._workers[0]))

    def _trial(self, blocks: int) -> float:
        """Measure the seconds of one of the next blocks."""
        began, first = perf_counter(), self._next
        self._workers[0].run(first, first + blocks, self._report)
        self._next = first + blocks
        return (perf_counter() - began) / blocks

    def _proved(self, took: float) -> None:
        """Run all blocks, which are known to be independent. Raises the error of the first block
        that failed."""
        task = self._task
        workers = self._workers
        blocks = range(self._next, self._end)
        task.limit = task.limit or Limit()
        workers[0].core.cluster.limit = task.limit
        while len(workers) < self._threads:
            self._pool.add(workers, task)
        chunk = max(int(_SHORT / took), len(blocks) // (_CHUNKS * self._threads), 1)
        self._next, threads = self._end, team.take()
        try:
            ends = threads.run(workers, blocks, chunk, self._stop, self._report)
        finally:
            team.give(threads)
        task.limit.stopped = False  # the reference engine may run the launch again after an error
        failed = [(at, n) for n, at in enumerate(ends) if at < blocks.stop]
        errors = [workers[n].failure() for _, n in sorted(failed)]
        for error in (self._error, *errors):
            if error is not None and not isinstance(error, Stopped):
                raise error

    def _stop(self, error: BaseException | None) -> None:
        """Make all threads end at their next iteration. The first error is kept."""
        self._error = self._error or error
        if self._task.limit is not None:
            self._task.limit.stopped = True
