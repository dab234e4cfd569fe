"""Cooperative scheduler: each agent runs until it has to wait, in a fixed order, so runs repeat
exactly.

More work (the next block, rank or stream) starts only when every running agent waits. If there is
no more work either, that is a deadlock; the error lists what each agent waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.errors import Diagnostic, Loc, Note, PtoError
from pto.run.machine.core import Core
from pto.run.reference.code import FunctionCode, Wait, Waits

DEADLOCK = "PTO-D110"
_PATIENCE = 100_000  # rounds in which agents only poll memory before a deadlock is reported


@dataclass(slots=True)
class Agent:
    """A core's side in its program. `done` is called when it has finished."""

    core: Core
    program: Waits
    done: Callable[[], None] | None = None
    wait: Wait | None = None

    @classmethod
    def of(
        cls,
        core: Core,
        code: FunctionCode,
        values: list[Any],
        done: Callable[[], None] | None = None,
    ) -> Agent:
        program = code.gen(core, values) if code.can_wait else _straight(core, code, values)
        return cls(core, program, done)

    def go_on(self) -> bool:
        """Run until the next wait; True if the agent made progress."""
        if self.core.cluster.limit is not None:
            self.core.cluster.limit.look(self.core.name)
        # it may have sent a signal that another agent awaits
        before, first = self.core.progress, self.wait is None
        self.wait = next(self.program, None)
        if self.wait is None and self.done is not None:
            self.done()
        return self.wait is None or first or self.core.progress != before


def _straight(core: Core, code: FunctionCode, values: list[Any]) -> Generator[Wait, None, Any]:
    """A program without waits, as a generator that never yields: faster than the general form."""
    return code.call(core, values)
    yield


class SchedulingPolicy:
    """Scheduling policy. The default runs block after block, and each agent as far as it can."""

    def paced(self, start: Callable[[], Sequence[Agent]]) -> Callable[[], Sequence[Agent]]:
        """The function that starts blocks, possibly delayed by the policy."""
        return start

    def ordered(self, live: list[Agent]) -> list[Agent]:
        """The order in which agents run."""
        return live

    def unstick(self) -> bool:
        """Called when every agent waits: True if the policy did something that may unblock one."""
        return False


class CoScheduler:
    """The running agents and their waits, kept from one call of `go_on` to the next."""

    def __init__(self) -> None:
        self.live: list[Agent] = []
        self.moved = False  # by the last call of `go_on`

    def go_on(
        self,
        start: Callable[[], Sequence[Agent]],
        policy: SchedulingPolicy | None = None,
        patience: int = _PATIENCE,
        rounds: int | None = None,
    ) -> bool:
        """Run all agents; True when all are done, False when every agent waits.

        `start` returns the agents that may begin now, or an empty list. `policy` may unblock an
        agent before the result is False. Agents that poll memory get `patience` rounds. With
        `rounds`, the result is also False after that many, so that other processes can continue.
        """
        policy = SchedulingPolicy() if policy is None else policy
        start = policy.paced(start)
        idle = 0
        count = 0
        self.moved = False
        while True:
            if idle or not self.live:
                fresh = start()
                if not fresh and not self.live:
                    return True
                if fresh or (idle and policy.unstick()):
                    idle = 0
                elif idle > (patience if self._look() else 0):
                    return False
                self.live += fresh
            moved = [agent.go_on() for agent in policy.ordered(self.live)]
            self.live = [agent for agent in self.live if agent.wait is not None]
            idle, count = 0 if any(moved) else idle + 1, count + 1
            self.moved |= not idle
            if rounds is not None and count >= rounds:
                return False

    def _look(self) -> bool:
        return any(agent.wait and agent.wait.looks for agent in self.live)


def run_cooperatively(
    start: Callable[[], Sequence[Agent]], policy: SchedulingPolicy | None = None
) -> None:
    """Run until all agents are done; a deadlock raises an error."""
    turns = CoScheduler()
    if not turns.go_on(start, policy):
        raise deadlock(*waits_of(turns.live))


@dataclass(frozen=True, slots=True)
class BlockedAgent:
    """A blocked agent: where it waits, as text."""

    who: str
    op: str
    reason: str
    code: str
    loc: Loc | None


def waits_of(live: Sequence[Agent]) -> tuple[list[BlockedAgent], list[str]]:
    """The blocked agents in scheduling order, and the names of finished agents beside them."""
    waits = [(agent.core, agent.wait) for agent in live if agent.wait is not None]
    stuck = [
        BlockedAgent(core.name, wait.op.name, str(wait.reason), wait.reason.code, wait.op.loc)
        for core, wait in waits
    ]
    waiting = {id(core) for core, _ in waits}
    beside = {id(c): c for core, _ in waits for c in core.cluster.agents if id(c) not in waiting}
    return stuck, [core.name for core in beside.values()]


def deadlock(waits: Sequence[BlockedAgent], finished: Sequence[str]) -> PtoError:
    """The error of a deadlock, with a note for each agent: its wait, or that it has finished."""
    notes = [Note(f"{w.who} waits at '{w.op}' op for {w.reason}", w.loc) for w in waits]
    notes += [Note(f"{name} has finished") for name in finished]
    many = "neither of two agents" if len(waits) == 2 else f"none of {len(waits)} agents"
    who = "the only agent left cannot" if len(waits) == 1 else f"{many} can"
    first = next((w for w in waits if w.code != DEADLOCK), waits[0])
    message = f"deadlock: {who} proceed"
    return PtoError(Diagnostic(first.code, message, first.loc, notes=tuple(notes)))
