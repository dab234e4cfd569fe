"""Issued operations that are not done, by pipe: the model of `model.py` without a clock.

The policies that choose the next operation are in `choice.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pto.core.errors import PtoError
from pto.isa.meaning.kinds import Blocked
from pto.run.machine.core import Core
from pto.run.order.deferred_registers import DeferredRegisters
from pto.run.order.model import Model
from pto.run.order.state import Issuer, PipeQueue, QueuedOp
from pto.run.reference.code import Step, located
from pto.target.facts import Sync

_number = attrgetter("number")


@dataclass(slots=True, eq=False)
class Issued(QueuedOp):
    """An issued operation with its values and registers."""

    unit: PipeAgent = field(kw_only=True)
    step: Step = field(kw_only=True)
    values: Any = field(kw_only=True)  # the registers of the program that it reads
    registers: DeferredRegisters = field(kw_only=True)  # of the core


def place_of(item: Issued) -> tuple[int, int]:
    """The number of the agent, and the position in its program."""
    return item.unit.index, item.number


class Queue(PipeQueue[None, Issued]):
    """A pipe: operations that are not done. Which of them can start needs no clock."""

    __slots__ = ()

    def publish(self) -> None:
        return None

    def join(self, stamp: None) -> None:
        return None

    def knows(self, stamp: None) -> bool:
        return True

    def settle(self) -> None:
        return None


@dataclass(slots=True, eq=False)
class PipeAgent(Issuer[None, Queue, Issued]):
    """One agent, with the state of its scalar unit."""

    core: Core
    index: int  # in the order in which agents began
    registers: DeferredRegisters  # as the scalar unit sees them
    stalled: Issued | None = None  # what the scalar unit waits for
    paused: bool = False  # it yields to other agents
    at_work: bool = False  # inside an operation: nested operations run at once

    def newest(self) -> Issued | None:
        tails = [pipe.queue[-1] for pipe in self.pipes.values() if pipe.queue]
        return max(tails, key=_number, default=None)


class Pipes(Model[None, Queue, Issued]):
    """The queues of all running agents."""

    def __init__(self, sync: Sync) -> None:
        super().__init__(sync)
        self.agents: dict[int, PipeAgent] = {}  # by core, in the order in which they began
        self.done = 0  # operations
        self._issued = 0

    def new_pipe(self, unit: PipeAgent, name: str) -> Queue:
        return Queue()

    def merged(self, a: None, b: None) -> None:
        return None

    def work(self, unit: PipeAgent, pipe: Queue, item: Issued) -> Blocked | None:
        """Run the step of an operation with the values and registers of its issue."""
        core, live = unit.core, unit.core.registers
        item.registers.take(item.number)
        core.registers, unit.at_work = item.registers, True
        try:
            blocked = item.step(core, item.values)
        except PtoError as error:
            raise located(error, item.op) from None
        finally:
            core.registers, unit.at_work = live, False
        if item.registers.written:
            later = [other.registers for other in unit.items() if other.number > item.number]
            item.registers.publish(unit.registers, *later)
        if isinstance(blocked, Blocked):
            return blocked
        core.progress += 1
        self.done += 1
        return None

    def number(self) -> int:
        """The next number in the order of issue, over all agents."""
        self._issued += 1
        return self._issued

    # ---- queries of a policy

    def heads(self) -> list[Issued]:
        """The first operation of every queue that can be tried, oldest first."""
        items = [
            pipe.queue[0]
            for unit in self.agents.values()
            for pipe in unit.pipes.values()
            if pipe.queue and self.wants(unit, pipe.queue[0]) is None
        ]
        items.sort(key=_number)
        return items

    def pending(self) -> list[Issued]:
        """Every operation that is not done: last block first, newest first."""
        items = [item for unit in self.agents.values() for item in unit.items()]
        return sorted(items, key=place_of, reverse=True)

    def can_try(self, item: Issued) -> bool:
        return self.wants(item.unit, item) is None

    def do(self, item: Issued) -> bool:
        """Run an operation that can be tried; False if its semantics make it wait."""
        return self.start(item.unit, item)

    def require(self, item: Issued) -> bool:
        """Run an operation and only its prerequisites; False if nothing was run."""
        before = self.done
        while not item.is_done:
            first, _ = self.cause(item)
            if not self.can_try(first) or not self.do(first):
                break
        return self.done > before

    def cause(self, item: Issued) -> tuple[Issued, Blocked | None]:
        """The operation that finally blocks an item, maybe itself, and its reason."""
        visited = {id(item)}
        while isinstance(need := self.wants(item.unit, item), Issued):
            if id(need) in visited:
                return item, Blocked(f"'{need.op.name}' op, which waits for it")
            visited.add(id(need))
            item = need
        return item, need if isinstance(need, Blocked) else item.reason
