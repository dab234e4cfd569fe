"""Agents take turns: each goes on until it has to wait, in a fixed order, so runs are alike.

More work starts only when nobody can go on: the next block, the next rank, the next stream. When
there is none left either, that is a deadlock, and every agent says what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.errors import Diagnostic, Note, PtoError
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


def take_turns(
    start: Callable[[], Sequence[Agent]], unstick: Callable[[], bool] = lambda: False
) -> None:
    """Until all are done. `start` gives the agents that may begin now, none when there are none.

    `unstick` is asked before a deadlock is: True when it did something that may free an agent.
    """
    live: list[Agent] = []
    idle = 0
    while True:
        if idle or not live:
            fresh = start()
            if not fresh and not live:
                return
            if fresh or (idle and unstick()):
                idle = 0
            elif idle > _patience(live):
                raise deadlock(live)
            live += fresh
        moved = [agent.go_on() for agent in live]
        live = [agent for agent in live if agent.wait is not None]
        idle = 0 if any(moved) else idle + 1


def _patience(live: Sequence[Agent]) -> int:
    return _PATIENCE if any(agent.wait and agent.wait.looks for agent in live) else 0


def deadlock(stuck: Sequence[Agent]) -> PtoError:
    """What each agent waits for, in the order they take turns; and who has finished beside them."""
    waits = [(agent.core, agent.wait) for agent in stuck if agent.wait is not None]
    notes = [
        Note(f"{core.name} waits at '{wait.op.name}' op for {wait.reason}", wait.op.loc)
        for core, wait in waits
    ]
    waiting = {id(core) for core, _ in waits}
    beside = {id(c): c for core, _ in waits for c in core.cluster.agents if id(c) not in waiting}
    notes += [Note(f"{core.name} has finished") for core in beside.values()]
    many = "neither of two agents" if len(waits) == 2 else f"none of {len(waits)} agents"
    who = "the only agent left cannot" if len(waits) == 1 else f"{many} can"
    first = next((w for _, w in waits if w.reason.code != DEADLOCK), waits[0][1])
    message = f"deadlock: {who} go on"
    return PtoError(Diagnostic(first.reason.code, message, first.op.loc, notes=tuple(notes)))


def run_agents(agents: Sequence[tuple[Core, Code, list[Any]]]) -> None:
    """The agents of one core until all are done."""
    pending = [[Agent.of(*each) for each in agents]]
    take_turns(lambda: pending.pop() if pending else ())
