"""Blocks in compiled code, one after the other or on several threads, where that changes nothing.

A kernel that is one piece runs in a compiled loop over blocks. Where the program and the sizes of
the call prove that blocks are independent (`independent.py`), threads share them out. Else a
skeleton of the piece tells which global memory each block will read and write; where two blocks
meet and one of them writes, or one would fail, or nobody can tell, they run in their order, on one
thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError, fail
from pto.core.processors import usable
from pto.run.jit.border import clock
from pto.run.jit.border.context import HEAD, LOG, TOUCH, Words, by_machine_address, context_of
from pto.run.jit.border.independent import Given, Independence, given_of
from pto.run.jit.border.piece import Piece
from pto.run.jit.border.pool import Job
from pto.run.jit.emit.unit import Unit
from pto.run.launch.engine import SAID, variable
from pto.run.machine.core import Cluster, Core
from pto.run.machine.limit import Limit, Stopped
from pto.run.reference.code import Regs, located

if TYPE_CHECKING:
    from pto.run.launch.prepared import Grid
    from pto.run.launch.progress import Progress

WAVE: Final = 1 << 17  # blocks that are looked at together: what they use is remembered
_FEW: Final = 1 << 11  # uses of global memory that most launches have no more of
_ROOM: Final = 1 << 20  # of more, so many are written down
_BLOCK: Final = 4e-6  # seconds that a block must take to be worth a look
_LAUNCH: Final = 1e-3  # seconds that all of them must take to be worth threads
_TRIAL: Final = 1e-4  # seconds of blocks in their order, to know what one takes
_TURN: Final = 1e-4  # seconds of blocks that a thread takes at least
_SHORT: Final = 1e-5  # seconds of blocks that compiled code takes at least
_CHUNKS: Final = 16  # that compiled code takes in each thread
_ASKED: Final = variable("PTO_THREADS")
_LINES: Final = 1 << 23  # rows of what is used that are compared; more run in order


def count() -> int:
    """PTO_THREADS, else one for each processor."""
    return _count(SAID.get(_ASKED))


@lru_cache(maxsize=16)
def _count(said: bytes | str | None) -> int:
    asked = os.fsdecode(said or "")
    if not asked:
        return usable()
    if not asked.isascii() or not asked.isdigit() or int(asked) < 1:
        raise fail("PTO-U091", f"PTO_THREADS is a number of threads, not `{asked}`")
    return int(asked)


class Worker:
    """An agent that goes from block to block; it and its buffers are kept for later launches."""

    def __init__(self, unit: Unit, piece: Piece, core: Core) -> None:
        self.core = core
        self.context = context_of(core, unit.needs)
        self.context.outside = piece.outside
        self.aim: object = None  # the kind of calls that it was last set up for, if any,
        self.arrays: list[int] = []  # what their arrays are in its context,
        self.numbers: list[Any] = []  # and the numbers of the last one
        self._unit = unit
        self._piece = piece
        self._rounds, self._taken = unit.rounds()
        self._raw = np.zeros(piece.nbytes + 64, np.uint8)
        self.context.frame = self._raw.data
        self._pointers = self.context.pointer, self._raw.ctypes.data

    def begin(self, cluster: Cluster, regs: Regs) -> bool:
        """For a launch; False where an argument has no form in compiled code."""
        self.aim = self.context.unmade = None
        self.core.turn_to(cluster)
        self.context.turn_to(self.core)
        return self._piece.fill(self._raw.data, regs, self.context)

    def run(self, first: int, end: int, seen: Callable[[int], None] | None = None) -> None:
        """These blocks in their order; `seen` hears now and then which one begins."""
        self.context.seen = seen
        if self._call(self._rounds, first, end, 0) < end:
            raise self._failure()

    def take(self, chunk: int, end: int, counter: Words) -> None:
        """Blocks up to `end`, a chunk at a time from a counter that other threads share."""
        self.context.seen = None
        if self._call(self._taken, chunk, end, counter.ctypes.data) < end:
            raise self._failure()

    def _failure(self) -> BaseException:
        error = self.context.failed()
        return located(error, self._piece.op) if isinstance(error, PtoError) else error

    def _call(self, function: Any, first: int, end: int, where: int) -> int:
        hand = self.context.begin()
        try:
            return function(*self._pointers, first, end, where)
        finally:
            clock.leave(hand)

    def survey(self, first: int, end: int, room: int = _FEW) -> tuple[int, Words, Words] | None:
        """What the next blocks will use, up to which block: by machine address, and the block of
        each use. None: nobody knows, or one would fail."""
        function = self._unit.surveys()
        if function is None:
            return None
        log, ends = np.empty(HEAD + room * TOUCH, np.int64), np.zeros(1 + end - first, np.int64)
        log[:HEAD] = 0, room
        context, context.seen = self.context, None
        context.words[LOG] = log.ctypes.data
        if self._call(function, first, end, ends[1:].ctypes.data) < end:
            error, context.error = context.error or clock.interrupted(), None
            if error is not None:
                raise error
            return None
        if (uses := int(ends[-1])) > room < _ROOM:
            return self.survey(first, end, min(uses, _ROOM))
        ends = ends[: np.searchsorted(ends, room, "right")]
        words = log[HEAD : HEAD + int(ends[-1]) * TOUCH].reshape(-1, TOUCH)
        blocks = np.arange(len(ends) - 1)
        words = by_machine_address(words, context)
        return first + len(blocks), words, np.repeat(blocks, np.diff(ends))


class Task(Protocol):
    """A launch, as those see it who go through its blocks: from which to which, and how it ends."""

    here: tuple[int, int]
    blocks: int  # of the whole launch
    limit: Limit | None
    progress: Progress | None

    def cluster(self) -> Cluster: ...
    def begin(self, worker: Worker) -> bool: ...
    def given(self, worker: Worker) -> Given: ...
    def end(self, worker: Worker) -> None: ...


class OfGrid(Task):
    """A launch whose grid and arguments are there."""

    def __init__(self, grid: Grid, regs: Regs) -> None:
        self._grid = grid
        self._regs = regs
        self.here, self.blocks = grid.here, grid.blocks
        self.limit, self.progress = grid.limit, grid.progress

    def cluster(self) -> Cluster:
        return self._grid.cluster()

    def begin(self, worker: Worker) -> bool:
        return worker.begin(self._grid.cluster(), self._regs)

    def given(self, worker: Worker) -> Given:
        return given_of(self._grid.values, worker.context)

    def end(self, worker: Worker) -> None:
        self._grid.hear(worker.core)
        worker.context.forget()


class Crew:
    """The workers of a kernel, one a thread, and how its blocks are shared out among them."""

    def __init__(
        self,
        unit: Unit,
        piece: Piece,
        make: Callable[[Cluster], Core],
        independence: Independence,
    ) -> None:
        self.piece = piece
        self.needs = unit.needs
        self.independence = independence
        self._make = lambda cluster: Worker(unit, piece, make(cluster))
        self._idle: list[Worker] = []

    def run(self, grid: Grid, regs: Regs) -> bool:
        """All blocks of a launch; False where its arguments are none for compiled code."""
        return self.do(OfGrid(grid, regs))

    def do(self, task: Task) -> bool:
        """The same, where addresses of arguments may do."""
        first, end = task.here
        workers = [self._take(task)]
        try:
            if not task.begin(workers[0]):
                return False
            threads = min(count(), end - first) if end - first > 1 else 1
            if threads > 1 or task.progress is not None:
                _Shift(self, task, workers, threads).run()
            else:
                workers[0].run(first, end)
        finally:
            for worker in workers:
                task.end(worker)
            self._idle += workers
        return True

    def survey(self, grid: Grid, regs: Regs) -> Words | None:
        """What all blocks of a launch will use; None: nobody knows, or they meet."""
        task = OfGrid(grid, regs)
        worker, (first, end) = self._take(task), task.here
        try:
            if end - first > WAVE or not task.begin(worker):
                return None
            found = worker.survey(first, end)
            if found is None or found[0] < end or _meet(*found[1:]):
                return None
            return found[1]
        finally:
            worker.context.forget()
            self._idle.append(worker)

    def add(self, workers: list[Worker], task: Task) -> None:
        workers.append(self._take(task))
        task.begin(workers[-1])
        workers[-1].core.cluster.limit = task.limit

    def _take(self, task: Task) -> Worker:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make(task.cluster())


class _Shift:
    """One launch: the first worker goes through the blocks in their order, while another one finds
    out whether they meet. Where they do not, all go on side by side."""

    def __init__(self, crew: Crew, task: Task, workers: list[Worker], threads: int) -> None:
        self._crew = crew
        self._task = task
        self._workers = workers
        self._lock = threading.Lock()
        self._next, self._end = task.here  # blocks that nobody has begun with
        self._done = self._next
        self._wave = range(0)  # blocks that are looked at together
        self._apart: bool | None = None  # whether they do not meet, once that is known
        self._threads = threads
        self._least = 1  # blocks that one takes
        self._jobs: list[Job] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        end, (worker, *_) = self._end, self._workers
        if self._threads > 1:
            self._share()
        if self._next < end:
            worker.run(self._next, end, self._tell)
        self._tell(end)

    def _tell(self, done: int) -> None:
        if self._task.progress is not None:
            self._task.progress(done, self._task.blocks)

    def _share(self) -> None:
        """As many of the blocks as threads are worth."""
        took = self._trial(1)
        if (more := min(int(_TRIAL / took), self._end - self._next)) > 1:
            took = self._trial(more)
        self._least = max(1, int(_TURN / took))
        if (self._end - self._next) * took < _LAUNCH:
            return
        if self._crew.independence.holds(self._task.blocks, self._task.given(self._workers[0])):
            self._proved(took)
        while took > _BLOCK and (self._end - self._next) * took > _LAUNCH:
            if not self._together():
                return

    def _proved(self, took: float) -> None:
        """All blocks, which are known to be independent. Compiled code takes them from a counter:
        a thread that came back for more would wait for the others to leave Python."""
        task, workers, (first, end) = self._task, self._workers, (self._next, self._end)
        task.limit = task.limit or Limit()
        workers[0].core.cluster.limit = task.limit
        self._wave, self._apart = range(first, end), True
        work = self._work
        if task.progress is None:
            counter = np.array([first], np.int64)
            chunk = max(int(_SHORT / took), (end - first) // (_CHUNKS * self._threads), 1)
            work = partial(_take, chunk, end, counter)
            self._next = end
        self._jobs = [self._joined(n, work) for n in range(1, self._threads)]
        self._guarded(work, workers[0])
        self._wait_for_all()

    def _joined(self, n: int, work: Callable[[Worker], None]) -> Job:
        """Another thread takes blocks."""
        if n == len(self._workers):
            self._crew.add(self._workers, self._task)
        return Job(partial(self._guarded, work, self._workers[n]))

    def _trial(self, blocks: int) -> float:
        """Seconds of one of the next blocks."""
        began, first = perf_counter(), self._next
        self._workers[0].run(first, first + blocks, self._tell)
        self._next = self._done = first + blocks
        return (perf_counter() - began) / blocks

    def _together(self) -> bool:
        """A wave of blocks; False: some are left, that meet. The first error of any thread is told,
        when all have stopped."""
        task, workers = self._task, self._workers
        task.limit = task.limit or Limit()
        if len(workers) == 1:
            self._crew.add(workers, task)
        workers[0].core.cluster.limit = task.limit
        self._wave = range(self._next, min(self._next + WAVE, self._end))
        self._apart, self._jobs = None, []
        self._guarded(self._lead)
        self._wait_for_all()
        return bool(self._apart)

    def _wait_for_all(self) -> None:
        for job in self._jobs:  # the first adds the others, before it ends
            self._wait(job)
        if self._error is not None:
            raise self._error

    def _lead(self) -> None:
        self._jobs.append(Job(partial(self._guarded, self._scout)))
        self._work(self._workers[0])

    def _scout(self) -> None:
        """Finds out whether blocks meet; where not, this thread and others take some of them."""
        workers = self._workers
        first, end = self._wave.start, self._wave.stop
        found = workers[1].survey(first, end)
        apart = found is not None and found[0] > first and not _meet(*found[1:])
        with self._lock:
            self._apart = apart
            if found is not None:
                self._wave = range(self._wave.start, found[0])
        if not self._apart:
            return
        self._jobs += [self._joined(n, self._work) for n in range(2, self._threads)]
        self._work(workers[1])

    def _work(self, worker: Worker) -> None:
        while blocks := self._taken():
            worker.run(blocks.start, blocks.stop)
            with self._lock:
                self._done += len(blocks)
                self._tell(self._done)

    def _taken(self) -> range:
        """The next blocks for a thread: ever fewer, so that all end together. As long as nobody
        knows whether they meet, only the first asks."""
        with self._lock:
            first, end = self._next, self._wave.stop
            if self._error is not None or self._apart is False or first >= end:
                return range(0)
            size = (end - first) // (4 * self._threads)
            self._next = min(first + max(size, self._least), end)
            return range(first, self._next)

    def _wait(self, job: Job) -> None:
        """Until it has ended, which an interrupt makes it do."""
        while not job.is_over:
            try:
                job.wait()
            except BaseException as error:
                self._stop(error)

    def _stop(self, error: BaseException) -> None:
        """All threads end at their next turn of a loop. The first reason is told."""
        self._error = self._error or error
        if self._task.limit is not None:
            self._task.limit.stopped = True

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        """What a thread does. No error passes."""
        try:
            with np.errstate(all="ignore"):
                work(*given)
        except Stopped:
            pass
        except BaseException as error:
            self._stop(error)


def _take(chunk: int, end: int, counter: Words, worker: Worker) -> None:
    worker.take(chunk, end, counter)


def _meet(words: Words, block: Words) -> bool:
    """Whether two blocks use the same bytes, and one of them writes there."""
    writes, (start, rows, nbytes, pitch) = words[:, 0] < 0, words[:, 1:].T
    dense = pitch == nbytes  # rows that follow each other without gaps are one long row
    nbytes, rows = np.where(dense, nbytes * rows, nbytes), np.where(dense, 1, rows)
    far, some = (rows - 1) * pitch, (rows > 0) & (nbytes > 0)
    low, high = start + np.minimum(far, 0), start + np.maximum(far, 0) + nbytes
    if not _share_bytes(low[some], high[some], block[some], writes[some]):
        return False
    near = some & (high > low[writes].min()) & (low < high[writes].max())
    start, rows, nbytes, pitch = start[near], rows[near], nbytes[near], pitch[near]
    if rows.sum() > _LINES:
        return True
    # one line for each row of each use
    which = np.repeat(np.arange(len(rows)), rows)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows)
    start = start[which] + nth * pitch[which]
    return _share_bytes(start, start + nbytes[which], block[near][which], writes[near][which])


def _share_bytes(start: Words, end: Words, owner: Words, writes: npt.NDArray[np.bool_]) -> bool:
    """Whether lines of several blocks hang together, and one among them is written."""
    if not writes.any():
        return False
    order = np.argsort(start, kind="stable")
    start, farthest = start[order], np.maximum.accumulate(end[order])
    owner, writes = owner[order], writes[order]
    first = np.flatnonzero(np.concatenate([[True], start[1:] >= farthest[:-1]]))
    shared = np.minimum.reduceat(owner, first) != np.maximum.reduceat(owner, first)
    return bool((shared & np.logical_or.reduceat(writes, first)).any())
