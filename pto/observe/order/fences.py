"""Warnings about needless flags and barriers, and about flags that are set again too early.

A wait is needless if its pipe was already ordered after everything the flag covers. A set and its
waits are judged together, since neither can be removed alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.isa.row.flag import Flag
from pto.observe.order.clocks import Clock, ClockAgent, Thread
from pto.run.watch.events import InstructionEvent
from pto.target.facts import SHARED_SOURCE, Sync

NEEDLESS = ("PTO-R014", "PTO-R015", "PTO-R016")  # of a flag, a barrier, a memory barrier


@dataclass(slots=True, eq=False)
class _Pairing:
    """Matched sets and waits of one flag, and whether they have ordered anything."""

    flag: Flag
    agent: ClockAgent
    sets: list[Operation] = field(default_factory=list[Operation])
    waits: list[Operation] = field(default_factory=list[Operation])
    is_useful: bool = False
    is_plain: bool = True  # each set is in the block of its wait: no loop carries it

    def add(self, set_op: Operation, wait_op: Operation) -> None:
        for op, ops in ((set_op, self.sets), (wait_op, self.waits)):
            if not any(op is other for other in ops):
                ops.append(op)
        self.is_plain &= set_op.parent is wait_op.parent


class FenceUses:
    """The use of each set, wait and barrier of a run."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._tells_reuse = "flag-reuse" in sync.flag_warnings
        self._tells_shared = SHARED_SOURCE in sync.flag_warnings
        self._pairings: dict[tuple[int, int], _Pairing] = {}  # by set and wait
        self._of: dict[int, _Pairing] = {}  # by operation
        self._barriers: dict[int, tuple[Operation, str, str] | None] = {}  # None: it orders
        self._freed: dict[tuple[int, Flag], tuple[Thread, int, InstructionEvent]] = {}
        self._early: dict[int, tuple[ClockAgent, Flag, InstructionEvent, InstructionEvent]] = {}
        self._shared: dict[
            tuple[int, int], tuple[ClockAgent, Flag, InstructionEvent, InstructionEvent]
        ] = {}
        self.done: set[int] = set()  # executed sets and waits, by operation

    # ---- events

    def wait(
        self,
        thread: Thread,
        item: InstructionEvent,
        flag: Flag,
        setter: InstructionEvent,
        clock: Clock,
    ) -> None:
        """Called before a wait takes the set of `setter`."""
        pairing = self._pairings.get((id(setter.op), id(item.op)))
        if pairing is None:
            self.done.add(id(item.op))
            pairing = self._pair(thread.agent, flag, setter.op, item.op)
        if not pairing.is_useful and bool((clock > thread.clock[: clock.size]).any()):
            pairing.is_useful = True
        if self._tells_reuse:  # only then a wait counts as an operation of its own
            self._freed[id(thread.agent), flag] = thread, thread.tick(item), item

    def set(self, thread: Thread, item: InstructionEvent, flag: Flag, clock: Clock) -> None:
        """Called when a flag is set: check that it follows the wait for its last set."""
        self.done.add(id(item.op))
        if self._tells_shared:
            self._look_beside(thread.agent, item, flag)
        if self._tells_reuse:
            self._look_before(thread, item, flag, clock)

    def _look_before(
        self, thread: Thread, item: InstructionEvent, flag: Flag, clock: Clock
    ) -> None:
        freed = self._freed.get((id(thread.agent), flag))
        if freed is None or id(item.op) in self._early:
            return
        waiter, time, wait = freed
        if clock[waiter.index] < time:
            self._early[id(item.op)] = thread.agent, flag, wait, item

    def _look_beside(self, agent: ClockAgent, item: InstructionEvent, flag: Flag) -> None:
        """Check for another flag that a target with flags by source and id takes for this one."""
        for other, queue in agent.flags.items():
            if queue and (other.src, other.id) == (flag.src, flag.id) and other.dst != flag.dst:
                first = queue[-1][1]
                key = id(first.op), id(item.op)
                self._shared.setdefault(key, (agent, flag, first, item))

    def barrier(self, op: Operation, subject: str, orders: bool, word: str = "barrier") -> None:
        """Called for a barrier of a pipe, or for a memory barrier of a kind."""
        if orders:
            self._barriers[id(op)] = None
        else:
            self._barriers.setdefault(id(op), (op, subject, word))

    def is_known(self, op: Operation) -> bool:
        """True for a barrier that has ordered something: it needs no further check."""
        return self._barriers.get(id(op), ()) is None

    def _pair(
        self, agent: ClockAgent, flag: Flag, set_op: Operation, wait_op: Operation
    ) -> _Pairing:
        """The pairing of both; two separate ones are merged."""
        mine, theirs = self._of.get(id(set_op)), self._of.get(id(wait_op))
        pairing = mine or theirs or _Pairing(flag, agent)
        if mine is not None and theirs is not None and mine is not theirs:
            for op in (*theirs.sets, *theirs.waits):
                self._of[id(op)] = mine
            mine.sets += theirs.sets
            mine.waits += theirs.waits
            mine.is_useful |= theirs.is_useful
            mine.is_plain &= theirs.is_plain
            self._pairings = {k: mine if p is theirs else p for k, p in self._pairings.items()}
        pairing.add(set_op, wait_op)
        self._of[id(set_op)] = self._of[id(wait_op)] = pairing
        self._pairings[id(set_op), id(wait_op)] = pairing
        return pairing

    # ---- findings

    def findings(self) -> Iterator[Diagnostic]:
        for pairing in {id(p): p for p in self._pairings.values()}.values():
            if not pairing.is_useful and pairing.is_plain:
                yield self._needless(pairing)
        for barrier in self._barriers.values():
            if barrier is not None:
                yield self._needless_barrier(*barrier)
        if self._tells_reuse:
            yield from (_reused(*reuse) for reuse in self._early.values())
        for agent, flag, first, second in self._shared.values():
            pairs = [self._of.get(id(event.op)) for event in (first, second)]
            if all(pair is not None and pair.is_plain for pair in pairs):
                yield _shared(agent, flag, first, second)

    def _needless(self, pairing: _Pairing) -> Diagnostic:
        flag, wait = pairing.flag, pairing.waits[0]
        message = (
            f"flag {flag} orders nothing new: {flag.dst} already comes after all that {flag.src}"
            " has done before the set"
        )
        cost = f"one of {self._sync.event_ids} ids between {flag.src} and {flag.dst}, and a wait"
        return Diagnostic(
            "PTO-R014",
            message,
            wait.loc,
            "warning",
            notes=(
                *(Note("set here", op.loc) for op in pairing.sets),
                *(Note("also waited for here", op.loc) for op in pairing.waits[1:]),
                Note(f"cost: {cost}"),
            ),
        )

    def _needless_barrier(self, op: Operation, subject: str, word: str) -> Diagnostic:
        if word == "mem_bar":
            why = "nothing of its first class stands before it in its scope"
            message = f'mem_bar "{subject}" orders nothing new: {why}'
            return Diagnostic("PTO-R016", message, op.loc, "warning")
        if subject == "ALL":
            why = "every pipe already comes after all the others"
        elif subject in self._sync.memory_ordered:
            why = f"{subject} keeps its own order on this target"
        else:
            why = f"{subject} has done nothing since it was last known to be complete"
        message = f"barrier {subject} orders nothing new: {why}"
        return Diagnostic("PTO-R015", message, op.loc, "warning", notes=(Note("cost: a stall"),))


def _reused(
    agent: ClockAgent, flag: Flag, wait: InstructionEvent, again: InstructionEvent
) -> Diagnostic:
    return Diagnostic(
        "PTO-D208",
        f"flag {flag} of {agent.name} may be set again before its last set was taken:"
        f" nothing orders this set after the wait",
        again.op.loc,
        "warning",
        notes=(
            Note(f"the wait that frees it: #{wait.number} on {flag.dst}", wait.op.loc),
            Note(f"set again by #{again.number} on {flag.src}", again.op.loc),
        ),
    )


def _shared(
    agent: ClockAgent, flag: Flag, first: InstructionEvent, second: InstructionEvent
) -> Diagnostic:
    return Diagnostic(
        "PTO-D210",
        f"two flags of {agent.name} from {flag.src} with id {flag.id} are set at a time:"
        " hardware that names a flag by its source and id takes them for one",
        second.op.loc,
        "warning",
        notes=(
            Note(f"set first by #{first.number}", first.op.loc),
            Note(f"{flag} set by #{second.number}", second.op.loc),
        ),
    )
