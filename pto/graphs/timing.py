"""The time of a graph: tasks with known times on the cores of a chip, as a runtime dispatches them.

One orchestrator submits tasks in order. Scheduler threads notice ended tasks and dispatch ready
ones; each step takes its time. A core runs one block and may hold a second one. Tasks of a cube
and its vectors need the cores of one cluster. Bandwidth that tasks take from each other is not
modelled.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

from pto.graphs.model import Graph, Task


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Times of a runtime for each task, in microseconds."""

    source: str
    submit: float  # of the orchestrator
    dispatch: float  # of a scheduler thread
    complete: float
    head: float  # on the core, before the kernel begins
    threads: int


# simpler (2026-08-22). Submission: device_log_profiling.md, 0.874 us a task over 16,704 tasks. The
# schedulers: investigations/2026-06-chip-swimlane-defer-wmb.md, 3,574 us for 1,024 tasks, of which
# 57 % is dispatch (device_log_profiling.md). On the core: 0.2 to 0.5 us once it is warm
# (2026-06-aicore-cold-start-warmup.md). A graph that a host has built is there at the start.
_SIMPLER = "published measurements of simpler on a2a3"
DISPATCH = {
    "tensormap_and_ringbuffer": Dispatch(_SIMPLER, 0.874, 2.0, 1.5, 0.35, 3),
    "host_build_graph": Dispatch(_SIMPLER, 0.0, 2.0, 1.5, 0.35, 4),
    "python": Dispatch(_SIMPLER, 0.874, 2.0, 1.5, 0.35, 3),
}


@dataclass(frozen=True, slots=True)
class Slice:
    """One block of a task on one core."""

    task: int
    block: int
    core: str  # cube 3, vector 7
    begin: float
    end: float


@dataclass(slots=True)
class GraphTime:
    """When each task ran, in microseconds from the start."""

    us: float = 0.0
    slices: list[Slice] = field(default_factory=list[Slice])
    ready: dict[int, float] = field(default_factory=dict[int, float])
    ended: dict[int, float] = field(default_factory=dict[int, float])  # noticed by a scheduler
    path: list[int] = field(default_factory=list[int])  # tasks of the critical path
    busy: dict[str, float] = field(default_factory=dict[str, float])  # share of each kind of core


def schedule(
    graph: Graph,
    times: Mapping[int, float],
    clusters: int,
    dispatch: Dispatch,
    without: Collection[tuple[int, int]] = (),
) -> GraphTime:
    """Dispatch a graph, given the microseconds of a block of each task; edges may be left out."""
    return _Simulation(graph, times, clusters, dispatch, without).run()


class _Simulation:
    """Events in order of time; what happens at one time happens in order of its cause."""

    def __init__(
        self,
        graph: Graph,
        times: Mapping[int, float],
        clusters: int,
        dispatch: Dispatch,
        without: Collection[tuple[int, int]],
    ) -> None:
        self._tasks = graph.tasks
        self._times = times
        self._costs = dispatch
        self._clusters = clusters
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = 0
        self._missing = [1] * len(graph.tasks)  # its own submission, and unfinished tasks before
        self._after: dict[int, list[int]] = defaultdict(list)
        for before, after in graph.edges:
            if (before, after) not in without:
                self._missing[after] += 1
                self._after[before].append(after)
        self._steps: deque[tuple[float, Callable[[float], None]]] = deque()  # for a scheduler
        self._idle = dispatch.threads
        self._queues: dict[str, deque[tuple[int, int]]] = {k: deque() for k in _SHAPES}
        self._left = [task.blocks for task in graph.tasks]
        self._load: dict[str, int] = {}  # blocks that a core holds
        self._free: dict[str, float] = {}  # when it has done them
        for n in range(clusters):
            for core in (f"cube {n}", f"vector {2 * n}", f"vector {2 * n + 1}"):
                self._load[core], self._free[core] = 0, 0.0
        self._why: dict[int, int] = {}  # the task that a task waited for last
        self._last: dict[str, int] = {}  # the task that a core ran last
        self.found = GraphTime()

    def run(self) -> GraphTime:
        for number in range(len(self._tasks)):
            submitted = partial(self._arrive, number, None)
            self._at((number + 1) * self._costs.submit, submitted)
        while self._events:
            now, _, happens = heappop(self._events)
            happens(now)
            self._work(now)
        result = self.found
        result.us = max(result.ended.values(), default=0.0)
        for kind, cores in (("cube", self._clusters), ("vector", 2 * self._clusters)):
            taken = sum(s.end - s.begin for s in result.slices if s.core.startswith(kind))
            result.busy[kind] = taken / (cores * result.us) if result.us else 0.0
        result.path = self._path()
        return result

    def _at(self, time: float, happens: Callable[[float], None]) -> None:
        self._count += 1
        heappush(self._events, (time, self._count, happens))

    def _arrive(self, number: int, cause: int | None, now: float) -> None:
        """One thing less that a task waits for."""
        self._missing[number] -= 1
        if self._missing[number]:
            return
        self.found.ready[number] = now
        if cause is not None:
            self._why[number] = cause
        task = self._tasks[number]
        if number not in self._times:  # no kernel
            self._ended(number, now)
        else:
            self._queues[_shape(task)].extend((number, block) for block in range(task.blocks))

    def _work(self, now: float) -> None:
        """Give steps to idle schedulers: ended tasks first, then ready ones."""
        while self._idle:
            step = self._steps.popleft() if self._steps else self._next_dispatch()
            if step is None:
                return
            self._idle -= 1
            took, then = step
            self._at(now + took, partial(self._stepped, then))

    def _stepped(self, then: Callable[[float], None], now: float) -> None:
        self._idle += 1
        then(now)

    def _next_dispatch(self) -> tuple[float, Callable[[float], None]] | None:
        """The next blocks of a task that find cores; mixed tasks come first."""
        for shape, queue in self._queues.items():
            if not queue:
                continue
            number = queue[0][0]
            placed = self._placed(shape, number)
            if placed:
                return self._costs.dispatch, partial(self._start, placed)
        return None

    def _placed(self, shape: str, number: int) -> list[tuple[int, int, list[str]]]:
        """As many blocks of the first task of a queue as find cores now."""
        queue, out = self._queues[shape], list[tuple[int, int, list[str]]]()
        while queue and queue[0][0] == number:
            cores = self._cores_for(shape, self._tasks[number])
            if cores is None:
                break
            for core in cores:
                self._load[core] += 1
            out.append((*queue.popleft(), cores))
        return out

    def _cores_for(self, shape: str, task: Task) -> list[str] | None:
        """Cores with a free entry: idle ones first, then those that hold one block."""
        for load in (0, 1):
            if shape != "mixed":
                kind = "cube" if shape == "cube" else "vector"
                count = self._clusters * (1 if kind == "cube" else 2)
                for n in range(count):
                    if self._load[f"{kind} {n}"] == load:
                        return [f"{kind} {n}"]
                continue
            for n in range(self._clusters):
                used = [f"cube {n}", f"vector {2 * n}", f"vector {2 * n + 1}"]
                cores = [c for c, k in zip(used, task.kernels, strict=True) if k is not None]
                if all(self._load[core] <= load for core in cores):
                    return cores
        return None

    def _start(self, placed: Sequence[tuple[int, int, list[str]]], now: float) -> None:
        for number, block, cores in placed:
            begin = max(now, *(self._free[core] for core in cores)) + self._costs.head
            end = begin + self._times[number]
            first = not any(s.task == number for s in self.found.slices[-len(cores) :])
            busiest = max(cores, key=lambda core: self._free[core])
            if first and self._free[busiest] > now and busiest in self._last:
                self._why[number] = self._last[busiest]
            for core in cores:
                self._free[core], self._last[core] = end, number
                self.found.slices.append(Slice(number, block, core, begin, end))
            self._at(end, partial(self._done, number, cores))

    def _done(self, number: int, cores: Sequence[str], now: float) -> None:
        for core in cores:
            self._load[core] -= 1
        self._left[number] -= 1
        if not self._left[number]:
            self._steps.append((self._costs.complete, partial(self._ended, number)))

    def _ended(self, number: int, now: float) -> None:
        self.found.ended[number] = now
        for after in self._after[number]:
            self._arrive(after, number, now)

    def _path(self) -> list[int]:
        """From the last task back through the tasks that were waited for."""
        ended = self.found.ended
        if not ended:
            return []
        path = [max(ended, key=lambda n: ended[n])]
        while path[-1] in self._why and self._why[path[-1]] not in path:
            path.append(self._why[path[-1]])
        return path[::-1]


_SHAPES = ("mixed", "cube", "vector")  # the order in which ready tasks are dispatched


def _shape(task: Task) -> str:
    cube, first, second = task.kernels
    if cube is not None and (first is not None or second is not None):
        return "mixed"
    if first is not None and second is not None:
        return "mixed"
    return "cube" if cube is not None else "vector"
