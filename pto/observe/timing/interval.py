"""The interval of a predicted time; its width follows from what each part of the time rests on.

The time of the busiest core is divided among the costs along its critical path: each step takes the
time by which it ends after the step that let it start. The status of its cost defines how
uncertain a part is (`SPREAD` of `target/costs.py`). Parts of one status err together, since they
come from
the same sources; parts of different status err independently.
"""

from __future__ import annotations

from collections import defaultdict
from math import hypot
from typing import NamedTuple

import numpy as np

from pto.observe.timing.clock import Times
from pto.observe.timing.measure import TimedCore
from pto.target.costs import SPREAD, Chip

_BOUND = 1e-6  # of a transfer's end: memory decides it
MEMORY = "rate of memory"
LAUNCH = "launch"


class Term(NamedTuple):
    """A part of the time that one cost explains."""

    name: str  # a cost class, or a rate that all cores share
    rests_on: str  # a status of costs, or what else decides how uncertain it is
    us: float

    @property
    def error_us(self) -> float:
        return self.us * SPREAD[self.rests_on]

    def __str__(self) -> str:
        return f"{self.name} ({self.rests_on}, {self.us:.1f} us +- {SPREAD[self.rests_on]:.0%})"


def terms_of(timed: TimedCore, chip: Chip, mhz: float) -> list[Term]:
    """The parts of the whole time, the most uncertain first."""
    times, shared = timed.shared.times, timed.shared
    slow = _memory_bound(timed)
    cycles: dict[tuple[str, str], float] = defaultdict(float)

    def key(job: int) -> tuple[str, str]:
        price = timed.prices[job]
        return (MEMORY, "shared") if job in slow else (price.cost, price.status)

    before = hidden = 0.0
    for job in critical(times):
        begin = max(before, times.start[job])
        hidden += begin - before
        cycles[key(job)] += max(0.0, times.done[job] - begin)
        before = max(before, times.done[job])
    busy = sum(times.done) - sum(times.start)
    if hidden > 0 and busy > 0:  # behind barriers of all pipes: whatever these were busy with
        for job, done in enumerate(times.done):
            cycles[key(job)] += hidden * (done - times.start[job]) / busy
    whole = sum(cycles.values())
    cold = 0.0 if not shared.served.size else min(chip.cold_start_us, before / mhz)
    scale = (timed.cycles / mhz - cold) / whole if whole else 0.0
    found = [Term(*key, us=took * scale) for key, took in cycles.items()]
    found.append(Term(LAUNCH, "launch", chip.launch_us + cold))
    return sorted(found, key=lambda term: -term.error_us)


def interval(
    us: float, terms: list[Term], code: tuple[float, float], slowest: float
) -> tuple[float, float]:
    """The least and the greatest time that the model expects.

    `code`: the time with half and with twice the C++ code between instructions. `slowest`: the
    lowest clock under power throttling.
    """
    errors: dict[str, float] = defaultdict(float)
    for term in terms:
        errors[term.rests_on] += term.error_us
    error = hypot(*errors.values())
    low = us - hypot(error, us - min(us, code[0]))
    high = us + hypot(error, max(us, code[1]) - us, us * (1 / slowest - 1) / 2)
    return max(0.0, low), high


def _memory_bound(timed: TimedCore) -> set[int]:
    """Transfers that end when memory or the cache has served them."""
    items, times = timed.load.items, timed.shared.times
    free = np.array(times.free)[items] if items.size else np.zeros(0)
    bound = timed.shared.served >= free * (1 - _BOUND)
    return {int(job) for job in items[bound]}


def critical(times: Times | None) -> list[int]:
    """From the instruction that ended last back through those that let it start."""
    if times is None or not times.done:
        return []
    at = max(range(len(times.done)), key=times.done.__getitem__)
    path: list[int] = []
    while at >= 0:
        path.append(at)
        at = times.before[at]
    return path[::-1]
