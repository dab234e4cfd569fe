"""The search: constants of a kernel and passes with their numbers, judged by the timing model.

Constants are chosen first, with a schedule that often suits: of all choices those with the least
lower bounds are timed. Then the number of one pass is changed at a time; the change that saves most
is kept until none saves anything. A launch of many rounds of blocks is
searched with few rounds of the same blocks, and only the outcome is timed as a whole. The roofline
is a lower bound: a program close to it ends the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pto.core.errors import PtoError
from pto.observe import timing
from pto.observe.timing import Bench, Timing
from pto.optimize.bound import cores_of, least_us
from pto.optimize.report import Speed, StepReport
from pto.target.profile import profile as find_profile
from pto.transform.block_order import grid_columns
from pto.transform.cores import uses_both
from pto.transform.schedule import PASSES, PassStep, ProgramLaunch, Schedule, scheduled

_WORTH = 0.995  # of the time: a change that saves less is not kept
_ROUNDS = 3  # of blocks on each core, in the launch that is searched
_TIMED = 8  # choices of constants that are timed, those with the least lower bounds
_NEAR = 1.02  # of the lower bound: nothing is left to save
_COUNTS = {"longer": (2, 3, 4, 6, 8), "slots": (2, 3, 4), "stages": (2, 3, 4)}
_USUAL = {"order": 4, "longer": 4, "slots": 2}  # the second start of the search
_USUAL_OF_BOTH = {"stages": 3}  # the same, for functions that use both cores
_GROUPS = (2, 3, 4, 6, 8, 12)  # rows of blocks that share operands

Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Program:
    """A launch of a kernel with some constants, and its arguments."""

    launch: ProgramLaunch
    args: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A choice: constants of the kernel, and the number of each pass that runs."""

    constants: Numbers
    passes: Numbers

    @property
    def key(self) -> tuple[object, ...]:
        return (tuple(self.constants.items()), self.schedule)

    @property
    def schedule(self) -> Schedule:
        """The steps in the order in which passes run."""
        return tuple(PassStep(n, self.passes[n]) for n in PASSES if n in self.passes)

    def with_pass(self, name: str, number: int | None) -> Point:
        """The same with another number for a pass, or without it."""
        rest = {other: n for other, n in self.passes.items() if other != name}
        return replace(self, passes=rest if number is None else {**rest, name: number})


@dataclass(slots=True)
class Search:
    """A kernel that is searched, and the times of the points that were tried."""

    program: Callable[[Numbers], Program]
    written: Numbers  # the constants that may change, as they are written
    space: Mapping[str, Sequence[int]]  # what to try for each of them
    bench: Bench
    data: bool  # control flow depends on the values of arrays
    seconds: float  # of processor time, after which nothing further is tried
    times: dict[tuple[object, ...], float] = field(default_factory=dict[tuple[object, ...], float])
    began: float = field(default_factory=time.process_time)

    def best(self) -> Point:
        """The fastest point that was found."""
        start = Point(self.written, {})
        best = min((start, *self._promising(start)), key=self._time)
        enough, previous = _NEAR * self._bound(start), float("inf")
        while enough < self._time(best) < _WORTH * previous and self._has_time():
            previous = self._time(best)
            for name in PASSES:
                best = self._better(best, self._with_pass(best, name))
        return self._without_idle(best)

    def _better(self, best: Point, changed: Iterator[Point]) -> Point:
        """The fastest of some points, if it saves enough of the best one before."""
        fastest = min(changed, key=self._time, default=best)
        return fastest if self._time(fastest) < _WORTH * self._time(best) else best

    def timing(self, point: Point) -> Timing:
        """The time of the whole launch."""
        program = self.program(point.constants)
        return self._timed(scheduled(program.launch, point.schedule)[0], program.args)

    def steps(self, point: Point, last: Timing) -> Iterator[StepReport]:
        """The time after each step; `last` is that after all, the others are in proportion."""
        if not point.schedule and point.constants == self.written:
            return
        whole = self._estimate(point)
        if point.constants != self.written:
            changed = {n: v for n, v in point.constants.items() if v != self.written[n]}
            words = ", ".join(f"{name}={value}" for name, value in changed.items())
            us = last.us * self._estimate(replace(point, passes={})) / whole
            yield StepReport(words, us if point.schedule else last.us, ())
        _, changes = scheduled(self.program(point.constants).launch, point.schedule)
        for count, (each, done) in enumerate(zip(point.schedule, changes, strict=True), 1):
            us = last.us
            if count < len(point.schedule):
                some = {step.name: step.number for step in point.schedule[:count]}
                us *= self._estimate(replace(point, passes=some)) / whole
            yield StepReport(str(each), us, tuple(str(r) for r in done if r.is_done))

    # ---- what to try

    def _promising(self, start: Point) -> Iterator[Point]:
        """A usual schedule with the constants of the least lower bounds, while these are less than
        the best time so far."""
        bounds: list[tuple[float, Point]] = []
        for values in product(*self.space.values()):
            constants = {**self.written, **dict(zip(self.space, values, strict=True))}
            point = replace(start, constants=constants)
            with suppress(PtoError):
                bounds.append((least_us(self.program(constants).launch, self.bench), point))
        bounds.sort(key=lambda each: each[0])
        best, timed = self._time(start), 0
        for least, point in bounds:
            if timed < _TIMED and least < best:
                usual = self._usual(point)
                timed += self._time(usual) < float("inf")
                best = min(best, self._time(usual))
                yield usual

    def _usual(self, point: Point) -> Point:
        launch = self.program(point.constants).launch
        usual = {"persistent": cores_of(launch, self.bench)}
        usual |= _USUAL_OF_BOTH if self._is_split(launch) else _USUAL
        passes = {n: usual[n] for n in usual if usual[n] in self._numbers(point, n)}
        return replace(point, passes=passes)

    def _with_pass(self, point: Point, name: str) -> Iterator[Point]:
        for number in self._numbers(point, name):
            yield point.with_pass(name, number)
        if name in point.passes:
            yield point.with_pass(name, None)

    def _numbers(self, point: Point, name: str) -> Sequence[int]:
        """The numbers to try for a pass; none where it has nothing to change."""
        launch = self.program(point.constants).launch
        if name == "order":
            columns = max(grid_columns(f, launch.blocks) for f in launch.functions)
            height = launch.blocks // columns if columns else 0
            return [n for n in _GROUPS if n < height]
        if name == "persistent":
            count = cores_of(launch, self.bench)
            return [count] if launch.blocks > count else []
        if name == "stages" and not self._is_split(launch):
            return []
        return _COUNTS[name]

    def _is_split(self, launch: ProgramLaunch) -> bool:
        """True if the two cores of the chip share the work of a function."""
        cores_are_apart = find_profile(self.bench.device.profile).separate_cores
        return cores_are_apart and any(map(uses_both, launch.functions))

    def _without_idle(self, point: Point) -> Point:
        """The point without passes that save nothing."""
        for name in point.passes:
            less = point.with_pass(name, None)
            if self._time(less) * _WORTH <= self._time(point):
                point = less
        return point

    # ---- times

    def _has_time(self) -> bool:
        return time.process_time() - self.began < self.seconds

    def _bound(self, point: Point) -> float:
        """A time that no schedule falls below: launch, products at the peak, or memory."""
        found = self.timing(point) if self._rounds(point) <= _ROUNDS else self._few(point)
        roofline = found.roofline
        if roofline is None or not roofline.limit:
            return 0.0
        seconds = roofline.flops / roofline.limit
        return found.us - found.core_us + seconds * 1e6 * self._part(point)

    def _time(self, point: Point) -> float:
        """The time of the launch; infinite for a program that is not legal or does not fit."""
        if point.key not in self.times:
            if self.times and not self._has_time():
                return float("inf")
            try:
                self.times[point.key] = self._estimate(point)
            except PtoError:
                self.times[point.key] = float("inf")
        return self.times[point.key]

    def _estimate(self, point: Point) -> float:
        """The time of the launch, from few rounds of its blocks."""
        few = self._few(point)
        return few.us - few.core_us + few.core_us * self._part(point)

    def _rounds(self, point: Point) -> int:
        """The rounds of blocks of the whole launch."""
        launch = self.program(point.constants).launch
        return -(-launch.blocks // cores_of(launch, self.bench))

    def _part(self, point: Point) -> float:
        """How many times as long as few rounds all rounds take."""
        rounds = self._rounds(point)
        return rounds / min(rounds, _ROUNDS)

    def _few(self, point: Point) -> Timing:
        """The time of the first rounds of blocks; their order is that of the whole launch."""
        program = self.program(point.constants)
        order = [step for step in point.schedule if step.name == "order"]
        rest = [step for step in point.schedule if step.name != "order"]
        launch, _ = scheduled(program.launch, order)
        launch.blocks = min(launch.blocks, _ROUNDS * cores_of(launch, self.bench))
        return self._timed(scheduled(launch, rest)[0], program.args)

    def _timed(self, launch: ProgramLaunch, args: Sequence[Any]) -> Timing:
        device = self.bench.device
        return timing.time(
            launch.module,
            args=args,
            blocks=launch.blocks,
            profile=device.profile,
            device=device.name,
            data=self.data,
            advice=False,
        )


def speed_of(launch: Timing) -> Speed:
    """The time of a launch, and the share of the roofline that it reaches."""
    roofline = launch.roofline
    share = launch.hbm_share
    if roofline is not None and roofline.limit:
        share = roofline.flops_per_second / roofline.limit
    return Speed(launch.us, share, launch.limits)
