"""A search, the checks of its outcome, and the cached report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pto.core import disk_cache as cache
from pto.core.edition import edition
from pto.ir.text.printer import print_module
from pto.observe.timing import Bench
from pto.optimize.accept import Comparison, RejectedError, accepted
from pto.optimize.report import Optimization
from pto.optimize.search import Numbers, Point, Program, Search, speed_of
from pto.target.profile import profile
from pto.transform.schedule import scheduled

_SECONDS = 10.0  # of a search, before its outcome is checked

Compare = Callable[[Point], Sequence[Comparison]]
Space = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Task:
    """A launch to make faster on a chip, and small launches on which its bits are compared."""

    kernel: str
    program: Callable[[Numbers], Program]
    written: Numbers  # the constants that may change
    space: Callable[[], Space]  # what to try for them
    bench: Bench
    compare: Compare
    data: bool = False  # control flow depends on the values of arrays

    def outcome(self, *, again: bool) -> tuple[Program, Optimization]:
        """The fastest program that passes all checks; a cached choice is used unless `again`."""
        name = self._name()
        raw = None if again else cache.load(name)
        if raw is None:
            report = self._searched()
            cache.store(name, json.dumps(report.to_json()).encode())
        else:
            report = Optimization.of_json(json.loads(raw))
        return self._changed(_point(report)), report

    def _changed(self, point: Point) -> Program:
        found = self.program(point.constants)
        return Program(scheduled(found.launch, point.schedule)[0], found.args)

    def _name(self) -> str:
        found = self.program(self.written)
        kinds = [(a.shape, str(a.dtype)) if isinstance(a, np.ndarray) else a for a in found.args]
        device, blocks = self.bench.device.name, found.launch.blocks
        settings = f"{dict(self.written)} {blocks} {device} {kinds}"
        return cache.key("optimize", edition(), print_module(found.launch.module), settings)

    def _searched(self) -> Optimization:
        began = time.process_time()
        space = self.space()
        search = Search(self.program, self.written, space, self.bench, self.data, _SECONDS)
        start = Point(self.written, {})
        point = search.best()
        checked = ()
        before = search.timing(start)
        after = before if point == start else search.timing(point)
        if after.us > before.us:
            point, after = start, before
        if point != start:
            try:
                checked = self._checked(point)
            except RejectedError as error:
                point, after = start, before
                checked = (f"{error}; the program stays as it is",)
        return Optimization(
            kernel=self.kernel,
            device=self.bench.device.name,
            constants=dict(point.constants),
            schedule=point.schedule,
            blocks=self._changed(point).launch.blocks,
            before=speed_of(before),
            after=speed_of(after),
            steps=tuple(search.steps(point, after)),
            tried=len(search.times),
            seconds=time.process_time() - began,
            checked=checked,
        )

    def _checked(self, point: Point) -> tuple[str, ...]:
        found, after = profile(self.bench.device.profile), self._changed(point)
        before = self.program(self.written)
        return accepted(before.launch, after.launch, found, self.compare(point))


def _point(report: Optimization) -> Point:
    return Point(report.constants, {step.name: step.number for step in report.schedule})
