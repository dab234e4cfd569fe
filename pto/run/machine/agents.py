"""Agents take turns: each goes on until it has to wait, in a fixed order, so runs are alike.

More work starts only when nobody can go on: the next block, the next rank, the next stream. When
there is none left either, that is a deadlock, and every agent says what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.errors import Diagnostic, Loc, Note, PtoError
from pto.run.machine.core import Core
from pto.run.reference.code import Code, Wait, Waits

DEADLOCK = "PTO-D110"
_PATIENCE = 100_000  # rounds in which agents only look at memory, before that is called a deadlock


@dataclass(slots=True)
class Agent:
    """A core's side in its program. `done` is called when it has finished."""

    core: Core
    program: Waits
    done: Callable[[], None] | None = None
    wait: Wait | None = None

    @classmethod
    def of(
        cls, core: Core, code: Code, values: list[Any], done: Callable[[], None] | None = None
    ) -> Agent:
        program = code.gen(core, values) if code.can_wait else _straight(core, code, values)
        return cls(core, program, done)

    def go_on(self) -> bool:
        """Until the next wait; True when it got anywhere."""
        if self.core.cluster.limit is not None:
            self.core.cluster.limit.look(self.core.name)
        before, first = self.core.progress, self.wait is None  # it may have sent what others await
        self.wait = next(self.program, None)
        if self.wait is None and self.done is not None:
            self.done()
        return self.wait is None or first or self.core.progress != before


def _straight(core: Core, code: Code, values: list[Any]) -> Generator[Wait, None, Any]:
    """A program without waits runs faster without the machinery for them."""
    return code.call(core, values)
    yield


class Pace:
    """Who comes when: here one block after the other, each agent as far as it can."""

    def paced(self, start: Callable[[], Sequence[Agent]]) -> Callable[[], Sequence[Agent]]:
        """When blocks begin."""
        return start

    def turns(self, live: list[Agent]) -> list[Agent]:
        """In which order agents go on."""
        return live

    def unstick(self) -> bool:
        """No agent can go on: True when something was done that may free one."""
        return False


class Turns:
    """Agents under way: what they wait for is kept from one time to the next."""

    def __init__(self) -> None:
        self.live: list[Agent] = []
        self.moved = False  # the last time

    def go_on(
        self,
        start: Callable[[], Sequence[Agent]],
        pace: Pace | None = None,
        patience: int = _PATIENCE,
        rounds: int | None = None,
    ) -> bool:
        """Until all are done; False: nobody can go on. `start` gives the agents that may begin now,
        none when there are none. `pace` is asked before it is said that nobody can. Those who look
        at memory do so `patience` times in vain. Where there are `rounds` it is False after so many
        too, whoever got on: others may have to, for these to come to an end."""
        pace = Pace() if pace is None else pace
        start = pace.paced(start)
        idle, count, self.moved = 0, 0, False
        while True:
            if idle or not self.live:
                fresh = start()
                if not fresh and not self.live:
                    return True
                if fresh or (idle and pace.unstick()):
                    idle = 0
                elif idle > (patience if self._look() else 0):
                    return False
                self.live += fresh
            moved = [agent.go_on() for agent in pace.turns(self.live)]
            self.live = [agent for agent in self.live if agent.wait is not None]
            idle, count = 0 if any(moved) else idle + 1, count + 1
            self.moved |= not idle
            if rounds is not None and count >= rounds:
                return False

    def _look(self) -> bool:
        return any(agent.wait and agent.wait.looks for agent in self.live)


def take_turns(start: Callable[[], Sequence[Agent]], pace: Pace | None = None) -> None:
    """Until all are done, or there is a deadlock."""
    turns = Turns()
    if not turns.go_on(start, pace):
        raise deadlock(*waits_of(turns.live))


@dataclass(frozen=True, slots=True)
class Stuck:
    """Where one agent waits, in words."""

    who: str
    op: str
    reason: str
    code: str
    loc: Loc | None


def waits_of(live: Sequence[Agent]) -> tuple[list[Stuck], list[str]]:
    """What each agent waits for, in the order they take turns; and who has finished beside them."""
    waits = [(agent.core, agent.wait) for agent in live if agent.wait is not None]
    stuck = [
        Stuck(core.name, wait.op.name, str(wait.reason), wait.reason.code, wait.op.loc)
        for core, wait in waits
    ]
    waiting = {id(core) for core, _ in waits}
    beside = {id(c): c for core, _ in waits for c in core.cluster.agents if id(c) not in waiting}
    return stuck, [core.name for core in beside.values()]


def deadlock(waits: Sequence[Stuck], finished: Sequence[str]) -> PtoError:
    """Nobody can go on: who waits for what."""
    notes = [Note(f"{w.who} waits at '{w.op}' op for {w.reason}", w.loc) for w in waits]
    notes += [Note(f"{name} has finished") for name in finished]
    many = "neither of two agents" if len(waits) == 2 else f"none of {len(waits)} agents"
    who = "the only agent left cannot" if len(waits) == 1 else f"{many} can"
    first = next((w for w in waits if w.code != DEADLOCK), waits[0])
    message = f"deadlock: {who} go on"
    return PtoError(Diagnostic(first.code, message, first.loc, notes=tuple(notes)))


def run_agents(agents: Sequence[tuple[Core, Code, list[Any]]]) -> None:
    """The agents of one core until all are done."""
    pending = [[Agent.of(*each) for each in agents]]
    take_turns(lambda: pending.pop() if pending else ())
