"""Who touched each byte last, by pipe: where a dependence on earlier work comes from.

Local buffers are cut into cells at every edge of an access; memory outside is a list of windows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pto.core.memory import Space
from pto.isa.pipe import OWN_ORDER
from pto.plan.sync.effects import PIPES, Access, Work
from pto.plan.sync.outside import Outside, Turns, Window
from pto.plan.sync.storage import Stretch

Times = npt.NDArray[np.int64]
Marks = tuple[dict[tuple[Space, bool], Times], "list[_Touch]"]


class _Touch(NamedTuple):
    time: int
    pipe: int
    writes: bool
    window: Window


class Shadow:
    """The state of all memory that the work of one function touches."""

    def __init__(self, works: Iterable[Work], outside: Outside) -> None:
        self._outside = outside
        edges: dict[Space, set[int]] = {}
        for work in works:
            for access in work.accesses:
                if isinstance(access.place, Stretch):
                    place = access.place
                    edges.setdefault(place.space, set()).update((place.start, place.end))
        self._cells = {
            space: {edge: n for n, edge in enumerate(sorted(found))}
            for space, found in edges.items()
        }
        self._times: dict[tuple[Space, bool], Times] = {
            (space, writes): np.zeros((len(PIPES), len(cells)), np.int64)
            for space, cells in self._cells.items()
            for writes in (False, True)
        }
        self._touches: list[_Touch] = []

    def save(self) -> Marks:
        return {key: times.copy() for key, times in self._times.items()}, self._touches.copy()

    def restore(self, saved: Marks) -> None:
        times, touches = saved
        self._times = {key: each.copy() for key, each in times.items()}
        self._touches = touches.copy()

    def add(self, other: Marks) -> None:
        """What happened on another way to here."""
        times, touches = other
        for key, each in times.items():
            np.maximum(self._times[key], each, out=self._times[key])
        known = set(map(id, self._touches))
        self._touches += [touch for touch in touches if id(touch) not in known]

    def mark(self, work: Work, time: int) -> None:
        for access in work.accesses:
            place = access.place
            if isinstance(place, Window):
                self._touches.append(_Touch(time, work.pipe, access.writes, place))
            else:
                cells = self._cells[place.space]
                first, last = cells[place.start], cells[place.end]
                self._times[place.space, access.writes][work.pipe, first:last] = time

    def before(self, work: Work, until: int, turns: Turns) -> list[int]:
        """For each pipe the time of its last work that this must come after; 0: none.

        Of memory outside only what happened up to `until` counts, related by `turns`.
        """
        found = [0] * len(PIPES)
        for access in work.accesses:
            if isinstance(access.place, Window):
                self._outside_before(access, access.place, until, turns, found)
            else:
                self._local_before(work.pipe, access, access.place, found)
        return found

    def _local_before(self, pipe: int, access: Access, place: Stretch, found: list[int]) -> None:
        cells = self._cells[place.space]
        span = slice(cells[place.start], cells[place.end])
        times = self._times[place.space, True][:, span].max(axis=1)
        if access.writes:
            times = np.maximum(times, self._times[place.space, False][:, span].max(axis=1))
        for other, time in enumerate(times.tolist()):
            if other != pipe or (PIPES[pipe], place.space) not in OWN_ORDER:
                found[other] = max(found[other], time)

    def _outside_before(
        self, access: Access, window: Window, until: int, turns: Turns, found: list[int]
    ) -> None:
        for touch in self._touches:
            if touch.time > until or found[touch.pipe] >= touch.time:
                continue
            clash = access.writes or touch.writes
            if clash and not self._outside.are_apart(touch.window, window, turns):
                found[touch.pipe] = touch.time
