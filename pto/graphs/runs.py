"""Runs of a graph, and what they report: findings, counts, and the time on a chip.

A front end provides the graph and the functions that launch, check and time a task. Everything that
`pto graph` does with a graph is here, for all front ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.graphs import dry, races, timing
from pto.graphs.diff import Buffers, ValueLog
from pto.graphs.footprint import TaskUse
from pto.graphs.limits import RuntimeLimits, usage
from pto.graphs.model import Graph, Task
from pto.graphs.orders import KnownResults
from pto.graphs.schedule import TaskSchedule
from pto.observe.timing.chips import Bench, bench
from pto.observe.timing.kinds import Described
from pto.observe.timing.report import time_launch
from pto.target.facts import Profile

_SCALARS = 8  # sets of scalars of one kind of task that are timed


@dataclass
class Ran:
    """The result of a run of graphs, or of an orchestration alone."""

    tasks: int = 0
    edges: int = 0
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    needless: int = 0  # edges that no data needs
    skipped: int = 0  # tasks with a false predicate
    slots: int = 0  # of one ring, held at one time
    heap: int = 0  # bytes of one ring, held at one time
    undecided: int = 0  # pairs of tasks that only values decide
    assumed: int = 0  # values of tasks that the orchestration read as 0
    differs: str = ""  # bytes that depend on the order of tasks
    copied: int = 0  # tasks that read the same bytes as in an earlier order

    @property
    def errors(self) -> list[str]:
        return [d.message for d in self.findings if d.severity == "error"]


class GraphRun(ABC):
    """One run of one graph."""

    profile: Profile
    limits: RuntimeLimits

    def __init__(self, graph: Graph, seed: int | None = None, log: ValueLog | None = None) -> None:
        self.graph = graph
        self.schedule = TaskSchedule(graph, self._execute, seed)
        self.touches: dict[int, list[TaskUse]] | None = None  # of watched tasks
        self.inside: dict[object, list[Diagnostic]] = {}  # by kind of task: what its kernel does
        self._log = log
        self.known: KnownResults | None = None  # of earlier orders

    @property
    def warnings(self) -> Sequence[Diagnostic]:
        """Findings about the kernels themselves."""
        return ()

    @property
    def assumed(self) -> int:
        """Values of tasks that the orchestration read as 0."""
        return 0

    @property
    def untimed(self) -> Sequence[str]:
        """Kernels that do not compile."""
        return ()

    @property
    @abstractmethod
    def arrays(self) -> Buffers:
        """The bytes of each buffer."""

    @abstractmethod
    def launch(self, task: Task) -> object:
        """Run a task to its end."""

    @abstractmethod
    def watched(self, task: Task) -> list[TaskUse]:
        """Run a task and return the bytes it touched."""

    @abstractmethod
    def sanitized(self, task: Task) -> list[Diagnostic]:
        """Findings of the sanitizer in the kernels of a task; memory stays as it is."""

    @abstractmethod
    def block_us(self, task: Task, chip: Bench) -> float:
        """The time of one block of a task on a core."""

    def is_run(self, task: Task) -> bool:
        """True if a task has a kernel to run now."""
        return task.kind == "task"

    def decided(self, task: Task) -> list[TaskUse]:
        """The bytes that decide whether a task runs."""
        return []

    def run(self) -> None:
        """Run every task to its end, in an order that the edges allow."""
        self.schedule.run()
        self.schedule.require_end()

    def _execute(self, number: int) -> None:
        task = self.graph.tasks[number]
        decided = self.decided(task)
        if self.touches is not None and decided:
            self.touches[number] = decided
        if not self.is_run(task):
            return
        if self._log is not None:
            self._log.before(task, self.arrays)
        try:
            if self.touches is not None:
                if (kind := _kind(task)) not in self.inside:
                    self.inside[kind] = _noted(self.sanitized(task), task)
                self.touches[number] = decided + self.watched(task)
            elif self.known is not None:
                self.known.run(task, self.arrays, self.watched)
            else:
                self.launch(task)
        except PtoError as error:
            raise named(error, task) from None
        if self._log is not None:
            self._log.add(task, self.arrays)


def named(error: PtoError, task: Task) -> PtoError:
    """The findings of a task, each with a note that names the task and its submission."""
    return PtoError(*_noted(error.diagnostics, task))


def _noted(findings: Iterable[Diagnostic], task: Task) -> list[Diagnostic]:
    note = task.submitted("in {}, submitted here")
    return [replace(d, notes=(*d.notes, note)) for d in findings]


def _kind(task: Task) -> object:
    """Equal for tasks that differ in scalars and addresses alone."""
    shapes = tuple((a.region.extents, a.region.strides) for a in task.arguments)
    return task.name, task.kernels, task.blocks, shapes


class RunnableGraph(ABC):
    """A graph of a front end; every action begins with the same inputs."""

    @abstractmethod
    def made(self, seed: int | None = None, log: ValueLog | None = None) -> GraphRun:
        """A run that has not begun."""

    def outline(self) -> GraphRun:
        """A run with every task submitted and none executed."""
        return self.made()

    def run(self, seed: int | None = None, watched: bool = False) -> Ran:
        """Run every task; a watched run reports races."""
        self.last = self._ran(seed, watched)
        return ran([self.last], self.last.warnings)

    def orders(self, count: int) -> Ran:
        """Run in random orders until one differs from the order of submission."""
        first = self._ran()
        outcome = ran([first])
        differing = (_differs(first, self._ran(seed), seed) for seed in range(count))
        outcome.differs = next(filter(None, differing), "")
        outcome.copied = 0 if first.known is None else first.known.copied
        return outcome

    def _ran(self, seed: int | None = None, watched: bool = False) -> GraphRun:
        graph_run = self.made(seed)
        graph_run.touches = {} if watched else None
        graph_run.run()
        return graph_run

    def dry(self) -> Ran:
        """The report of an orchestration that has run alone: what declarations decide."""
        run = self.outline()
        reported = dry.report(run.graph, run.limits)
        return Ran(
            len(run.graph.tasks),
            len(run.graph.edges),
            reported.findings,
            slots=reported.usage.slots,
            heap=reported.usage.bytes,
            undecided=reported.undecided,
            assumed=run.assumed,
        )

    def record(self, folder: str, kept: int | None = None, inputs: bool = False) -> Ran:
        """Run and write the results of each task to a folder, for `diff`.

        One task can also be kept with its buffers, for `extract`, or all with their inputs, for
        `shadow`.
        """
        with ValueLog(Path(folder), kept, inputs) as log:
            recorded = self.made(log=log)
            recorded.run()
        return ran([recorded])

    def time(self, device: str | None = None, edges: bool = False) -> dict[str, Any]:
        """When each task runs on a chip; `edges` also runs every task."""
        return timed(self._ran(watched=True) if edges else self.outline(), device)


def _differs(first: GraphRun, other: GraphRun, seed: int) -> str:
    """The first tensor of the caller that has other bytes in another order; empty if none."""
    for number, buffer in first.graph.buffers.items():
        if buffer.creator is None:
            count = int((first.arrays[number] != other.arrays[number]).sum())
            if count:
                return f"{buffer.title}: {count} bytes differ in the order of seed {seed}"
    return ""


# ---- reports


def ran(runs: Sequence[GraphRun], warnings: Sequence[Diagnostic] = ()) -> Ran:
    """The report of graphs that have run; watched ones with the findings between tasks."""
    graphs = [run.graph for run in runs]
    outcome = Ran(
        sum(len(graph.tasks) for graph in graphs),
        sum(len(graph.edges) for graph in graphs),
        list(warnings),
        skipped=sum(task.was_skipped for graph in graphs for task in graph.tasks),
    )
    for run in runs:
        if run.touches is not None:
            outcome.findings = [
                d for findings_of_task in run.inside.values() for d in findings_of_task
            ]
            outcome.findings += races.findings(run.graph, run.touches)
            outcome.needless = len(races.needless(run.graph, run.touches))
        outcome.findings += usage(
            run.graph, run.limits
        ).findings  # an exhausted ring hangs on a card
    return outcome


def timed(run: GraphRun, device: str | None) -> dict[str, Any]:
    """When each task runs on a chip, as data for `swimlane`; a watched run knows needless edges."""
    graph = run.graph
    chip = bench(device or run.profile.device, run.profile.name)
    times, kinds, alike = _times(run, chip)
    costs = timing.DISPATCH[run.limits.name]
    scheduled = timing.schedule(graph, times, chip.device.cube_cores, costs)
    needless = set(races.needless(graph, run.touches or {}))
    fewer = timing.schedule(graph, times, chip.device.cube_cores, costs, needless)
    return {
        "device": chip.device.name,
        "us": scheduled.us,
        "busy": scheduled.busy,
        "path": scheduled.path,
        "tasks": [_described(task, scheduled) for task in graph.tasks],
        "slices": [[s.task, s.block, s.core, s.begin, s.end] for s in scheduled.slices],
        "edges": len(graph.edges),
        "needless": None if run.touches is None else len(needless),
        "fewer_us": fewer.us,
        "kinds": kinds,
        "alike": alike,
        "untimed": sorted(run.untimed),
        "costs": costs.source,
    }


def _times(run: GraphRun, chip: Bench) -> tuple[dict[int, float], int, int]:
    """The time of a block of each task, the number of timed tasks, the number that equal another.

    Tasks with the same kernel, blocks, shapes and scalars are timed once. Of tasks that differ
    in scalars alone two are timed, or more if these differ; the rest get their average.
    """
    times: dict[int, float] = {}
    exact: dict[object, float] = {}
    kinds: dict[object, list[float]] = defaultdict(list)
    alike = 0
    for task in run.graph.tasks:
        if task.kind != "task" or task.was_skipped:
            continue
        kind = _kind(task)
        key = (kind, tuple(task.scalars))
        if key not in exact and not _settled(kinds[kind]):
            try:
                exact[key] = run.block_us(task, chip)
            except PtoError as error:
                raise named(error, task) from None
            kinds[kind].append(exact[key])
        alike += key not in exact
        times[task.number] = exact.get(key, sum(kinds[kind]) / len(kinds[kind]))
    return times, len(exact), alike


def block_us(launch: Described, chip: Bench, name: str) -> float:
    """The time of one block of a launch on a core of a chip."""
    timing_of_block = time_launch(launch, chip, name)
    return timing_of_block.core_us / max(timing_of_block.rounds, 1)


def _settled(times: Sequence[float]) -> bool:
    """True if further tasks of this kind need not be timed."""
    alike = len(times) > 1 and abs(times[-1] - times[-2]) <= 0.01 * times[-1]
    return alike or len(times) >= _SCALARS


def _described(task: Task, scheduled: timing.GraphTime) -> list[Any]:
    """Name, file and line of the submission, and when it was ready and ended."""
    loc = task.loc
    source = ("", 0) if loc is None else (loc.file, loc.line)
    return [
        task.name,
        *source,
        scheduled.ready.get(task.number, 0.0),
        scheduled.ended.get(task.number, 0.0),
    ]
