"""Blocks of one launch over workers. Arrays change only at the end, and as in one process.

Parts are looked at in the order of their blocks. One that read or wrote what an earlier one wrote
is run again by the host, after it; so is one that failed, and its finding is told from there.
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

from pto.cluster.cargo import Cargo, load
from pto.cluster.crew import Crew, Job, Lost
from pto.cluster.intervals import NOTHING, Bytes, meet, merged
from pto.cluster.parcel import Parcel, pack
from pto.cluster.part import Part, Run, put
from pto.core.errors import PtoError
from pto.run.launch.prepared import Grid

_EACH = 3  # parts for each worker: they even out, and a lost one costs less
_TRIES = 3  # of one part, on workers that die; then the host runs it


@dataclass(frozen=True, slots=True)
class Moved:
    """What a launch has cost in bytes: arrays once to each node, and what was written back."""

    arrays: int = 0
    nodes: int = 0
    written: int = 0
    parts: int = 0
    again: int = 0  # parts that the host ran once more

    @property
    def total(self) -> int:
        return self.arrays * self.nodes + self.written

    def __str__(self) -> str:
        back = f"{self.written:,} bytes back"
        again = f", {self.again} of {self.parts} parts again in order" if self.again else ""
        return f"{self.arrays:,} bytes to each of {self.nodes} nodes, {back}{again}"


def can_go(grid: Grid) -> bool:
    """Whether blocks may run apart: several, that need nobody, and write down what they touch."""
    kernel = grid.kernel
    apart = grid.blocks > 1 and kernel.is_closed and not kernel.may_wait_early
    return apart and kernel.is_logged and grid.device.tap is None


def run(crew: Crew, grid: Grid) -> Moved | None:
    """All blocks of a launch; None: nothing has been done, it stays here."""
    parcel = pack(grid.kernel) if can_go(grid) else None
    if parcel is None:
        return None
    cargo, data = load(grid)
    if not data:
        return None
    crew.muster(1)
    parts = _collected(crew, grid, parcel, cargo, data)
    again = _merged(grid, cargo, data, parts)
    nodes = {part.node for part in parts if part.node}
    back = sum(part.nbytes for part in parts)
    return Moved(sum(cargo.sizes), len(nodes), back, len(parts), again)


def ranges(blocks: int, workers: int) -> list[tuple[int, int]]:
    """Contiguous, alike in size, a few for each worker."""
    count = min(blocks, _EACH * workers if workers > 1 else 1)
    cuts = [blocks * n // count for n in range(count + 1)]
    return list(pairwise(cuts))


def _collected(
    crew: Crew, grid: Grid, parcel: Parcel, cargo: Cargo, data: Sequence[Bytes]
) -> list[Part]:
    """Every part, in order; one that no worker lived to tell of is unknown."""
    shared = [crew.shared(each, each.nbytes) for each in data]
    kernel = crew.shared(parcel, len(parcel.program.text))
    launch, jobs = uuid4().hex, deque[Job]()
    for first, end in ranges(grid.blocks, len(crew.hands)):
        args = (launch, kernel, cargo, (first, end, grid.blocks), *shared)
        jobs.append(Job("blocks", args, (first, end)))
    found: dict[int, Part] = {}
    done = 0
    for job, result, _ in crew.results(jobs, lambda: _look(grid)):
        first, end = job.about
        if isinstance(result, Lost) and job.tries < _TRIES:
            jobs.appendleft(job)
            continue
        found[first] = Part(first, end) if isinstance(result, Lost) else result
        done += end - first
        if grid.progress is not None:
            grid.progress(done, grid.blocks)
    crew.tell("forget")  # the object store has room again
    return [found[first] for first in sorted(found)]


def _look(grid: Grid) -> None:
    if grid.limit is not None:
        grid.limit.look(f"one of {grid.blocks} blocks")


def _merged(grid: Grid, cargo: Cargo, data: Sequence[Bytes], parts: Sequence[Part]) -> int:
    """All parts in the host's arrays; how many the host had to run again."""
    if not _may_meet(parts):
        with _undisturbed():
            for part in parts:
                _take(grid, cargo, data, part)
        return 0
    before = [d.copy() if w else None for d, w in zip(data, cargo.written, strict=True)]
    try:
        return _in_order(grid, cargo, data, parts)
    except PtoError:
        raise  # as in one process: what earlier blocks wrote stays
    except BaseException:
        for own, old in zip(data, before, strict=True):
            if old is not None:
                own[:] = old
        raise


def _may_meet(parts: Sequence[Part]) -> bool:
    written = NOTHING
    for part in parts:
        if part.reads is None or meet(part.touched, written):
            return True
        written = merged([written, part.writes])
    return False


def _in_order(grid: Grid, cargo: Cargo, data: Sequence[Bytes], parts: Sequence[Part]) -> int:
    written, again, whole = NOTHING, 0, False
    for part in parts:
        if whole or part.reads is None or meet(part.touched, written):
            part = Run(cargo, data, keeps=False).run(grid, part.first, part.end)
            whole |= part.reads is None  # nobody knows what it wrote: all others come after it
            again += 1
        else:
            _take(grid, cargo, data, part)
        written = merged([written, part.writes])
    return again


def _take(grid: Grid, cargo: Cargo, data: Sequence[Bytes], part: Part) -> None:
    put(cargo, data, part.writes, part.data)
    for kept in part.kept:
        cargo.kept[kept.stretch].apply(data[kept.stretch], kept.where, kept.data)
    grid.told(part.printed)


@contextmanager
def _undisturbed() -> Generator[None]:
    """Ctrl-C waits a moment: arrays are as before a launch, or as after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)
