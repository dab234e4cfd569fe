"""Writes that another rank may not see yet: transfers before a notification without a fence.

A flag or barrier guarantees that a store of MTE3 or FIX is done on its core. Another rank sees it
in memory only after a fence of global memory: `fence.barrier_all` or `dsb` before the notification
(PTOAS issues 744 and 872, and its design of memory consistency). Cores of one rank need no such
fence. Scalar stores are handled in `caches.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.isa.row.order import FullFence
from pto.isa.row.phases import PipeAccess
from pto.isa.row.pipe_of import phases_of, pipe_of
from pto.isa.rules.rule import Case
from pto.observe.memory.accesses import TimedAccess
from pto.observe.memory.log import GlobalLog
from pto.observe.order.clocks import (
    Clock,
    ClockAgent,
    Clocks,
    Moment,
    Thread,
    joined,
    knows,
)
from pto.observe.races import described
from pto.run.order import effects as fx
from pto.run.watch.events import InstructionEvent
from pto.target.facts import Profile

PUBLISHING = (fx.WordWrite, fx.RankPublish, fx.PipeBarrier)
_TRANSFERS = ("MTE3", "FIX")
_HELP = "pto.fence.barrier_all #pto.fence_scope<gm> between the store and the notification"


class Visible:
    """The writes that every agent had made visible at its last notification."""

    def __init__(self, profile: Profile, clocks: Clocks, log: GlobalLog) -> None:
        self._profile = profile
        self._clocks = clocks
        self._log = log  # all accesses to global memory
        self._seen: dict[int, Clock] = {}  # by agent: covered by its last fence
        self._notified: dict[
            int, tuple[Clock | None, Operation]
        ] = {}  # the same at its notification
        self._is_used = False  # an agent has notified
        self._transfers: dict[int, bool] = {}  # by operation
        self._found: dict[tuple[int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def watch(self, agent: ClockAgent, event: InstructionEvent) -> None:
        """Handle an ordering operation: a fence of global memory, a notification, or another."""
        kind = type(event.effect)
        if kind is fx.WordWrite:
            self._is_used = True
            self._notified[id(agent)] = self._seen.get(id(agent)), event.op
        elif kind is fx.RankPublish and not agent.automatic:
            self._see(agent, [pipe for name, pipe in agent.pipes.items() if name == "S"])
        elif kind is fx.RankPublish or (kind is fx.PipeBarrier and _is_fence(event.op)):
            self._see(agent, agent.pipes.values())

    def _see(self, agent: ClockAgent, pipes: Iterable[Thread]) -> None:
        """Make the work and waits of these pipes visible."""
        for pipe in pipes:
            self._seen[id(agent)] = joined(pipe.publish(), self._seen.get(id(agent)))

    def touch(self, touch: TimedAccess) -> None:
        """Check a read that is ordered after a transfer by a notification of another rank."""
        if not self._is_used or touch.access.writes:
            return
        thread = touch.thread
        moment = touch.moment
        base = touch.base
        for writer, time, first, last in self._log.writers(touch.cells, base):
            other = self._clocks.threads[writer]
            notified = self._notified.get(id(other.agent))
            if other.agent.rank == thread.agent.rank or notified is None:
                continue
            clock, before = thread.clock, thread.agent.base
            if not knows(clock, writer, time) or knows(before, writer, time):
                continue  # a race, which is reported as such; or the launch had ended
            if knows(notified[0], writer, time):
                continue
            earlier = other.moments[time - 1]
            key = id(earlier.op), id(moment.op)
            if key not in self._found and self._is_transfer(earlier.op):
                range_text = f"GM[{first - base:#06x}..{last - base:#06x})"
                self._found[key] = _finding(thread, moment, other, earlier, notified[1], range_text)

    def _is_transfer(self, op: Operation) -> bool:
        is_transfer = self._transfers.get(id(op))
        if is_transfer is None:
            case = Case(op, self._profile)
            pipes = [step.pipe for step in phases_of(case) if isinstance(step, PipeAccess)]
            is_transfer = any(pipe in _TRANSFERS for pipe in (pipe_of(case), *pipes))
            self._transfers[id(op)] = is_transfer
        return bool(is_transfer)


def _is_fence(op: Operation) -> bool:
    return type(op.order) is FullFence


def _finding(
    thread: Thread,
    moment: Moment,
    other: Thread,
    earlier: Moment,
    notification: Operation,
    range_text: str,
) -> Diagnostic:
    return Diagnostic(
        "PTO-R046",
        f"rank {thread.agent.rank} reads {range_text} that rank {other.agent.rank} has stored"
        " before it notified, with no fence of global memory between:"
        " the store may not be visible yet",
        earlier.op.loc,
        "warning",
        notes=(
            Note(f"store: {described(other, earlier)}", earlier.op.loc),
            Note("the notification", notification.loc),
            Note(f"read: {described(thread, moment)}", moment.op.loc),
        ),
        help=_HELP,
    )
