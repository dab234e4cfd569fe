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
                    stretch = access.place
                    edges.setdefault(stretch.space, set()).update((stretch.start, stretch.end))
        self._cells = {
            space: {edge: n for n, edge in enumerate(sorted(edges_of_space))}
            for space, edges_of_space in edges.items()
        }
        self.clear()

    def clear(self) -> None:
        # per space, cell and pipe: times of reads and of writes
        self._marks: dict[Space, list[list[list[Times]]]] = {
            space: [[[0, 0] for _ in PIPES] for _ in cells] for space, cells in self._cells.items()
        }
        self._touches: dict[tuple[int, int], _Touch] = {}  # by time and number of the access

    def _of(self, stretch: Stretch) -> list[list[list[Times]]]:
        cells = self._cells[stretch.space]
        return self._marks[stretch.space][cells[stretch.start] : cells[stretch.end]]

    def mark(self, phase: Phase, time: int) -> None:
        bit, pipe = 1 << time, phase.pipe
        for n, access in enumerate(phase.accesses):
            target = access.place
            if isinstance(target, MemWindow):
                self._touches[time, n] = _Touch(time, access.writes, target)
                continue
            for cell in self._of(target):
                cell[pipe][access.writes] |= bit

    def before(self, phase: Phase, now: int, last: int, relation: Relation) -> Times:
        """The times of the work that a phase must follow.

        In global memory only accesses up to `last` count, related by `relation`.
        """
        times = 0
        for access in phase.accesses:
            target, writes = access.place, access.writes
            if isinstance(target, MemWindow):
                times |= self._outside_before(target, writes, last, relation)
                continue
            pipe_name, space = PIPES[phase.pipe], target.space.value
            ordered_pipe = (
                phase.pipe if self._sync.keeps_order(pipe_name, space, access.least) else -1
            )
            for cell in self._of(target):
                for pipe, marks in enumerate(cell):
                    if pipe != ordered_pipe:
                        times |= marks[_WRITTEN] | (marks[_READ] if writes else 0)
        return times & until(now)

    def _outside_before(
        self, window: MemWindow, writes: bool, last: int, relation: Relation
    ) -> Times:
        times = 0
        for touch in self._touches.values():
            clash = touch.time <= last and (writes or touch.writes)
            if clash and not self._outside.are_apart(touch.window, window, relation):
                times |= 1 << touch.time
        return times
