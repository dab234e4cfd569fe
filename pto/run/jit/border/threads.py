"""Blocks in compiled code, one after the other or on several threads, where that changes nothing.

A kernel that is one piece runs in a compiled loop over blocks. Before threads are used, a skeleton
of the piece tells which global memory each block will read and write; where two blocks meet and one
of them writes, or one would fail, or nobody can tell, they run in their order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.errors import PtoError, fail
from pto.run.jit.border import clock
from pto.run.jit.border.context import HEAD, LOG, TOUCH, Words, by_machine_address, context_of
from pto.run.jit.border.piece import Piece
from pto.run.jit.emit.unit import Unit
from pto.run.machine.core import Cluster, Core
from pto.run.machine.limit import Limit, Stopped
from pto.run.reference.code import Regs, located

if TYPE_CHECKING:
    from pto.run.launch.prepared import Grid

WAVE: Final = 1 << 17  # blocks that are looked at together: what they use is remembered
_ROOM: Final = 1 << 20  # uses of global memory that are written down
_BLOCK: Final = 4e-6  # seconds that a block must take to be worth a look
_LAUNCH: Final = 1e-3  # seconds that all of them must take to be worth threads
_TRIAL: Final = 1e-4  # seconds of blocks in their order, to know what one takes
_SHARE: Final = 8  # in how many parts each thread takes its blocks
_LINES: Final = 1 << 23  # rows of what is used that are compared; more run in order


def count() -> int:
    """PTO_THREADS, else one for each processor."""
    asked = os.environ.get("PTO_THREADS", "")
    if not asked:
        return os.cpu_count() or 1
    if not asked.isascii() or not asked.isdigit() or int(asked) < 1:
        raise fail("PTO-U091", f"PTO_THREADS is a number of threads, not `{asked}`")
    return int(asked)


class Worker:
    """An agent that goes from block to block; it and its buffers are kept for later launches."""

    def __init__(self, unit: Unit, piece: Piece, core: Core) -> None:
        self.core = core
        self._unit = unit
        self._piece = piece
        self._rounds = unit.rounds()
        self._context = context_of(core, unit.needs)
        self._context.outside = piece.outside
        self._raw = np.zeros(piece.nbytes + 64, np.uint8)
        self._context.frame = self._raw.data
        self._pointers = self._context.pointer, self._raw.ctypes.data

    def begin(self, grid: Grid, regs: Regs) -> bool:
        """For a launch; False where an argument has no form in compiled code."""
        self.core.turn_to(grid.cluster())
        self._context.turn_to(self.core)
        return self._piece.fill(self._raw.data, regs, self._context)

    def end(self) -> None:
        """Arrays of a launch are not kept."""
        self._context.forget()

    def run(self, first: int, end: int, seen: Callable[[int], None] | None = None) -> None:
        """These blocks in their order; `seen` hears now and then which one begins."""
        self._context.seen = seen
        if self._call(self._rounds, first, end, 0) < end:
            error = self._context.failed()
            raise located(error, self._piece.op) if isinstance(error, PtoError) else error

    def _call(self, function: Any, first: int, end: int, where: int) -> int:
        hand = self._context.begin()
        try:
            return function(*self._pointers, first, end, where)
        finally:
            clock.leave(hand)

    def survey(self, first: int, end: int) -> tuple[int, Words, Words] | None:
        """What the next blocks will use, up to which block: by machine address, and the block of
        each use. None: nobody knows, or one would fail."""
        function = self._unit.surveys()
        if function is None:
            return None
        log, ends = np.empty(HEAD + _ROOM * TOUCH, np.int64), np.zeros(end - first, np.int64)
        log[:HEAD] = 0, _ROOM
        context, context.seen = self._context, None
        context.words[LOG] = log.ctypes.data
        if self._call(function, first, end, ends.ctypes.data) < end:
            error, context.error = context.error or clock.interrupted(), None
            if error is not None:
                raise error
            return None
        blocks = int(np.searchsorted(ends, _ROOM, "right"))
        ends = ends[:blocks]
        words = log[HEAD : HEAD + int(ends[-1] if blocks else 0) * TOUCH].reshape(-1, TOUCH)
        words = by_machine_address(words, context)
        return first + blocks, words, np.repeat(np.arange(blocks), np.diff(ends, prepend=0))


class Crew:
    """The workers of a kernel, one a thread, and how its blocks are shared out among them."""

    def __init__(self, unit: Unit, piece: Piece, make: Callable[[Cluster], Core]) -> None:
        self._make = lambda cluster: Worker(unit, piece, make(cluster))
        self._idle: list[Worker] = []

    def run(self, grid: Grid, regs: Regs) -> bool:
        """All blocks of a launch; False where its arguments are none for compiled code."""
        workers = [self._take(grid)]
        try:
            if not workers[0].begin(grid, regs):
                return False
            _Shift(self, grid, regs, workers).run()
        finally:
            for worker in workers:
                grid.hear(worker.core)
                worker.end()
            self._idle += workers
        return True

    def survey(self, grid: Grid, regs: Regs) -> Words | None:
        """What all blocks of a launch will use; None: nobody knows, or they meet."""
        worker, (first, end) = self._take(grid), grid.here
        try:
            if end - first > WAVE or not worker.begin(grid, regs):
                return None
            found = worker.survey(first, end)
            if found is None or found[0] < end or _meet(*found[1:]):
                return None
            return found[1]
        finally:
            worker.end()
            self._idle.append(worker)

    def add(self, workers: list[Worker], grid: Grid, regs: Regs) -> None:
        workers.append(self._take(grid))
        workers[-1].begin(grid, regs)

    def _take(self, grid: Grid) -> Worker:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make(grid.cluster())


class _Shift:
    """One launch: the first worker goes through the blocks, with others where they are worth it."""

    def __init__(self, crew: Crew, grid: Grid, regs: Regs, workers: list[Worker]) -> None:
        self._crew = crew
        self._grid = grid
        self._regs = regs
        self._workers = workers
        self._lock = threading.Lock()
        self._next, self._end = grid.here
        self._done = self._next
        self._error: BaseException | None = None

    def run(self) -> None:
        end, (worker, *_) = self._end, self._workers
        blocks = end - self._done
        if blocks > 1 and (threads := min(count(), blocks)) > 1:
            self._share(threads)
        if self._done < end:
            worker.run(self._done, end, self._tell)
        self._tell(end)

    def _tell(self, done: int) -> None:
        if self._grid.progress is not None:
            self._grid.progress(done, self._grid.blocks)

    def _share(self, threads: int) -> None:
        """As many of the blocks as threads are worth."""
        took, end = self._trial(1), self._end
        took = self._trial(min(int(_TRIAL / took), end - self._done)) or took
        while took > _BLOCK and (end - self._done) * took > _LAUNCH:
            found = self._workers[0].survey(self._done, min(self._done + WAVE, end))
            if found is None or found[0] == self._done or _meet(*found[1:]):
                return
            self._side_by_side(found[0], threads)

    def _trial(self, blocks: int) -> float:
        """Seconds of one of the next blocks."""
        began, first = perf_counter(), self._done
        self._workers[0].run(first, first + blocks, self._tell)
        self._done = first + blocks
        return (perf_counter() - began) / blocks if blocks else 0.0

    def _side_by_side(self, end: int, threads: int) -> None:
        """Up to this block. The first error of any thread is told, when all have stopped."""
        grid, workers = self._grid, self._workers
        grid.limit = grid.limit or Limit()
        while len(workers) < threads:
            self._crew.add(workers, grid, self._regs)
        workers[0].core.cluster.limit = grid.limit
        self._next, size = self._done, max(1, (end - self._done) // (threads * _SHARE))
        others = [threading.Thread(target=self._work, args=(w, end, size)) for w in workers[1:]]
        for thread in others:
            thread.start()
        self._work(workers[0], end, size)
        for thread in others:
            self._wait(thread)
        if self._error is not None:
            raise self._error

    def _wait(self, thread: threading.Thread) -> None:
        """Until a thread has ended, which an interrupt makes it do."""
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                self._stop(error)

    def _stop(self, error: BaseException) -> None:
        """All threads end at their next turn of a loop. The first reason is told."""
        self._error = self._error or error
        if self._grid.limit is not None:
            self._grid.limit.stopped = True

    def _work(self, worker: Worker, end: int, size: int) -> None:
        try:
            while self._error is None and self._next < end:
                with self._lock:
                    first = self._next
                    self._next = last = min(first + size, end)
                with np.errstate(all="ignore"):
                    worker.run(first, last)
                with self._lock:
                    self._done += last - first
                    self._tell(self._done)
        except Stopped:
            pass
        except BaseException as error:
            self._stop(error)


def _meet(words: Words, block: Words) -> bool:
    """Whether two blocks use the same bytes, and one of them writes there."""
    writes = words[:, 0] < 0
    if not writes.any():
        return False
    rows, nbytes, pitch = words[:, 2], words[:, 3], words[:, 4]
    dense = pitch == nbytes  # rows that follow each other without gaps are one long row
    nbytes, rows = np.where(dense, nbytes * rows, nbytes), np.where(dense, 1, rows)
    last = words[:, 1] + (rows - 1) * pitch * ~dense + nbytes
    near = (last > words[writes, 1].min()) & (words[:, 1] < last[writes].max())
    near &= (rows > 0) & (nbytes > 0)
    rows, nbytes, writes, block = rows[near], nbytes[near], writes[near], block[near]
    if rows.sum() > _LINES:
        return True
    # one line for each row of each use
    which = np.repeat(np.arange(len(rows)), rows)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows)
    start = words[near, 1][which] + nth * pitch[near][which]
    end = start + nbytes[which]
    order = np.argsort(start, kind="stable")
    start, farthest = start[order], np.maximum.accumulate(end[order])
    owner, writes = block[which][order], writes[which][order]
    # lines that hang together, and those of several blocks among them
    first = np.flatnonzero(np.concatenate([[True], start[1:] >= farthest[:-1]]))
    shared = np.minimum.reduceat(owner, first) != np.maximum.reduceat(owner, first)
    return bool((shared & np.logical_or.reduceat(writes, first)).any())
