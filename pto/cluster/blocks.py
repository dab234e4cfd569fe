"""Blocks of one launch on several workers. Arrays change only at the end, as in one process.

The host merges ranges of blocks in order. It runs a range again if the range accessed bytes that an
earlier one wrote, or if it failed; the second run then reports the finding.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

from pto.cluster.kernel_message import KernelMessage, pack
from pto.cluster.part import RangeResult, RangeRun, put
from pto.cluster.payload import Payload, load
from pto.cluster.worker_pool import Job, LostWorker, WorkerPool
from pto.core.errors import PtoError
from pto.core.intervals import NOTHING, Bytes, meet, merged
from pto.run.launch.prepared import LaunchGrid

_EACH = 3  # ranges for each worker: they balance the load, and a lost range costs less
_TRIES = 3  # of one range on workers that die; then the host runs it


@dataclass(frozen=True, slots=True)
class BlockTraffic:
    """Bytes that a launch has moved: arrays once to each node, and the bytes written back."""

    arrays: int = 0
    nodes: int = 0
    written: int = 0
    parts: int = 0
    again: int = 0  # ranges that the host ran again

    @property
    def total(self) -> int:
        return self.arrays * self.nodes + self.written

    def __str__(self) -> str:
        back = f"{self.written:,} bytes back"
        again = f", {self.again} of {self.parts} parts again in order" if self.again else ""
        return f"{self.arrays:,} bytes to each of {self.nodes} nodes, {back}{again}"


def can_go(grid: LaunchGrid) -> bool:
    """True if blocks can run on several workers: they are independent and log their accesses."""
    kernel = grid.kernel
    apart = grid.blocks > 1 and kernel.is_closed and not kernel.may_wait_early
    return apart and kernel.is_logged and grid.device.tap is None


def run(pool: WorkerPool, grid: LaunchGrid) -> BlockTraffic | None:
    """Run all blocks of a launch; None if nothing was done and the launch must run locally."""
    message = pack(grid.kernel) if can_go(grid) else None
    if message is None:
        return None
    payload, data = load(grid)
    if not data:
        return None
    pool.wait_for_workers(1)
    parts = _collected(pool, grid, message, payload, data)
    again = _merged(grid, payload, data, parts)
    nodes = {part.node for part in parts if part.node}
    back = sum(part.nbytes for part in parts)
    return BlockTraffic(sum(payload.sizes), len(nodes), back, len(parts), again)


def ranges(blocks: int, workers: int) -> list[tuple[int, int]]:
    """Contiguous ranges of blocks of about equal size, a few for each worker."""
    count = min(blocks, _EACH * workers if workers > 1 else 1)
    cuts = [blocks * n // count for n in range(count + 1)]
    return list(pairwise(cuts))


def _collected(
    pool: WorkerPool,
    grid: LaunchGrid,
    message: KernelMessage,
    payload: Payload,
    data: Sequence[Bytes],
) -> list[RangeResult]:
    """The results of all ranges, in order; the accesses of a lost range are unknown."""
    shared = [pool.shared(array, array.nbytes) for array in data]
    kernel = pool.shared(message, len(message.program.text))
    launch, jobs = uuid4().hex, deque[Job]()
    for first, end in ranges(grid.blocks, len(pool.workers)):
        args = (launch, kernel, payload, (first, end, grid.blocks), *shared)
        jobs.append(Job("blocks", args, (first, end)))
    by_first: dict[int, RangeResult] = {}
    done = 0
    for job, result, _ in pool.results(jobs, lambda: _look(grid)):
        first, end = job.about
        if isinstance(result, LostWorker) and job.tries < _TRIES:
            jobs.appendleft(job)
            continue
        by_first[first] = RangeResult(first, end) if isinstance(result, LostWorker) else result
        done += end - first
        if grid.progress is not None:
            grid.progress(done, grid.blocks)
    pool.broadcast("forget")  # frees the object store
    return [by_first[first] for first in sorted(by_first)]


def _look(grid: LaunchGrid) -> None:
    if grid.limit is not None:
        grid.limit.look(f"one of {grid.blocks} blocks")


def _merged(
    grid: LaunchGrid, payload: Payload, data: Sequence[Bytes], parts: Sequence[RangeResult]
) -> int:
    """Merge all ranges into the host's arrays; returns how many ranges the host ran again."""
    if not _may_meet(parts):
        with _undisturbed():
            for part in parts:
                _take(grid, payload, data, part)
        return 0
    before = [d.copy() if w else None for d, w in zip(data, payload.written, strict=True)]
    try:
        return _in_order(grid, payload, data, parts)
    except PtoError:
        raise  # as in one process, the writes of earlier blocks remain
    except BaseException:
        for array, old in zip(data, before, strict=True):
            if old is not None:
                array[:] = old
        raise


def _may_meet(parts: Sequence[RangeResult]) -> bool:
    written = NOTHING
    for part in parts:
        if part.reads is None or meet(part.touched, written):
            return True
        written = merged([written, part.writes])
    return False


def _in_order(
    grid: LaunchGrid, payload: Payload, data: Sequence[Bytes], parts: Sequence[RangeResult]
) -> int:
    written = NOTHING
    again = 0
    is_serial = False
    for part in parts:
        if is_serial or part.reads is None or meet(part.touched, written):
            part = RangeRun(payload, data, keeps=False).run(grid, part.first, part.end)
            is_serial |= (
                part.reads is None
            )  # its writes are unknown, so all later ranges run here too
            again += 1
        else:
            _take(grid, payload, data, part)
        written = merged([written, part.writes])
    return again


def _take(grid: LaunchGrid, payload: Payload, data: Sequence[Bytes], part: RangeResult) -> None:
    put(payload, data, part.writes, part.data)
    for sums in part.kept:
        payload.kept[sums.region].apply(data[sums.region], sums.where, sums.data)
    grid.add_printed(part.printed)


@contextmanager
def _undisturbed() -> Generator[None]:
    """Delay Ctrl-C, so that arrays are as before a launch or as after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
