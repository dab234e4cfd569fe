"""The pipes of all agents as queues of work that is not done yet, and what may be done next.

An operation starts when it is the first of its pipe and what it waits for has happened: flags,
buffer ids, unit flags, and whatever its own meaning says of other agents. Who decides which of the
possible ones is done is in `choice.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pto.core.errors import PtoError
from pto.ir.graph import Operation
from pto.isa.meaning import Blocked
from pto.run.machine.core import Core
from pto.run.order import effects as fx
from pto.run.order.deferred_registers import Registers
from pto.run.reference.code import Step, located


@dataclass(slots=True, eq=False)
class Item:
    """One operation on its way through its pipe, with everything it was issued with."""

    op: Operation
    unit: Unit
    pipe: str
    number: int  # in the order of issue, over all agents
    step: Step
    values: Any  # the registers of the program that it reads
    registers: Registers  # of the core
    effect: fx.Effect | None = None
    need: int = 0  # releases of a buffer id that came before it
    marked: bool = False  # ordered with the others that carry a unit flag
    reason: Blocked | None = None  # why it did not start when it was tried
    is_done: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """One agent: its queues, and the state of its flags and buffer ids."""

    core: Core
    index: int  # in the order agents began
    registers: Registers  # as the scalar unit sees them
    queues: dict[str, deque[Item]] = field(default_factory=dict[str, deque[Item]])
    flags: dict[fx.Flag, int] = field(default_factory=dict[fx.Flag, int])
    released: dict[int, int] = field(default_factory=dict[int, int])  # by buffer id
    releases: dict[int, int] = field(default_factory=dict[int, int])  # issued so far
    users: dict[int, dict[str, None]] = field(default_factory=dict[int, dict[str, None]])
    marked: deque[Item] = field(default_factory=deque[Item])
    stalled: Item | None = None  # what the scalar unit waits for
    at_work: bool = False  # inside a piece of work: what it consists of is done at once

    def queue(self, pipe: str) -> deque[Item]:
        return self.queues.setdefault(pipe, deque())

    def items(self) -> Iterator[Item]:
        for queue in self.queues.values():
            yield from queue

    @property
    def is_idle(self) -> bool:
        return not any(self.queues.values())

    def newest(self) -> Item | None:
        tails = [queue[-1] for queue in self.queues.values() if queue]
        return max(tails, key=lambda item: item.number, default=None)


Want = Item | Blocked | None  # to be done first; not at hand; nothing


class Pipes:
    """The queues of all agents that are at work."""

    def __init__(self) -> None:
        self.units: dict[int, Unit] = {}  # by core, in the order they began
        self.done = 0  # operations
        self._issued = 0
        self._wants: dict[type, Callable[[Item, Any], Want]] = {
            fx.WaitFlag: _wants_flag,
            fx.GetBuffer: _wants_buffer,
            fx.ReleaseBuffer: _wants_users,
        }

    # ---- issue

    def number(self) -> int:
        self._issued += 1
        return self._issued

    def put(self, item: Item) -> None:
        """The last of its queue."""
        unit, effect = item.unit, item.effect
        if isinstance(effect, fx.ReleaseBuffer):
            unit.releases[effect.id] = unit.releases.get(effect.id, 0) + 1
        elif isinstance(effect, fx.GetBuffer):
            unit.users.setdefault(effect.id, {})[item.pipe] = None
            item.need = unit.releases.get(effect.id, 0) if effect.waits else 0
        unit.queue(item.pipe).append(item)
        if item.marked:
            unit.marked.append(item)

    # ---- what may start

    def wants(self, item: Item) -> Want:
        """What has to happen before an operation can be tried."""
        unit = item.unit
        first = unit.queues[item.pipe][0]
        if first is not item:
            return first
        if item.marked and unit.marked[0] is not item:
            return unit.marked[0]
        asks = self._wants.get(type(item.effect))
        return None if asks is None else asks(item, item.effect)

    def heads(self) -> list[Item]:
        """The first of every queue that can be tried, oldest first."""
        found = [
            queue[0]
            for unit in self.units.values()
            for queue in unit.queues.values()
            if queue and self.wants(queue[0]) is None
        ]
        found.sort(key=lambda item: item.number)
        return found

    def newest(self) -> Item | None:
        tails = [tail for unit in self.units.values() if (tail := unit.newest()) is not None]
        return max(tails, key=lambda item: item.number, default=None)

    def pending(self) -> list[Item]:
        """Everything that is not done, newest first."""
        found = [item for unit in self.units.values() for item in unit.items()]
        return sorted(found, key=lambda item: -item.number)

    def start(self, item: Item) -> bool:
        """Do one that can be tried; False when its own meaning makes it wait."""
        unit = item.unit
        found = perform(item)
        if isinstance(found, Blocked):
            item.reason = found
            return False
        effect = item.effect
        if isinstance(effect, fx.SetFlag):
            unit.flags[effect.flag] = unit.flags.get(effect.flag, 0) + 1
        elif isinstance(effect, fx.WaitFlag):
            unit.flags[effect.flag] -= 1
        elif isinstance(effect, fx.ReleaseBuffer):
            unit.released[effect.id] = unit.released.get(effect.id, 0) + 1
        unit.queues[item.pipe].popleft()
        if item.marked:
            unit.marked.popleft()
        item.is_done = True
        unit.core.progress += 1
        self.done += 1
        return True

    def require(self, item: Item) -> bool:
        """Do an operation and only what has to come before it; False when nothing was done."""
        before = self.done
        while not item.is_done:
            first, _ = self.cause(item)
            if self.wants(first) is not None or not self.start(first):
                break
        return self.done > before

    def cause(self, item: Item) -> tuple[Item, Blocked | None]:
        """The operation that holds an item up in the end, maybe itself, and why it does."""
        seen = {id(item)}
        while isinstance(need := self.wants(item), Item):
            if id(need) in seen:
                return item, Blocked(f"'{need.op.name}' op, which waits for it")
            seen.add(id(need))
            item = need
        return item, need or item.reason


def perform(item: Item) -> Any:
    """What its meaning does, with the values and registers it was issued with."""
    unit = item.unit
    core, live = unit.core, unit.core.registers
    item.registers.take(item.number)
    core.registers, unit.at_work = item.registers, True
    try:
        found = item.step(core, item.values)
    except PtoError as error:
        raise located(error, item.op) from None
    finally:
        core.registers, unit.at_work = live, False
    if item.registers.written:
        later = [other.registers for other in unit.items() if other.number > item.number]
        item.registers.tell(unit.registers, *later)
    return found


# ---- what effects wait for


def _wants_flag(item: Item, effect: fx.WaitFlag) -> Want:
    unit, flag = item.unit, effect.flag
    if unit.flags.get(flag, 0) > 0:
        return None
    for other in unit.queues.get(flag.src, ()):
        if isinstance(other.effect, fx.SetFlag) and other.effect.flag == flag:
            return other
    return Blocked(f"flag {flag}, which nothing has set")


def _wants_buffer(item: Item, effect: fx.GetBuffer) -> Want:
    unit = item.unit
    if unit.released.get(effect.id, 0) >= item.need:
        return None
    for other in unit.items():
        found = other.effect
        if isinstance(found, fx.ReleaseBuffer) and found.id == effect.id:
            return other
    return Blocked(f"buffer id {effect.id}, which nothing has released")


def _wants_users(item: Item, effect: fx.ReleaseBuffer) -> Want:
    """A release of all waits for earlier work of every pipe that got the id."""
    if not effect.of_all:
        return None
    unit = item.unit
    for pipe in unit.users.get(effect.id, ()):
        queue = unit.queues.get(pipe)
        if queue and queue[0].number < item.number and queue[0] is not item:
            return queue[0]
    return None
