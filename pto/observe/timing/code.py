"""Scalar code between instructions: its amount, and the uncertainty of its time.

The result of an optimising compiler is not known here; it is estimated from counted operations, and
a report gives the time at half and at twice the estimate.
"""

from __future__ import annotations

from typing import NamedTuple

from pto.isa.cost.work import CodeWork
from pto.observe.timing import clock
from pto.observe.timing.fold import left_out
from pto.observe.timing.measure import TimedCore
from pto.target.costs import Chip

LEAST, MOST = 0.5, 2.0  # of the estimate


class CodeSpread(NamedTuple):
    """Cycles of the busiest scalar unit, and of the whole run at half and at twice of these."""

    busiest: float
    least: float
    most: float


def spread(timed: TimedCore, chip: Chip) -> CodeSpread:
    """Transfers keep their times: memory is not simulated again."""
    jobs, times = timed.stream.jobs, timed.shared.times
    code = [n for n, job in enumerate(jobs) if isinstance(job.work, CodeWork)]
    if not code:
        return CodeSpread(0.0, timed.cycles, timed.cycles)
    took = [b - a for a, b in zip(times.start, times.free, strict=True)]
    late = [b - a for a, b in zip(times.free, times.done, strict=True)]
    by_pipe: dict[int, float] = {}
    for n in code:
        by_pipe[jobs[n].pipe] = by_pipe.get(jobs[n].pipe, 0.0) + took[n]

    def cycles(share: float) -> float:
        other = list(took)
        for n in code:
            other[n] *= share
        again = clock.run(timed.stream, chip, other, late)
        return again.end + left_out(timed.stream, again)

    return CodeSpread(max(by_pipe.values()), min(timed.cycles, cycles(LEAST)), cycles(MOST))
