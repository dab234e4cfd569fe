"""A search, the checks of its outcome, and the cached report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core import disk_cache as cache
from pto.core.edition import edition
from pto.ir.text.printer import print_module
from pto.observe.timing import Bench
from pto.optimize.accept import Comparison, RejectedError, accepted
from pto.optimize.report import Optimization
from pto.optimize.search import Search, speed_of
from pto.target.profile import profile
from pto.transform.schedule import ProgramLaunch, Schedule, scheduled

_SECONDS = 10.0  # of a search, before its outcome is checked

Compare = Callable[[Schedule], Sequence[Comparison]]


@dataclass(frozen=True, slots=True)
class Task:
    """A launch to make faster on a chip, and small launches on which its bits are compared."""

    kernel: str
    launch: ProgramLaunch
    args: Sequence[Any]
    bench: Bench
    compare: Compare

    def outcome(self, *, again: bool) -> tuple[ProgramLaunch, Optimization]:
        """The fastest program that passes all checks; a cached schedule is used unless `again`."""
        name = self._name()
        raw = None if again else cache.load(name)
        if raw is None:
            report = self._searched()
            cache.store(name, json.dumps(report.to_json()).encode())
        else:
            report = Optimization.of_json(json.loads(raw))
        return self.scheduled(report.schedule), report

    def scheduled(self, schedule: Schedule) -> ProgramLaunch:
        return scheduled(self.launch, schedule)[0]

    def _name(self) -> str:
        kinds = [(a.shape, str(a.dtype)) if isinstance(a, np.ndarray) else a for a in self.args]
        program, device = print_module(self.launch.module), self.bench.device.name
        return cache.key("optimize", edition(), program, f"{self.launch.blocks} {device} {kinds}")

    def _searched(self) -> Optimization:
        began = time.process_time()
        search = Search(self.launch, self.args, self.bench, _SECONDS)
        schedule = search.best()
        checked: tuple[str, ...] = ()
        if schedule:
            try:
                checked = self._checked(schedule)
            except RejectedError as error:
                schedule, checked = (), (f"{error}; the program stays as it is",)
        before = search.timing(())
        after = search.timing(schedule) if schedule else before
        return Optimization(
            kernel=self.kernel,
            device=self.bench.device.name,
            constants={},
            schedule=schedule,
            blocks=self.scheduled(schedule).blocks,
            before=speed_of(before),
            after=speed_of(after),
            steps=tuple(search.steps(schedule, after)),
            tried=len(search.times),
            seconds=time.process_time() - began,
            checked=checked,
        )

    def _checked(self, schedule: Schedule) -> tuple[str, ...]:
        found, after = profile(self.bench.device.profile), self.scheduled(schedule)
        return accepted(self.launch, after, found, self.compare(schedule))
