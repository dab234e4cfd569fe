"""Long loops in steady state: some iterations are recorded, the rest take as long as those.

An iteration equals another if it does the same work in the same order, at any addresses. Iterations
are left out if the last ones were equal; some of them, and the end of the loop, are checked again.
If anything is new there, everything is recorded after all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.ir.graph import Operation
from pto.isa.cost.work import TransferWork
from pto.observe.timing.clock import Times
from pto.observe.timing.stream import LoopFold, Recording, RecordStream, TimedJob
from pto.run.machine.core import Core
from pto.run.watch.outline import DryRun

WINDOW = 16  # iterations that are compared; covers multiple buffers
ENOUGH = 40_000  # instructions of a loop that are recorded before anything is left out
LOOKS = 8  # how often a left-out part is checked
MANY = 2 * LOOKS * WINDOW  # iterations of a loop that is folded


class Unsteady(Exception):
    """A loop did something new in a part that was to be left out."""


class FoldedDryRun(DryRun):
    """A recording that leaves out iterations equal to earlier ones."""

    def __init__(self, recording: Recording, *, registers: bool = False) -> None:
        super().__init__(recording, registers=registers)
        self._stream = recording.stream

    def trips(self, core: Core, op: Operation, counted: range) -> Iterable[int]:
        return counted if len(counted) < MANY or op.results else self._steady(counted)

    def _steady(self, counted: range) -> Iterator[int]:
        jobs = self._stream.jobs
        folds = self._stream.folds
        total = len(counted)
        marks = [len(jobs)]  # where each window begins
        at = 0
        while at < total:
            yield counted[at]
            at += 1
            if at % WINDOW:
                continue
            marks.append(len(jobs))
            if len(jobs) - marks[0] < ENOUGH or total - at < 2 * at or len(marks) < 3:
                continue
            first, last = marks[-2:]
            window = jobs[first:last]
            if not window or not _alike(jobs[marks[-3] : first], window):
                continue
            ends = total - WINDOW - (total - at) % WINDOW
            step = (ends - at) // (LOOKS * WINDOW) * WINDOW
            for to in (*range(at + step, at + LOOKS * step, step), ends):
                folds.append(LoopFold(first, last, WINDOW, to - at))
                at, first = to + WINDOW, len(jobs)
                yield from counted[to:at]
                last = len(jobs)
                if not _alike(window, jobs[first:last]):
                    raise Unsteady


def _alike(some: Sequence[TimedJob], others: Sequence[TimedJob]) -> bool:
    return len(some) == len(others) and all(
        a.op is b.op and _shape(a.work) == _shape(b.work) for a, b in zip(some, others, strict=True)
    )


def _shape(work: Any) -> Any:
    if not isinstance(work, TransferWork) or work.region is None:
        return work
    return work._replace(region=work.region._replace(address=0))


def left_out(stream: RecordStream, times: Times) -> float:
    """Cycles of the left-out iterations; agents run in parallel."""
    return max(
        (sum(cycles for _, cycles in gaps_of_agent) for gaps_of_agent in gaps(stream, times)),
        default=0.0,
    )


def gaps(stream: RecordStream, times: Times) -> list[list[tuple[int, float]]]:
    """For each agent the jobs before which something was left out, and its cycles.

    Inner loops were left out first, and count for enclosing ones; rounds of blocks contain the
    loops of all agents.
    """
    by_agent: list[list[tuple[int, float]]] = [[] for _ in stream.sides]
    for fold in stream.folds:
        after = min(fold.last, len(stream.jobs) - 1)
        span = times.start[after] - times.start[fold.first]
        mine = stream.pipes[stream.jobs[fold.first].pipe].agent
        for agent in range(len(by_agent)) if fold.of_blocks else (mine,):
            inner = sum(cycles for at, cycles in by_agent[agent] if fold.first < at <= fold.last)
            by_agent[agent].append((fold.last, fold.skipped * (span + inner) / fold.iterations))
    return by_agent


def weights(stream: RecordStream) -> npt.NDArray[np.float64]:
    """How many jobs each recorded job represents, including those left out."""
    counts = np.ones(len(stream.jobs))
    for fold in stream.folds:
        counts[fold.first : fold.last] *= 1 + fold.skipped / fold.iterations
    return counts


def busy(
    stream: RecordStream, times: Times, weight: Sequence[float], first: int = 0
) -> list[float]:
    """Busy cycles of pipes with the jobs from `first` on, each times its weight."""
    cycles, over = [0.0] * len(stream.pipes), [0.0] * len(stream.pipes)
    for n, often in enumerate(weight, first):
        pipe = stream.jobs[n].pipe
        start = times.start[n]
        done = times.done[n]
        cycles[pipe] += max(0.0, done - max(start, over[pipe])) * often
        over[pipe] = max(over[pipe], done)
    return cycles
