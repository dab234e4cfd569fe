"""Streams, events and graphs: the host submits work here, the devices do it when asked to.

Work of one stream is done in order; work of several as if at once. Nothing is executed before
somebody synchronises, and results never depend on which stream came first.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.run.launch.call import Blocks, Callee, Launch, Program, load
from pto.run.launch.prepared import Grid
from pto.run.machine.agents import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from pto.run.machine.device import Device
    from pto.run.machine.world import World


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


Task = Launch | Record | WaitFor


class Stream:
    """A queue of work for one device."""

    def __init__(self, device: Device, number: int, made: int) -> None:
        self.device = device
        self.number = number  # on its device
        self.made = made  # in the order of all
        self._tasks: deque[Task] = deque()
        self._running: tuple[Launch, Grid] | None = None
        self._number = 0  # of the launch that runs
        self.is_direct = False  # a call, not one of several launches
        self.owner = 0  # the thread that submitted last
        self.error: BaseException | None = None  # why its work was given up, not told yet
        self.after = device.world.over  # launches that are over before what comes next

    @property
    def name(self) -> str:
        rank = f" of rank {self.device.rank}" if self.device.ranks > 1 else ""
        return f"stream {self.number}{rank}"

    # ---- the host submits

    def launch(
        self,
        program: Program | Callee,
        *given: Any,
        args: Sequence[Any] = (),
        blocks: Blocks = 1,
        entry: str | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> Launch:
        """Submit a kernel. The program is checked now, and run when somebody synchronises.

        `stream.launch(kernel[8], x, y)` for a kernel of Python; for a program its arguments follow
        too, or stand in `args`. Arrays are global memory: until then they belong to the kernel.
        `timeout` ends a launch that takes longer, in seconds from its begin.
        """
        with self.device.world.lock:
            if isinstance(program, Callee):
                if args or blocks != 1 or entry is not None:
                    raise fail(
                        "PTO-U039",
                        "a kernel of Python says its blocks itself, and its arguments follow it",
                        help="stream.launch(kernel[blocks], x, y)",
                    )
                made = program.launched(self.device, given, named)
            else:
                kernel = self.device.kernel(load(program), entry)
                made = Launch.of(kernel, self.device, (*given, *args), blocks)
            made.timeout = timeout
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
        world = self.device.world
        with world.lock:
            graph = world.capturing.get(threading.get_ident())
            if graph is None:
                world.takes_up(self)
                self.owner = threading.get_ident()
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
                self._number = self.device.world.next_launch()
                if task.is_alone(self.is_direct):
                    task.now()
                    self.after = frozenset({self._number})
                else:
                    self._running = task, task.begin()
            elif isinstance(task, Record):
                task.event.is_done, task.event.after = True, self.after
            else:
                self.after |= task.event.after

    def _tell(self, launch: Launch) -> None:
        """Whoever watches hears which launch the next agents belong to."""
        if self.device.tap is not None and not self.is_direct:
            self.device.tap.observer.launch(self._number, self.after, launch.kernel.functions)

    @property
    def tasks(self) -> int:
        """How much has not begun."""
        return len(self._tasks)

    def launches(self) -> list[Launch] | None:
        """All that is to be done, where that is launches alone and none has begun; else None."""
        found = [task for task in self._tasks if isinstance(task, Launch)]
        return found if self._running is None and len(found) == len(self._tasks) else None

    def is_done_elsewhere(self) -> None:
        """What was to be done has been done, by somebody else."""
        self._tasks.clear()

    def _is_ready(self, task: Task) -> bool:
        return not isinstance(task, WaitFor) or task.event.is_done

    @property
    def waits_for(self) -> Event | None:
        """The event this stream stands at."""
        task = self._tasks[0] if self._tasks else None
        return task.event if isinstance(task, WaitFor) else None

    def abandon(self, error: BaseException) -> None:
        """Forget all work, after an error; who submitted it is told when he asks for it."""
        running = [] if self._running is None else [self._running[0]]
        for launch in running:
            launch.release()
        lost = running + [task for task in self._tasks if isinstance(task, Launch)]
        for launch in lost:
            launch.error = error
        if lost and self.owner != threading.get_ident():
            self.error = error
        self._running = None
        self._tasks.clear()


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
        self._world.capturing[threading.get_ident()] = self._graph
        return self._graph

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del self._world.capturing[threading.get_ident()]
