"""Accesses to each byte by pipe and time: the source of dependences on earlier work.

Local buffers are cut into cells at every edge of an access; global memory is a list of windows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pto.core.memory import Space
from pto.plan.sync.clocks import Times, until
from pto.plan.sync.effects import PIPES, Phase
from pto.plan.sync.outside import GlobalViews, MemWindow, Relation
from pto.plan.sync.storage import Stretch
from pto.target.facts import Sync

_READ, _WRITTEN = 0, 1


class _Touch(NamedTuple):
    time: int
    writes: bool
    window: MemWindow


class Footprints:
    """The accesses of one function to all memory.

    Marks of later times than the current one are left over from an abandoned path.
    """

    def __init__(self, phases: Iterable[Phase], outside: GlobalViews, sync: Sync) -> None:
        self._outside = outside
        self._sync = sync
        edges: dict[Space, set[int]] = {}
        for phase in phases:
            for access in phase.accesses:
                if isinstance(access.place, Stretch):
                    place = access.place
                    edges.setdefault(place.space, set()).update((place.start, place.end))
        self._cells = {
            space: {edge: n for n, edge in enumerate(sorted(found))}
            for space, found in edges.items()
        }
        self.clear()

    def clear(self) -> None:
        # per space, cell and pipe: times of reads and of writes
        self._marks: dict[Space, list[list[list[Times]]]] = {
            space: [[[0, 0] for _ in PIPES] for _ in cells] for space, cells in self._cells.items()
        }
        self._touches: dict[tuple[int, int], _Touch] = {}  # by time and number of the access

    def _of(self, place: Stretch) -> list[list[list[Times]]]:
        cells = self._cells[place.space]
        return self._marks[place.space][cells[place.start] : cells[place.end]]

    def mark(self, phase: Phase, time: int) -> None:
        bit, pipe = 1 << time, phase.pipe
        for n, access in enumerate(phase.accesses):
            place = access.place
            if isinstance(place, MemWindow):
                self._touches[time, n] = _Touch(time, access.writes, place)
                continue
            for cell in self._of(place):
                cell[pipe][access.writes] |= bit

    def before(self, phase: Phase, now: int, last: int, relation: Relation) -> Times:
        """The times of the work that a phase must follow.

        In global memory only accesses up to `last` count, related by `relation`.
        """
        found = 0
        for access in phase.accesses:
            place, writes = access.place, access.writes
            if isinstance(place, MemWindow):
                found |= self._outside_before(place, writes, last, relation)
                continue
            pipe_name, space = PIPES[phase.pipe], place.space.value
            own = phase.pipe if self._sync.keeps_order(pipe_name, space, access.least) else -1
            for cell in self._of(place):
                for pipe, marks in enumerate(cell):
                    if pipe != own:
                        found |= marks[_WRITTEN] | (marks[_READ] if writes else 0)
        return found & until(now)

    def _outside_before(
        self, window: MemWindow, writes: bool, last: int, relation: Relation
    ) -> Times:
        found = 0
        for touch in self._touches.values():
            clash = touch.time <= last and (writes or touch.writes)
            if clash and not self._outside.are_apart(touch.window, window, relation):
                found |= 1 << touch.time
        return found
