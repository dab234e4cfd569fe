"""Graphs of Python kernels: `graph.submit(kernel[blocks], x, y)` adds a task.

Arrays are the tensors. A view of an array is a region of the same buffer. Edges are derived from
the arrays that tasks read and write, or only those that the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pto.core.errors import Loc
from pto.core.findings import Findings
from pto.graphs import races
from pto.graphs.footprint import TaskFootprint, TaskUse
from pto.graphs.model import (
    Edge,
    Graph,
    GraphBuffer,
    GraphScope,
    Reason,
    Task,
    TaskArg,
    TensorBox,
    Use,
)
from pto.graphs.schedule import TaskSchedule
from pto.lang.call.place import here, mistake, placed
from pto.run.launch.arrays import Borrowed, borrow
from pto.run.launch.call import Callee, Launch
from pto.run.machine.device import Device
from pto.run.watch.memory import WatchedMemory

Array = npt.NDArray[Any]
Edges = Literal["derived", "explicit"]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The line of a submission."""

    loc: Loc | None


@dataclass(frozen=True, slots=True)
class TaskHandle:
    """A task of a graph, for `after=` of later tasks."""

    number: int
    graph: TaskGraph = field(repr=False)


@dataclass(slots=True)
class _TaskCall:
    """The call of a task."""

    callee: Callee
    args: Sequence[Any]
    named: Mapping[str, Any]
    launch: Launch


@dataclass(frozen=True, slots=True)
class GraphReport:
    """A run of a graph."""

    tasks: int
    edges: int
    order: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.tasks} tasks, {self.edges} edges"


class TaskGraph:
    """Tasks and edges; `run` executes them, `check` looks for races between them."""

    def __init__(self, edges: Edges = "derived") -> None:
        if edges not in ("derived", "explicit"):
            raise mistake("PTO-U324", f"edges are derived or explicit, not {edges!r}")
        self.model = Graph(scopes=[GraphScope(0, None, edges == "explicit")])
        self._derives = edges == "derived"
        self._device: Device | None = None
        self._calls: list[_TaskCall] = []
        self._roots: dict[int, Array] = {}  # by number of the buffer: the whole array
        self._users: dict[int, list[tuple[int, TensorBox, bool]]] = {}  # task, region, writes

    @placed
    def submit(
        self, call: Callee, *args: Any, after: Sequence[TaskHandle] = (), **named: Any
    ) -> TaskHandle:
        """Add a task: `graph.submit(kernel[blocks], x, y, after=[first])`. It is checked now."""
        strangers = [t for t in after if t.graph is not self]
        if strangers:
            raise mistake("PTO-U325", f"task {strangers[0].number} belongs to another graph")
        launch = call.launched(self._on(call), args, named)
        number = len(self.model.tasks)
        arguments = [
            TaskArg(self._region(name, each.array), Use.INOUT if written else Use.IN)
            for name, each, written in _arrays(launch)
        ]
        name = launch.kernel.name
        task = Task(number, "task", (None, None, None), name, launch.blocks, arguments)
        task.where, task.is_manual = SourceLine(here()), not self._derives
        self.model.tasks.append(task)
        self._calls.append(_TaskCall(call, args, named, launch))
        for each in after:
            self.model.connect(each.number, number, Reason.EXPLICIT)
        self._derive(task)
        return TaskHandle(number, self)

    def _on(self, call: Callee) -> Device:
        if self._device is None:
            kernel = getattr(call, "kernel", call)
            self._device = Device(getattr(kernel, "profile", None))
        return self._device

    def _region(self, name: str, array: Array) -> TensorBox:
        """The part of a buffer that an array is: views of one array share its buffer."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        number = next((n for n, known in self._roots.items() if known is root), None)
        if number is None:
            number = len(self._roots)
            self._roots[number] = root
            address = root.ctypes.data
            self.model.buffers[number] = GraphBuffer(number, address, root.nbytes, name)
            self._users[number] = []
        size = array.itemsize
        start = (array.ctypes.data - root.ctypes.data) // size
        strides = tuple(s // size for s in array.strides)
        return TensorBox(number, start, array.shape, strides, size, str(array.dtype))

    def _derive(self, task: Task) -> None:
        """Order a task after earlier tasks with conflicting arrays."""
        for argument in task.arguments:
            region, writes = argument.region, argument.use.writes
            users = self._users[region.buffer]
            for number, other, wrote in users if self._derives else ():
                if (writes or wrote) and other.overlaps(region):
                    reason = Reason.WRITES if wrote else Reason.READS
                    self.model.connect(number, task.number, reason)
            users.append((task.number, region, writes))

    @property
    def edges(self) -> list[Edge]:
        return list(self.model.edges.values())

    def run(self, seed: int | None = None) -> GraphReport:
        """Execute every task, in the order of submission or in a random order by seed."""
        schedule = TaskSchedule(self.model, self._execute, seed)
        schedule.run()
        return GraphReport(len(self.model.tasks), len(self.model.edges), tuple(schedule.order))

    def _execute(self, number: int) -> None:
        assert self._device is not None
        self._device.stream().submit(self._calls[number].launch.again())
        self._device.synchronize()

    def check(self) -> Findings:
        """Races between tasks and undefined reads, from a watched run on copies of the arrays."""
        copies = {number: np.array(root) for number, root in self._roots.items()}
        touches = {n: self._watched(n, copies) for n in range(len(self._calls))}
        found = races.findings(self.model, touches)
        return Findings(found, f"{len(self._calls)} tasks watched")

    def _watched(self, number: int, copies: Mapping[int, Array]) -> list[TaskUse]:
        call, observer = self._calls[number], TaskFootprint()
        assert self._device is not None
        device = Device(self._device.profile, observer=observer, engine="reference")

        def moved(value: Any) -> Any:
            return self._copied(value, copies)

        named = {name: moved(value) for name, value in call.named.items()}
        made = call.callee.launched(device, [moved(value) for value in call.args], named)
        device.stream().submit(made)
        device.synchronize()
        return observer.take(_located(copies))

    def _copied(self, value: Any, copies: Mapping[int, Array]) -> Any:
        """The same view of the copy of its buffer; anything but an array stays."""
        given = borrow(value)
        if given is None:
            return value
        array = given.array
        region = self._region("", array)
        offset = region.start * region.itemsize
        return np.ndarray(array.shape, array.dtype, copies[region.buffer], offset, array.strides)


def _arrays(launch: Launch) -> list[tuple[str, Borrowed, bool]]:
    """Name, array and whether it is written, of each parameter that is an array."""
    writers = launch.kernel.writers
    pairs = zip(launch.kernel.parameters, launch.args, strict=True)
    return [
        (name, value, writers.get(name) is not None)
        for name, value in pairs
        if isinstance(value, Borrowed)
    ]


def _located(copies: Mapping[int, Array]) -> Callable[[WatchedMemory], tuple[int, int]]:
    bounds = [(c.ctypes.data, c.ctypes.data + c.nbytes, n) for n, c in copies.items()]

    def locate(memory: WatchedMemory) -> tuple[int, int]:
        return next((n, memory.base - low) for low, high, n in bounds if low <= memory.base <= high)

    return locate


def graph(edges: Edges = "derived") -> TaskGraph:
    """A graph of tasks. Edges are derived from arrays, or only those named with `after=`."""
    return TaskGraph(edges)
