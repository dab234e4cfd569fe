"""Graphs of Python kernels: `graph.submit(kernel[blocks], x, y)` adds a task.

Arrays are the tensors. A view of an array is a region of the same buffer. Edges are derived from
the arrays that tasks read and write, or only those that the caller names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Loc
from pto.core.findings import Findings
from pto.core.intervals import Intervals
from pto.graphs.array_memory import Array, ArrayMemory, in_place, spread
from pto.graphs.diff import ValueLog
from pto.graphs.footprint import TaskFootprint, TaskUse
from pto.graphs.limits import UNLIMITED
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
from pto.graphs.runs import GraphRun, block_us, ran
from pto.lang.call.place import here, mistake, placed, user_frame
from pto.observe.sanitize import sanitize
from pto.observe.timing.chips import Bench
from pto.observe.timing.launch import BlockLaunch
from pto.observe.timing.program import chip_launch
from pto.run.launch.arrays import Borrowed, borrow
from pto.run.launch.call import Callee, Launch
from pto.run.machine.device import Device
from pto.run.watch.memory import WatchedMemory
from pto.transform.cores import CUBE, VECTOR, cores

Bytes = npt.NDArray[np.uint8]
Edges = Literal["derived", "explicit"]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The line of a submission."""

    loc: Loc | None
    callers: Sequence[Loc] = ()


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
        self.device: Device | None = None
        self.calls: list[_TaskCall] = []
        self.memory = ArrayMemory()
        self._users: dict[int, list[tuple[int, TensorBox, bool]]] = {}  # task, region, writes
        self.goldens: list[tuple[Borrowed, Array, float, float]] = []  # tolerances: rtol, atol

    @placed
    def submit(
        self, call: Callee, *args: Any, after: Sequence[TaskHandle] = (), **named: Any
    ) -> TaskHandle:
        """Add a task: `graph.submit(kernel[blocks], x, y, after=[first])`. It is checked now."""
        self._require_legal(call, after)
        launch = call.launched(self._on(call), args, named)
        number = len(self.model.tasks)
        frame = user_frame()
        names = {} if frame is None else {id(v): k for k, v in frame.f_locals.items()}
        arguments = [
            TaskArg(
                self._region(names.get(id(earlier.source), name), earlier),
                Use.INOUT if written else Use.IN,
            )
            for name, earlier, written in _arrays(launch)
        ]
        name = launch.kernel.name
        sides = {part.name for part in launch.kernel.parts}
        sides |= {side for f in launch.kernel.functions for side in cores(f)}
        cube, vector = (0 if side in sides else None for side in (CUBE, VECTOR))
        kernels = (cube, vector, None if cube is None else vector)  # a cube has two vectors
        task = Task(number, "task", kernels, name, launch.blocks, arguments)
        task.scalars = [_number(a) for a in launch.args if not isinstance(a, Borrowed)]
        task.where, task.is_manual = SourceLine(here()), not self._derives
        self.model.tasks.append(task)
        self.calls.append(_TaskCall(call, args, named, launch))
        for earlier in after:
            self.model.connect(earlier.number, number, Reason.EXPLICIT)
        self._derive(task)
        return TaskHandle(number, self)

    def _on(self, call: Callee) -> Device:
        if self.device is None:
            kernel = getattr(call, "kernel", call)
            self.device = Device(getattr(kernel, "profile", None))
        return self.device

    def _require_legal(self, call: Any, after: Any) -> None:
        if not isinstance(call, Callee):
            raise mistake(
                "PTO-U194",
                f"a task is a call of a kernel, not of a {type(call).__name__}",
                help="submit(kernel, x, y), or submit(kernel[blocks], x, y)",
            )
        if not isinstance(after, Sequence) or not all(isinstance(t, TaskHandle) for t in after):
            message = f"after= lists tasks that submit() returned, not {after!r}"
            raise mistake("PTO-U325", message, help="after=[first, second]")
        for earlier in after:
            if earlier.graph is not self:
                raise mistake("PTO-U325", f"task {earlier.number} belongs to another graph")

    def _region(self, name: str, array: Borrowed) -> TensorBox:
        """The part of a buffer that an argument is: views of one array share its buffer."""
        region = self.memory.box(array)
        number = region.buffer
        if number not in self.model.buffers:
            data = self.memory.buffers[number]
            self.model.buffers[number] = GraphBuffer(number, data.ctypes.data, data.nbytes, name)
            self._users[number] = []
        return region

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

    @placed
    def expect(
        self, array: Array, golden: npt.ArrayLike, rtol: float = 1e-5, atol: float = 1e-5
    ) -> None:
        """Say what an array must contain after a run: `pto graph run` judges by it."""
        borrowed, wanted = borrow(array), np.asarray(golden)
        if borrowed is None or wanted.shape not in ((), borrowed.array.shape):
            shapes = f"the golden has shape {wanted.shape}, the array {np.shape(array)}"
            raise mistake("PTO-U326", shapes)
        self._region("array", borrowed)
        self.goldens.append((borrowed, wanted, rtol, atol))

    def run(self, seed: int | None = None) -> GraphReport:
        """Execute every task, in the order of submission or in a random order by seed."""
        graph_run = PythonRun(self, self.memory.buffers, seed)
        graph_run.run()
        order = tuple(graph_run.schedule.order)
        return GraphReport(len(self.model.tasks), len(self.model.edges), order)

    def check(self) -> Findings:
        """Races between tasks and undefined reads, from a watched run on copies of the arrays."""
        watched_run = self.on_copies()
        watched_run.touches = {}
        watched_run.run()
        return Findings(ran([watched_run]).findings, f"{len(self.calls)} tasks watched")

    def on_copies(self, seed: int | None = None, log: ValueLog | None = None) -> PythonRun:
        """A run that leaves the arrays as they are."""
        return PythonRun(self, [data.copy() for data in self.memory.buffers], seed, log)


class PythonRun(GraphRun):
    """One run of a graph of Python kernels, on its arrays or on copies of them."""

    def __init__(
        self,
        graph: TaskGraph,
        buffers: Sequence[Bytes],
        seed: int | None = None,
        log: ValueLog | None = None,
    ) -> None:
        super().__init__(graph.model, seed, log)
        self._of, self._buffers = graph, buffers
        self._device = graph.device or Device(None)
        self.profile, self.limits = self._device.profile, UNLIMITED

    @property
    def arrays(self) -> Mapping[int, Bytes]:
        return dict(enumerate(self._buffers))

    def launch(self, task: Task) -> None:
        task_launch = self._of.calls[task.number].launch
        copies = any(isinstance(a, Borrowed) and a.take is not None for a in task_launch.args)
        is_own = self._buffers is self._of.memory.buffers and not copies
        self._go(self._device, task_launch.again() if is_own else self._moved(task, self._device))

    def _go(self, device: Device, launch: Launch) -> None:
        device.stream().submit(launch)
        device.synchronize()

    def watched(self, task: Task) -> list[TaskUse]:
        observer = TaskFootprint()
        device = Device(self.profile, observer=observer, engine="reference")
        launch = self._moved(task, device)
        copies = {a.array.ctypes.data: a for a in launch.args if isinstance(a, Borrowed)}
        self._go(device, launch)
        bounds = [(a.ctypes.data, a.ctypes.data + a.nbytes, n) for n, a in self.arrays.items()]

        def locate(memory: WatchedMemory, touched: Intervals) -> tuple[int, Intervals]:
            array = copies.get(memory.base)
            address = memory.base
            if array is not None and array.take is not None:
                in_memory = in_place(array)
                address, touched = in_memory.ctypes.data, spread(in_memory, touched)
            matching = (b for b in bounds if b[0] <= address <= b[1])
            return next((n, touched + (address - low)) for low, _, n in matching)

        return observer.take(locate)

    def sanitized(self, task: Task) -> list[Diagnostic]:
        launch = self._moved(task, self._device)
        args = [np.array(a.array) if isinstance(a, Borrowed) else a for a in launch.args]
        kernel, name = launch.kernel, self.profile.name
        options: dict[str, Any] = {"args": args, "blocks": launch.blocks, "profile": name}
        return list(sanitize(kernel.module, entry=kernel.name, automatic=True, **options))

    def _moved(self, task: Task, device: Device) -> Launch:
        """The call of a task on the arrays of this run."""
        call = self._of.calls[task.number]
        args = [self._copied(value) for value in call.args]
        named = {name: self._copied(value) for name, value in call.named.items()}
        return call.callee.launched(device, args, named)

    def _copied(self, value: Any) -> Any:
        """The same view of the memory of this run; anything but an array stays."""
        borrowed = borrow(value)
        return value if borrowed is None else self._view(borrowed)

    def _view(self, borrowed: Borrowed) -> Array:
        array, (number, start) = in_place(borrowed), self._of.memory.find(borrowed)
        return np.ndarray(array.shape, array.dtype, self._buffers[number], start, array.strides)

    def block_us(self, task: Task, chip: Bench) -> float:
        launch = self._of.calls[task.number].launch
        kernel = launch.kernel
        plain = [a.array if isinstance(a, Borrowed) else a for a in launch.args]
        split = chip_launch(kernel.module, kernel.functions, self.profile, plain, launch.blocks)
        timed = BlockLaunch(split.module, split.functions, self.profile, split.args, launch.blocks)
        return block_us(timed, chip, task.name)

    def judge(self) -> str:
        """The difference between arrays and what is expected of them; empty if they match."""
        for array, golden, rtol, atol in self._of.goldens:
            ours = self._view(array).astype(np.float64)
            far = np.abs(ours - golden.astype(np.float64))
            wrong = int((~(far <= atol + rtol * np.abs(golden))).sum())
            if wrong:
                name = self.graph.buffers[self._of.memory.find(array)[0]].title
                return f"{name}: {wrong} of {far.size} elements differ, by up to {far.max():g}"
        return ""


def _arrays(launch: Launch) -> list[tuple[str, Borrowed, bool]]:
    """Name, array and whether it is written, of each parameter that is an array."""
    writers = launch.kernel.writers
    pairs = zip(launch.kernel.parameters, launch.args, strict=True)
    return [(name, value, name in writers) for name, value in pairs if isinstance(value, Borrowed)]


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def graph(edges: Edges = "derived") -> TaskGraph:
    """A graph of tasks. Edges are derived from arrays, or only those named with `after=`."""
    return TaskGraph(edges)
