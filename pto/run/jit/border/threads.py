"""Blocks on several threads, where that changes nothing: compiled code runs without the GIL.

What blocks read and write in global memory is written down by the code itself. Where two blocks
turn out to have touched the same bytes, and one wrote them, or where one failed, memory is put back
and the blocks run once more in their order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError, fail
from pto.run.jit.border.context import TOUCH, Context
from pto.run.launch.prepared import memories_of
from pto.run.machine.limit import Limit, Stopped, TimedOut

if TYPE_CHECKING:
    from pto.run.launch.prepared import Grid

Words = npt.NDArray[np.int64]
_NUMBER = (1 << 63) - 1
WAVE = 1 << 18  # blocks at once: what they use is remembered until they are done
_LARGEST = 1 << 30  # bytes of global memory that are kept aside; larger launches take turns


def count() -> int:
    """PTO_THREADS, else one for each processor."""
    asked = os.environ.get("PTO_THREADS", "")
    if not asked:
        return os.cpu_count() or 1
    if not asked.isascii() or not asked.isdigit() or int(asked) < 1:
        raise fail("PTO-U091", f"PTO_THREADS is a number of threads, not `{asked}`")
    return int(asked)


def run(grid: Grid, written: Sequence[Any]) -> bool:
    """The next blocks of a grid; False: nothing has changed, and they are to run in order.
    `written` are the pointers and views through which memory may change."""
    memories = memories_of(written)
    if sum(m.size for m in memories) > _LARGEST:
        return False
    before = [m.data.copy() for m in memories]
    crew = _Crew(grid)
    crew.run(min(count(), grid.until))
    if not crew.stopped and not _meet(crew.touched):
        return True
    for memory, old in zip(memories, before, strict=True):
        memory.data[:] = old
    if crew.error is not None:
        raise crew.error
    if grid.limit is not None:
        grid.limit.stopped = False
    return False


class _Crew:
    """Threads that take blocks one by one until there are none, or something went wrong."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        grid.limit = self._limit = grid.limit or Limit()
        self._lock = threading.Lock()
        self.touched: list[Words] = []  # by block
        self.stopped = False
        self.error: BaseException | None = None  # nothing that the program did

    def run(self, size: int) -> None:
        others = [threading.Thread(target=self._work) for _ in range(size - 1)]
        for thread in others:
            thread.start()
        self._work()
        for thread in others:
            self._wait(thread)

    def _wait(self, thread: threading.Thread) -> None:
        """Until a thread has ended, which an interrupt makes it do."""
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                self._stop(error)

    def _stop(self, error: BaseException | None) -> None:
        """All threads end at their next turn of a loop. The first reason is told."""
        self.stopped = self._limit.stopped = True
        self.error = self.error or error

    def _work(self) -> None:
        try:
            with np.errstate(all="ignore"):
                while not self.stopped and self._one():
                    pass
        except Stopped:
            pass
        except TimedOut as error:
            self._stop(error)
        except PtoError:
            self._stop(None)  # told again, and in order, by the run in order
        except BaseException as error:
            self._stop(error)

    def _one(self) -> bool:
        """The next block, and what it touched; False when there was none."""
        with self._lock:
            agents = self._grid.next_block()
        for agent in agents:
            agent.go_on()
        uses = [uses_of(agent.core.native) for agent in agents]
        known = [each for each in uses if each is not None]
        with self._lock:
            self.touched += [np.concatenate(known)] if known else []
            self.stopped |= len(known) < len(uses)
        return bool(agents)


def uses_of(context: Any) -> Words | None:
    """What one agent used, by machine address: arrays of a host may overlap. None: unknown."""
    if not isinstance(context, Context):
        return np.empty((0, TOUCH), np.int64)
    words = context.touches()
    if words is None:
        return None
    found, numbers = words.copy(), words[:, 0] & _NUMBER
    for number in np.unique(numbers):
        base = context.memory(int(number)).data.ctypes.data
        found[numbers == number, 1] += base
    return found


def _meet(touched: Sequence[Words]) -> bool:
    """Whether two blocks use the same bytes, and one of them writes there."""
    words = np.concatenate([*touched, np.empty((0, TOUCH), np.int64)])
    block = np.repeat(np.arange(len(touched)), [len(each) for each in touched])
    rows, writes = words[:, 2], words[:, 0] < 0
    if not rows[writes].any():
        return False
    # one line for each row of each use
    which = np.repeat(np.arange(len(words)), rows)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows)
    start = words[which, 1] + nth * words[which, 4]
    end = start + words[which, 3]
    order = np.argsort(start, kind="stable")
    start, farthest = start[order], np.maximum.accumulate(end[order])
    owner, writes = block[which][order], writes[which][order]
    # lines that hang together, and those of several blocks among them
    first = np.flatnonzero(np.concatenate([[True], start[1:] >= farthest[:-1]]))
    shared = np.minimum.reduceat(owner, first) != np.maximum.reduceat(owner, first)
    return bool((shared & np.logical_or.reduceat(writes, first)).any())
