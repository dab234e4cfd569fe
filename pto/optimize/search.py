"""The search for a schedule: passes and their numbers, judged by the timing model.

One number is changed at a time, from the program as it is and from a schedule that often suits;
the change that saves most is kept until none saves anything. A launch of many rounds of blocks is
searched with few rounds of the same blocks, and only the outcome is timed as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pto.core.errors import PtoError
from pto.observe import timing
from pto.observe.timing import Bench, Timing
from pto.optimize.report import Speed, StepReport
from pto.transform.block_order import grid_columns
from pto.transform.cores import CUBE, cores
from pto.transform.schedule import PASSES, PassStep, ProgramLaunch, Schedule, scheduled

_WORTH = 0.995  # of the time: a change that saves less is not kept
_ROUNDS = 3  # of blocks on each core, in the launch that is searched
_COUNTS = {"longer": (2, 3, 4, 6, 8), "slots": (2, 3, 4)}
_USUAL = {"order": 4, "longer": 4, "slots": 2}  # the second start of the search
_GROUPS = (2, 3, 4, 6, 8, 12)  # rows of blocks that share operands

Numbers = dict[str, int]  # of passes, by their names; a pass that is absent does not run


@dataclass(slots=True)
class Search:
    """A launch that is searched, and the times of the schedules that were tried."""

    launch: ProgramLaunch
    args: Sequence[Any]
    bench: Bench
    seconds: float  # of processor time, after which no further schedule is tried
    times: dict[Schedule, float] = field(default_factory=dict[Schedule, float])
    began: float = field(default_factory=time.process_time)

    def best(self) -> Schedule:
        """The fastest schedule that was found."""
        few = self._few_rounds()
        starts: list[Numbers] = [{}, self._usual(few)]
        best = min(starts, key=lambda numbers: self._time(few, numbers))
        previous = float("inf")
        while self._time(few, best) < _WORTH * previous and self._has_time():
            previous = self._time(few, best)
            for name in PASSES:
                for changed in self._changes(few, best, name):
                    if self._time(few, changed) < _WORTH * self._time(few, best):
                        best = changed
        return _schedule(self._without_idle(few, best))

    def timing(self, schedule: Schedule) -> Timing:
        """The time of the whole launch under a schedule."""
        return self._timed(self.launch, schedule)

    def steps(self, schedule: Schedule, last: Timing) -> Iterator[StepReport]:
        """The time after each step; `last` is that after all of them.

        Times between are of few rounds, in proportion.
        """
        few = self._few_rounds()
        whole = self._timed(few, schedule).us
        _, changes = scheduled(self.launch, schedule)
        for count, (each, done) in enumerate(zip(schedule, changes, strict=True), 1):
            us = last.us
            if count < len(schedule):
                us *= self._timed(few, schedule[:count]).us / whole
            words = tuple(str(result) for result in done if result.is_done)
            yield StepReport(str(each), us, words)

    def _few_rounds(self) -> ProgramLaunch:
        cores = self._cores()
        return replace(self.launch, blocks=min(self.launch.blocks, _ROUNDS * cores))

    def _cores(self) -> int:
        """The cores that run blocks: those of the matrix unit where the program uses it."""
        return cores_of(self.launch, self.bench)

    def _usual(self, launch: ProgramLaunch) -> Numbers:
        usual = {"persistent": self._cores(), **_USUAL}
        return {name: n for name in PASSES if (n := usual[name]) in self._numbers(launch, name)}

    def _numbers(self, launch: ProgramLaunch, name: str) -> Sequence[int]:
        """The numbers to try for a pass; none where it has nothing to change."""
        if name == "order":
            columns = max(grid_columns(f, launch.blocks) for f in launch.functions)
            height = launch.blocks // columns if columns else 0
            return [n for n in _GROUPS if n < height]
        if name == "persistent":
            return [self._cores()] if launch.blocks > self._cores() else []
        return _COUNTS[name]

    def _changes(self, launch: ProgramLaunch, numbers: Numbers, name: str) -> Iterator[Numbers]:
        """The numbers of a schedule with another one for a pass, or without it."""
        rest = {other: n for other, n in numbers.items() if other != name}
        if name in numbers:
            yield rest
        for n in self._numbers(launch, name):
            yield {**rest, name: n}

    def _without_idle(self, launch: ProgramLaunch, numbers: Numbers) -> Numbers:
        """The numbers without passes that change nothing or save nothing."""
        for name in list(numbers):
            rest = {other: n for other, n in numbers.items() if other != name}
            if self._time(launch, rest) * _WORTH <= self._time(launch, numbers):
                numbers = rest
        return numbers

    def _has_time(self) -> bool:
        return time.process_time() - self.began < self.seconds

    def _time(self, launch: ProgramLaunch, numbers: Numbers) -> float:
        """The time of few rounds; infinite for a program that is not legal or does not fit."""
        schedule = _schedule(numbers)
        if schedule not in self.times:
            if self.times and not self._has_time():
                return float("inf")
            try:
                self.times[schedule] = self._timed(launch, schedule).us
            except PtoError:
                self.times[schedule] = float("inf")
        return self.times[schedule]

    def _timed(self, launch: ProgramLaunch, schedule: Schedule) -> Timing:
        changed, _ = scheduled(launch, schedule)
        device = self.bench.device
        return timing.time(
            changed.module,
            args=self.args,
            blocks=changed.blocks,
            profile=device.profile,
            device=device.name,
            advice=False,
        )


def _schedule(numbers: Numbers) -> Schedule:
    """The steps in the order in which passes run."""
    return tuple(PassStep(name, numbers[name]) for name in PASSES if name in numbers)


def cores_of(launch: ProgramLaunch, bench: Bench) -> int:
    """The cores of a chip that run blocks of a launch."""
    used = {side for function in launch.functions for side in cores(function)}
    return bench.device.cube_cores if CUBE in used else bench.device.vector_cores


def speed_of(launch: Timing) -> Speed:
    """The time of a launch, and the share of the roofline that it reaches."""
    roofline = launch.roofline
    share = launch.hbm_share
    if roofline is not None and roofline.limit:
        share = roofline.flops_per_second / roofline.limit
    return Speed(launch.us, share, launch.limits)
