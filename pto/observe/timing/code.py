"""Code between instructions: how much of it the scalar units run, and how sure its time is.

What an optimising compiler leaves of a source is not known here; it is estimated from what was
counted, and a report says what half and twice that would come to.
"""

from __future__ import annotations

from typing import NamedTuple

from pto.isa.cost.work import Code
from pto.observe.timing import clock
from pto.observe.timing.fold import left_out
from pto.observe.timing.measure import Timed
from pto.target.costs import Chip

LEAST, MOST = 0.5, 2.0  # of the estimate


class Spread(NamedTuple):
    """Cycles of the busiest scalar unit, and of the whole run at half and at twice of these."""

    busiest: float
    least: float
    most: float


def spread(timed: Timed, chip: Chip) -> Spread:
    """Transfers take as long as they did: memory is not asked again."""
    jobs, times = timed.stream.jobs, timed.shared.times
    code = [n for n, job in enumerate(jobs) if isinstance(job.work, Code)]
    if not code:
        return Spread(0.0, timed.cycles, timed.cycles)
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

    return Spread(max(by_pipe.values()), min(timed.cycles, cycles(LEAST)), cycles(MOST))
