"""Accesses with their time, and the check that conflicting ones are ordered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pto.core.memory import Space
from pto.observe.memory.atomic import combination, footprints
from pto.observe.memory.granules import Cells, Conflict
from pto.observe.memory.shadow import Footprint
from pto.observe.order.clocks import Clock, Clocks, Moment, Thread
from pto.observe.order.scopes import ScopeOrder
from pto.observe.races import Races
from pto.run.sites import ANSWERED
from pto.run.watch.events import InstructionEvent
from pto.run.watch.memory import Access


@dataclass(slots=True)
class TimedAccess:
    """One access to memory, with the thread and the time of its operation."""

    access: Access
    cells: Cells
    thread: Thread
    moment: Moment
    time: int  # of the thread
    clock: Clock  # the times of all threads that the operation is ordered after
    combined: str  # the atomic operation of a store
    is_scalar: bool  # by the scalar unit, through its cache
    scope: ScopeOrder | None  # the vector scope around it
    # unordered reads of a local buffer before a write, without those of its own operation
    read: list[Conflict] = field(default_factory=list[Conflict])

    @property
    def keeps(self) -> bool:
        """True if the unit keeps order with itself."""
        least = (
            self.thread.own_order.get(self.access.memory.space) if self.thread.own_order else None
        )
        return least is not None and self.access.nbytes >= least

    @property
    def base(self) -> int:
        """The address of an array of the host in global memory."""
        return self.access.memory.shadow.base


class Checker(Protocol):
    """A check of each access, in the order of the run."""

    def touch(self, touch: TimedAccess) -> None: ...


def touches(
    event: InstructionEvent,
    accesses: list[Access],
    thread: Thread,
    clock: Clock,
    is_scalar: bool,
    scope: ScopeOrder | None = None,
) -> list[TimedAccess]:
    """The accesses of an event at the present time of its thread, before any of them is logged: its
    own reads do not hide earlier ones."""
    moment, time = thread.moments[-1], thread.now
    out: list[TimedAccess] = []
    for cells, access, atomic in footprints(accesses):
        by = combination(event.op, event.core) if atomic else ""
        touch = TimedAccess(access, cells, thread, moment, time, clock, by, is_scalar, scope)
        if access.writes and isinstance(cells, Footprint):
            touch.read = access.memory.shadow.reads(cells, thread.index, clock, touch.keeps)
        out.append(touch)
    return out


class AccessOrder:
    """Logs every access, and reports those that are not ordered after an earlier one."""

    def __init__(self, races: Races, clocks: Clocks) -> None:
        self._races = races
        self._clocks = clocks
        # bytes of local buffers that operations have filled as scratch space, by thread and time
        self._scratch: dict[tuple[int, int], tuple[int, int]] = {}

    def touch(self, touch: TimedAccess) -> None:
        access, thread = touch.access, touch.thread
        space = access.memory.space
        keeps = touch.keeps
        shadow: Any = access.memory.shadow  # GlobalShadow where cells are no footprint
        at = touch.cells, thread.index, touch.time, touch.clock
        conflicts: list[Conflict]
        if not isinstance(touch.cells, Footprint):
            conflicts = shadow.stores(*at, touch.combined) if access.writes else shadow.loads(*at)
        elif access.writes:
            conflicts = (
                shadow.stores(*at, keeps, id(touch.moment.op), access.is_scratch) + touch.read
            )
        else:
            conflicts = shadow.loads(*at, keeps)
        for conflict in conflicts:
            barrier = ""
            if conflict.thread == thread.index:
                if conflict.time == touch.time or keeps:  # its own other operand
                    continue
                if touch.scope is not None and conflict.time in touch.scope:
                    op = touch.moment.op
                    barrier = touch.scope.missing(conflict, op, touch.is_scalar, access.writes)
                    if not barrier:
                        continue
            other = self._clocks.threads[conflict.thread]
            if ANSWERED in other.moments[conflict.time - 1].op.attrs:
                continue
            where = f"{space.value.upper()}[{conflict.first:#06x}..{conflict.last:#06x})"
            costs = self._costs_data(access, conflict)
            self._races.add(
                conflict, where, other, thread, touch.moment, access.writes, barrier, costs
            )
        if access.is_scratch and access.writes:
            self._scratch[thread.index, touch.time] = access.span()

    def _costs_data(self, access: Access, conflict: Conflict) -> bool | None:
        """Whether two unordered writes of one pipe lose data: True if one fills scratch space and
        the other is a result; False if both fill scratch space, since the library has barriers
        between its steps; None if both are results."""
        low, high = self._scratch.get((conflict.thread, conflict.time), (0, 0))
        is_local = access.memory.space is not Space.GM
        was_scratch = is_local and low <= conflict.first < high
        return access.is_scratch is not was_scratch if access.is_scratch or was_scratch else None
