"""Streams, events and graphs: the host submits work here, the devices do it when asked to.

Work of one stream is done in order; work of several as if at once. Nothing is executed before
somebody synchronises, and results never depend on which stream came first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.errors import PtoError
from pto.core.memory import Memory
from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.isa.row import types as t
from pto.run.launch.arrays import Borrowed, borrow, require_elements
from pto.run.launch.host import entry_functions
from pto.run.launch.prepared import Grid, Kernel
from pto.run.machine.agents import Agent
from pto.run.watch.events import Tap
from pto.verify import judge

if TYPE_CHECKING:
    from types import TracebackType

    from pto.run.machine.device import Device
    from pto.run.machine.world import World

Program = Module | Path | str


def load(program: Program) -> Module:
    """A program: parsed already, the path of a file, or text with more than one line."""
    if isinstance(program, Module):
        return program
    if isinstance(program, str) and "\n" in program:
        return parse(program)
    return parse_file(Path(program))


class Event:
    """A point in a stream that others can wait for."""

    __slots__ = ("after", "is_done", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.is_done = False
        self.after: frozenset[int] = frozenset()  # launches that are over when it happens


@dataclass(frozen=True, slots=True)
class Record:
    event: Event


@dataclass(frozen=True, slots=True)
class WaitFor:
    event: Event


@dataclass(slots=True, eq=False)
class Launch:
    """One launch of a kernel. `printed` is there when it is done."""

    kernel: Kernel
    device: Device
    args: Sequence[Any]  # scalars, and borrowed arrays
    blocks: int
    is_done: bool = False
    printed: tuple[str, ...] = ()
    _held: list[Memory] = field(default_factory=list[Memory])

    def again(self) -> Launch:
        """The same work, to be done once more."""
        return Launch(self.kernel, self.device, self.args, self.blocks)

    def begin(self) -> Grid:
        plain = [a.array if isinstance(a, Borrowed) else a for a in self.args]
        values = self.device.values(self.kernel, plain)
        memories = [getattr(value, "memory", None) for value in values.values()]
        self._held = [m for m in memories if isinstance(m, Memory)]
        self.device.hold(self._held)
        return self.kernel.start(self.device, values, self.blocks)

    def end(self, grid: Grid) -> None:
        self.release()
        self.printed, self.is_done = tuple(grid.printed()), True
        for arg in self.args:
            if isinstance(arg, Borrowed) and arg.give_back is not None:
                arg.give_back()

    def release(self) -> None:
        self.device.release(self._held)
        self._held = []


Task = Launch | Record | WaitFor


class Stream:
    """A queue of work for one device."""

    def __init__(self, device: Device, number: int) -> None:
        self.device = device
        self.number = number
        self._tasks: deque[Task] = deque()
        self._running: tuple[Launch, Grid] | None = None
        self._number = 0  # of the launch that runs
        self.after = device.world.over  # launches that are over before what comes next

    @property
    def name(self) -> str:
        rank = f" of rank {self.device.rank}" if self.device.ranks > 1 else ""
        return f"stream {self.number}{rank}"

    # ---- the host submits

    def launch(
        self,
        program: Program,
        *,
        args: Sequence[Any] = (),
        blocks: int | tuple[int, ...] = 1,
        entry: str | None = None,
    ) -> Launch:
        """Submit a kernel. The program is checked now, and run when somebody synchronises.

        Arrays are global memory: until then they belong to the kernel.
        """
        device = self.device
        kernel = device.world.kernel(load(program), entry, device.profile, device.tap)
        given = [_argument(name, type, arg) for (name, type), arg in _pairs(kernel, args)]
        made = Launch(kernel, self.device, given, int(np.prod(blocks)))
        self.submit(made)
        return made

    def record(self) -> Event:
        """An event that happens when all work submitted to this stream so far is done."""
        event = Event(self)
        self.submit(Record(event))
        return event

    def wait(self, event: Event) -> None:
        """Work submitted from here on begins after the event."""
        self.submit(WaitFor(event))

    def synchronize(self) -> None:
        """Do all that has been submitted, to this stream and to those it may wait for."""
        self.device.world.synchronize()

    def submit(self, task: Task) -> None:
        graph = self.device.world.capturing
        if graph is None:
            self._tasks.append(task)
        else:
            graph.tasks.append(task)

    # ---- the device takes

    def begin(self) -> list[Agent]:
        """Agents that may start now: the next block, or the next launch when one is done."""
        while True:
            if self._running is not None:
                launch, grid = self._running
                if not grid.is_done:
                    self._tell(launch)
                    return grid.next_block()
                self._running = None
                self.after = frozenset({self._number})
                launch.end(grid)
            if not self._tasks or not self._is_ready(self._tasks[0]):
                return []
            task = self._tasks.popleft()
            if isinstance(task, Launch):
                self._running = task, task.begin()
                self._number = self.device.world.next_launch()
            elif isinstance(task, Record):
                task.event.is_done, task.event.after = True, self.after
            else:
                self.after |= task.event.after

    def _tell(self, launch: Launch) -> None:
        """Whoever watches hears which launch the next agents belong to."""
        if self.device.tap is not None:
            self.device.tap.observer.launch(self._number, self.after, launch.kernel.functions)

    @property
    def tasks(self) -> int:
        """How much has not begun."""
        return len(self._tasks)

    def _is_ready(self, task: Task) -> bool:
        return not isinstance(task, WaitFor) or task.event.is_done

    @property
    def waits_for(self) -> Event | None:
        """The event this stream stands at."""
        task = self._tasks[0] if self._tasks else None
        return task.event if isinstance(task, WaitFor) else None

    def abandon(self) -> None:
        """Forget all work, after an error."""
        if self._running is not None:
            self._running[0].release()
        self._running = None
        self._tasks.clear()


def _pairs(kernel: Kernel, args: Sequence[Any]) -> Iterable[tuple[tuple[str, t.Type], Any]]:
    kernel.require(len(args))
    return zip(kernel.parameters.items(), args, strict=True)


def _argument(name: str, type: t.Type, value: Any) -> Any:
    given = borrow(value)
    if given is None:
        return value
    elem = getattr(type, "elem", None)
    if isinstance(elem, t.Scalar):
        require_elements(name, given, elem.dtype)
    return given


class Graph:
    """Work kept to be done again: kernels are prepared once."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    @property
    def launches(self) -> int:
        return sum(isinstance(task, Launch) for task in self.tasks)

    def replay(self, stream: Stream) -> list[Launch]:
        """Submit all of it to one stream, in the order it was captured in.

        That order keeps every event of the graph itself; events of others are waited for.
        """
        own = {id(task.event) for task in self.tasks if isinstance(task, Record)}
        made: list[Launch] = []
        for task in self.tasks:
            if isinstance(task, Launch):
                made.append(task.again())
                stream.submit(made[-1])
            elif isinstance(task, WaitFor) and id(task.event) not in own:
                stream.submit(task)
        return made


class Capture:
    """`with device.capture() as graph:`"""

    def __init__(self, world: World) -> None:
        self._world = world
        self._graph = Graph()

    def __enter__(self) -> Graph:
        self._world.capturing = self._graph
        return self._graph

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._world.capturing = None


def prepare(module: Module, entry: str | None, profile: Any, tap: Tap | None = None) -> Kernel:
    """Check a program for a profile and make its kernel ready."""
    _, findings = judge(module, profile=profile.name, device=profile.device)
    errors = [d for d in findings if d.severity == "error"]
    if errors:
        raise PtoError(*errors)
    return Kernel(module, entry_functions(module, entry), profile, tap)
