"""What every instruction of a run comes after, recorded once: times are put on it afterwards.

The order is that of the one model of pipes (`run/order/model.py`). Its clock here is symbolic: a
stamp names places, a pipe and how many of its instructions have to be over. Durations change
nothing of it, so one record serves every chip, and every try with other costs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.ir.graph import Operation
from pto.isa.cost.moves import touched
from pto.isa.cost.work import Code, Work
from pto.isa.meaning import Blocked
from pto.run.machine.core import Core
from pto.run.order.model import Model
from pto.run.order.state import Item, Pipe, Unit
from pto.run.watch.events import Event, Observer
from pto.target.facts import Sync

Place = tuple[int, int]  # a pipe by its number, and how many of its instructions
Stamp = tuple[Place, ...]
ISSUED, STARTED, BOTH, FENCE = range(4)  # kinds of lines


class Line(NamedTuple):
    """One line of the record: an instruction is issued, starts, or both at once.

    `job` numbers instructions with work; -1: it only orders.
    """

    kind: int
    pipe: int
    agent: int
    job: int
    after: Stamp


class Job(NamedTuple):
    """An instruction with work."""

    op: Operation
    counters: tuple[int, ...]
    work: Work
    pipe: int


class Track(NamedTuple):
    """A pipe of an agent."""

    agent: int
    name: str


class Fold(NamedTuple):
    """Iterations that were left out before job `last`: each is like those since job `first`."""

    first: int
    last: int
    iterations: int  # between the two
    skipped: int
    of_blocks: bool = False  # rounds of blocks, not iterations of a loop of one agent


_CUBE = frozenset({"M", "MTE1", "FIX"})


@dataclass(slots=True)
class Stream:
    """The record of one or more blocks."""

    lines: list[Line] = field(default_factory=list[Line])
    jobs: list[Job] = field(default_factory=list[Job])
    pipes: list[Track] = field(default_factory=list[Track])
    sides: list[str] = field(default_factory=list[str])  # of agents: cube, vector, both
    names: list[str] = field(default_factory=list[str])  # of agents: "block 0 cube"
    folds: list[Fold] = field(default_factory=list[Fold])

    def side(self, agent: int) -> str:
        """Which unit an agent is on a chip, where the cube and the vector unit have pipes of their
        own: of code without sides its pipes tell; `core` where it uses both."""
        if self.sides[agent] != "both":
            return self.sides[agent]
        used = {pipe.name for pipe in self.pipes if pipe.agent == agent}
        return "vector" if not used & _CUBE else "core" if "V" in used else "cube"


@dataclass(slots=True, eq=False)
class Task(Item):
    """An instruction on its way."""

    job: int = -1
    line: int = -1  # where its issue stands
    needs: Sequence[Task] = ()  # whose results it uses, where no flag says so
    place: Place | None = None  # once it has started


@dataclass(slots=True, eq=False)
class _Recorded(Pipe[Stamp, Task]):
    """A pipe whose stamps name places."""

    index: int
    count: int = 0
    after: list[Place] = field(default_factory=list[Place])  # what its next instruction follows
    known: dict[int, int] = field(default_factory=dict[int, int])  # what it has ever followed

    def publish(self) -> Stamp:
        return ((self.index, self.count), *self.after)

    def join(self, stamp: Stamp) -> None:
        self.after += stamp
        for pipe, count in stamp:
            self.known[pipe] = max(count, self.known.get(pipe, 0))

    def knows(self, stamp: Stamp) -> bool:
        return all(count <= self.known.get(pipe, 0) for pipe, count in stamp)

    def settle(self) -> None:
        self.after.append((self.index, self.count))


@dataclass(slots=True, eq=False)
class _Agent(Unit[Stamp, _Recorded, Task]):
    number: int
    count: int = 0


class Recording(Model[Stamp, _Recorded, Task], Observer):
    """The order of pipes, written down as it unfolds. It is an observer of a run."""

    def __init__(self, sync: Sync) -> None:
        super().__init__(sync)
        self.stream = Stream()
        self.needs: Sequence[Task] = ()  # of the next event
        self.last: Task  # of the last event
        self._code: dict[int, Operation] = {}  # what stands for code before an operation
        self._agents: dict[int, _Agent] = {}

    # ---- what the engine tells

    def launch(self, number: int, after: Collection[int], functions: Sequence[Operation]) -> None:
        raise RuntimeError("launches are timed one at a time")

    def begin(self, core: Core) -> None:
        agent = _Agent(len(self.stream.sides), block=core.block)
        self.stream.sides.append(core.side)
        self.stream.names.append(core.name)
        self._agents[id(core)] = agent

    def end(self) -> None:
        self.pump_all()

    def event(self, event: Event) -> None:
        agent, stream = self._agents[id(event.core)], self.stream
        code, event.core.code = event.core.code, None
        if code is not None and agent.count:  # what comes first is part of what a launch takes
            self._ran(agent, event, code)
        agent.count += 1
        task = Task(event.op, event.pipe, agent.count, event.effect, needs=self.needs)
        self.last, self.needs = task, ()
        work = event.work or (touched(event.accesses) if event.accesses else None)
        if work is not None:
            task.job = len(stream.jobs)
            stream.jobs.append(Job(event.op, event.counters, work, -1))
        self.issue(agent, task)

    def _ran(self, agent: _Agent, event: Event, code: Code) -> None:
        """The scalar unit ran code before it came to an operation."""
        op = self._code.setdefault(id(event.op), Operation("C++ code", where=event.op.where))
        agent.count += 1
        task = Task(op, "S", agent.count, None, job=len(self.stream.jobs))
        self.stream.jobs.append(Job(op, event.counters, code, -1))
        self.issue(agent, task)

    # ---- what the model asks for

    def new_pipe(self, unit: _Agent, name: str) -> _Recorded:
        self.stream.pipes.append(Track(unit.number, name))
        return _Recorded(len(self.stream.pipes) - 1)

    def merged(self, a: Stamp, b: Stamp) -> Stamp:
        latest: dict[int, int] = {}
        for pipe, count in (*a, *b):
            if count > latest.get(pipe, -1):
                latest[pipe] = count
        return tuple(latest.items())

    def issuing(self, unit: _Agent, item: Task) -> None:
        if item.pipe == "ALL":
            return
        item.line = len(self.stream.lines)
        pipe = self.pipe(unit, item.pipe).index
        self.stream.lines.append(Line(ISSUED, pipe, unit.number, item.job, ()))

    def work(self, unit: _Agent, pipe: _Recorded, item: Task) -> Blocked | None:
        lines, jobs = self.stream.lines, self.stream.jobs
        after = tuple(pipe.after)
        if item.needs:
            after += tuple(each.place for each in item.needs if each.place is not None)
        pipe.after.clear()
        pipe.count += 1
        item.place = (pipe.index, pipe.count)
        if item.line == len(lines) - 1:
            lines[-1] = Line(BOTH, pipe.index, unit.number, item.job, after)
        else:
            lines.append(Line(STARTED, pipe.index, unit.number, item.job, after))
        if item.job >= 0:
            jobs[item.job] = jobs[item.job]._replace(pipe=pipe.index)
        return None

    def fence(self, unit: Unit[Stamp, _Recorded, Task], item: Task) -> None:
        number = unit.number if isinstance(unit, _Agent) else 0
        self.stream.lines.append(Line(FENCE, -1, number, -1, ()))
        unit.version += 1
