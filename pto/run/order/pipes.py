"""Work that was issued and is not done yet, by pipe: the model of `model.py` without a clock.

Who decides which of the possible ones is done is in `choice.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pto.core.errors import PtoError
from pto.isa.meaning import Blocked
from pto.run.machine.core import Core
from pto.run.order.deferred_registers import Registers
from pto.run.order.model import Model
from pto.run.order.state import Item, NoClock, Unit
from pto.run.reference.code import Step, located
from pto.target.facts import Sync

_number = attrgetter("number")


@dataclass(slots=True, eq=False)
class Issued(Item):
    """An operation with everything it was issued with."""

    unit: Agent = field(kw_only=True)
    step: Step = field(kw_only=True)
    values: Any = field(kw_only=True)  # the registers of the program that it reads
    registers: Registers = field(kw_only=True)  # of the core


def place_of(item: Issued) -> tuple[int, int]:
    """Which agent's, and where in its program."""
    return item.unit.index, item.number


class Queue(NoClock[Issued]):
    """A pipe: work that is not done yet."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Agent(Unit[None, Queue, Issued]):
    """One agent, with what its scalar unit sees and waits for."""

    core: Core
    index: int  # in the order agents began
    registers: Registers  # as the scalar unit sees them
    stalled: Issued | None = None  # what the scalar unit waits for
    paused: bool = False  # it lets others go on first
    at_work: bool = False  # inside a piece of work: what it consists of is done at once

    def newest(self) -> Issued | None:
        tails = [pipe.queue[-1] for pipe in self.pipes.values() if pipe.queue]
        return max(tails, key=_number, default=None)


class Pipes(Model[None, Queue, Issued]):
    """The queues of all agents that are at work."""

    def __init__(self, sync: Sync) -> None:
        super().__init__(sync)
        self.agents: dict[int, Agent] = {}  # by core, in the order they began
        self.done = 0  # operations
        self._issued = 0

    def new_pipe(self, unit: Agent, name: str) -> Queue:
        return Queue()

    def merged(self, a: None, b: None) -> None:
        return None

    def work(self, unit: Agent, pipe: Queue, item: Issued) -> Blocked | None:
        """What its meaning does, with the values and registers it was issued with."""
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
        if isinstance(found, Blocked):
            return found
        core.progress += 1
        self.done += 1
        return None

    def number(self) -> int:
        """In the order of issue, over all agents."""
        self._issued += 1
        return self._issued

    # ---- what may be done, for a choice

    def heads(self) -> list[Issued]:
        """The first of every queue that can be tried, oldest first."""
        found = [
            pipe.queue[0]
            for unit in self.agents.values()
            for pipe in unit.pipes.values()
            if pipe.queue and self.wants(unit, pipe.queue[0]) is None
        ]
        found.sort(key=_number)
        return found

    def pending(self) -> list[Issued]:
        """Everything that is not done, newest first, of the last block first."""
        found = [item for unit in self.agents.values() for item in unit.items()]
        return sorted(found, key=place_of, reverse=True)

    def can_try(self, item: Issued) -> bool:
        return self.wants(item.unit, item) is None

    def do(self, item: Issued) -> bool:
        """Do one that can be tried; False when its own meaning makes it wait."""
        return self.start(item.unit, item)

    def require(self, item: Issued) -> bool:
        """Do an operation and only what has to come before it; False when nothing was done."""
        before = self.done
        while not item.is_done:
            first, _ = self.cause(item)
            if not self.can_try(first) or not self.do(first):
                break
        return self.done > before

    def cause(self, item: Issued) -> tuple[Issued, Blocked | None]:
        """The operation that holds an item up in the end, maybe itself, and why it does."""
        seen = {id(item)}
        while isinstance(need := self.wants(item.unit, item), Issued):
            if id(need) in seen:
                return item, Blocked(f"'{need.op.name}' op, which waits for it")
            seen.add(id(need))
            item = need
        return item, need if isinstance(need, Blocked) else item.reason
