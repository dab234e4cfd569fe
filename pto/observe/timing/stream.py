"""The order of every instruction of a run, recorded once; times are computed from it afterwards.

The order is that of the one model of pipes (`run/order/model.py`). Its clock here is symbolic: a
stamp names positions, a pipe and how many of its instructions have to be over. It does not depend
on durations, so one record serves every chip and every set of costs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.ir.graph import Operation
from pto.isa.cost.moves import touched
from pto.isa.cost.work import CodeWork, Work
from pto.isa.meaning.kinds import Blocked
from pto.run.machine.core import Core
from pto.run.order.model import Model
from pto.run.order.state import Issuer, PipeQueue, QueuedOp
from pto.run.watch.events import InstructionEvent, Observer
from pto.target.facts import Sync

Place = tuple[int, int]  # a pipe by its number, and how many of its instructions
Stamp = tuple[Place, ...]
ISSUED, STARTED, BOTH, FENCE = range(4)  # kinds of lines


class RecordLine(NamedTuple):
    """One line of the record: an instruction is issued, starts, or both at once.

    `job` numbers instructions with work; -1: it only orders.
    """

    kind: int
    pipe: int
    agent: int
    job: int
    after: Stamp


class TimedJob(NamedTuple):
    """An instruction with work."""

    op: Operation
    counters: tuple[int, ...]
    work: Work
    pipe: int


class Track(NamedTuple):
    """A pipe of an agent."""

    agent: int
    name: str


class LoopFold(NamedTuple):
    """Iterations left out before job `last`: each equals those since job `first`."""

    first: int
    last: int
    iterations: int  # between the two
    skipped: int
    of_blocks: bool = False  # rounds of blocks, not iterations of a loop of one agent


_CUBE = frozenset({"M", "MTE1", "FIX"})


@dataclass(slots=True)
class RecordStream:
    """The record of one or more blocks."""

    lines: list[RecordLine] = field(default_factory=list[RecordLine])
    jobs: list[TimedJob] = field(default_factory=list[TimedJob])
    pipes: list[Track] = field(default_factory=list[Track])
    sides: list[str] = field(default_factory=list[str])  # of agents: cube, vector, both
    names: list[str] = field(default_factory=list[str])  # of agents: "block 0 cube"
    folds: list[LoopFold] = field(default_factory=list[LoopFold])

    def side(self, agent: int) -> str:
        """The unit of an agent on a chip with separate pipes for cube and vector: from the pipes of
        code without sides; `core` if it uses both."""
        if self.sides[agent] != "both":
            return self.sides[agent]
        used = {pipe.name for pipe in self.pipes if pipe.agent == agent}
        return "vector" if not used & _CUBE else "core" if "V" in used else "cube"


@dataclass(slots=True, eq=False)
class TimedTask(QueuedOp):
    """An instruction on its way."""

    job: int = -1
    line: int = -1  # line of its issue
    needs: Sequence[TimedTask] = ()  # tasks with results that it uses without a flag
    place: Place | None = None  # once it has started


@dataclass(slots=True, eq=False)
class _Recorded(PipeQueue[Stamp, TimedTask]):
    """A pipe with symbolic stamps."""

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
class _RecordedAgent(Issuer[Stamp, _Recorded, TimedTask]):
    number: int
    count: int = 0


class Recording(Model[Stamp, _Recorded, TimedTask], Observer):
    """Records the order of pipes. It is an observer of a run."""

    def __init__(self, sync: Sync) -> None:
        super().__init__(sync)
        self.stream = RecordStream()
        self.needs: Sequence[TimedTask] = ()  # of the next event
        self.last: TimedTask  # of the last event
        self._code: dict[int, Operation] = {}  # operation for the code before an operation
        self._agents: dict[int, _RecordedAgent] = {}

    # ---- interface of the engine

    def launch(self, number: int, after: Collection[int], functions: Sequence[Operation]) -> None:
        raise RuntimeError("launches are timed one at a time")

    def begin(self, core: Core) -> None:
        agent = _RecordedAgent(len(self.stream.sides), block=core.block)
        self.stream.sides.append(core.side)
        self.stream.names.append(core.name)
        self._agents[id(core)] = agent

    def end(self) -> None:
        self.pump_all()

    def event(self, event: InstructionEvent) -> None:
        agent, stream = self._agents[id(event.core)], self.stream
        code, event.core.code = event.core.code, None
        if code is not None and agent.count:  # the first operation is part of the launch overhead
            self._ran(agent, event, code)
        agent.count += 1
        task = TimedTask(
            event.op, event.pipe, agent.count, event.effect, mark=event.mark, needs=self.needs
        )
        self.last, self.needs = task, ()
        work = event.work or (touched(event.accesses) if event.accesses else None)
        if work is not None:
            task.job = len(stream.jobs)
            stream.jobs.append(TimedJob(event.op, event.counters, work, -1))
        self.issue(agent, task)

    def _ran(self, agent: _RecordedAgent, event: InstructionEvent, code: CodeWork) -> None:
        """Record scalar code that ran before an operation."""
        op = self._code.setdefault(id(event.op), Operation("C++ code", where=event.op.where))
        agent.count += 1
        task = TimedTask(op, "S", agent.count, None, job=len(self.stream.jobs))
        self.stream.jobs.append(TimedJob(op, event.counters, code, -1))
        self.issue(agent, task)

    # ---- interface of the model

    def new_pipe(self, unit: _RecordedAgent, name: str) -> _Recorded:
        self.stream.pipes.append(Track(unit.number, name))
        return _Recorded(len(self.stream.pipes) - 1)

    def merged(self, a: Stamp, b: Stamp) -> Stamp:
        latest: dict[int, int] = {}
        for pipe, count in (*a, *b):
            if count > latest.get(pipe, -1):
                latest[pipe] = count
        return tuple(latest.items())

    def issuing(self, unit: _RecordedAgent, item: TimedTask) -> None:
        if item.pipe == "ALL":
            return
        item.line = len(self.stream.lines)
        pipe = self.pipe(unit, item.pipe).index
        self.stream.lines.append(RecordLine(ISSUED, pipe, unit.number, item.job, ()))

    def work(self, unit: _RecordedAgent, pipe: _Recorded, item: TimedTask) -> Blocked | None:
        lines, jobs = self.stream.lines, self.stream.jobs
        after = tuple(pipe.after)
        if item.needs:
            after += tuple(need.place for need in item.needs if need.place is not None)
        pipe.after.clear()
        pipe.count += 1
        item.place = (pipe.index, pipe.count)
        if item.line == len(lines) - 1:
            lines[-1] = RecordLine(BOTH, pipe.index, unit.number, item.job, after)
        else:
            lines.append(RecordLine(STARTED, pipe.index, unit.number, item.job, after))
        if item.job >= 0:
            jobs[item.job] = jobs[item.job]._replace(pipe=pipe.index)
        return None

    def fence(self, unit: Issuer[Stamp, _Recorded, TimedTask], item: TimedTask) -> None:
        number = unit.number if isinstance(unit, _RecordedAgent) else 0
        self.stream.lines.append(RecordLine(FENCE, -1, number, -1, ()))
        unit.version += 1
