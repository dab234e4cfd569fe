"""Streams, events and graphs: the host submits work here, and synchronising runs it.

Work of one stream runs in order; work of several streams runs concurrently. Nothing runs before a
synchronisation, and results never depend on the order in which streams were made.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pto.core.errors import fail
from pto.run.launch.call import Blocks, Callee, Launch, Program, load
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.agents import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pto.run.machine.device import Device


class Event:
    """A point in a stream for which other streams can wait."""

    __slots__ = ("after", "is_done", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.is_done = False
        self.after: frozenset[int] = frozenset()  # launches that have ended when it happens


@dataclass(frozen=True, slots=True)
class Record:
    event: Event


@dataclass(frozen=True, slots=True)
class WaitFor:
    event: Event


Task = Launch | Record | WaitFor


class Stream:
    """A queue of work for one device."""

    def __init__(self, device: Device, number: int, index: int) -> None:
        self.device = device
        self.number = number  # among the streams of its device
        self.made = index  # among all streams
        self._tasks: deque[Task] = deque()
        self._running: tuple[Launch, LaunchGrid] | None = None
        self._number = 0  # of the running launch
        self.is_direct = False  # True for a single call
        self.owner = 0  # the thread that last submitted work
        # why its work was dropped, if that is not reported yet
        self.error: BaseException | None = None
        self.after = device.world.over  # launches that end before the next one begins

    @property
    def name(self) -> str:
        rank = f" of rank {self.device.rank}" if self.device.ranks > 1 else ""
        return f"stream {self.number}{rank}"

    # ---- the host submits

    def launch(
        self,
        program: Program | Callee,
        *arguments: Any,
        args: Sequence[Any] = (),
        blocks: Blocks = 1,
        entry: str | None = None,
        timeout: float | None = None,
        **named: Any,
    ) -> Launch:
        """Submit a kernel. The program is checked now, and runs at the next synchronisation.

        For a Python kernel, write `stream.launch(kernel[8], x, y)`. The arguments of a program
        follow it too, or are passed as `args`. Arrays are global memory: until the synchronisation
        they belong to the kernel. `timeout` limits the run time of the launch, in seconds.
        """
        with self.device.world.lock:
            if isinstance(program, Callee):
                if args or blocks != 1 or entry is not None:
                    raise fail(
                        "PTO-U039",
                        "a Python kernel has its own grid: pass only its arguments",
                        help="stream.launch(kernel[blocks], x, y)",
                    )
                queued = program.launched(self.device, arguments, named)
            else:
                kernel = self.device.kernel(load(program), entry)
                queued = Launch.of(kernel, self.device, (*arguments, *args), blocks)
            queued.timeout = timeout
            self.submit(queued)
            return queued

    def record(self) -> Event:
        """An event that happens when all work submitted to this stream so far is done."""
        event = Event(self)
        self.submit(Record(event))
        return event

    def wait(self, event: Event) -> None:
        """Make work submitted from now on begin after the event."""
        self.submit(WaitFor(event))

    def synchronize(self) -> None:
        """Run everything submitted to this stream and to the streams it may wait for."""
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

    # ---- device interface

    def begin(self) -> list[Agent]:
        """Agents that may start now: the next block, or the next launch when one is done."""
        while True:
            if self._running is not None:
                launch, grid = self._running
                if not grid.is_done:
                    self._report(launch)
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

    def _report(self, launch: Launch) -> None:
        """Report to the observer the launch of the next agents."""
        if self.device.tap is not None and not self.is_direct:
            self.device.tap.observer.launch(self._number, self.after, launch.kernel.functions)

    @property
    def tasks(self) -> int:
        """The number of tasks that have not begun."""
        return len(self._tasks)

    def launches(self) -> list[Launch] | None:
        """All submitted launches, if there are only launches and none has begun; else None."""
        queued = [task for task in self._tasks if isinstance(task, Launch)]
        return queued if self._running is None and len(queued) == len(self._tasks) else None

    def is_done_elsewhere(self) -> None:
        """Drop all tasks, because another process has run them."""
        self._tasks.clear()

    def _is_ready(self, task: Task) -> bool:
        return not isinstance(task, WaitFor) or task.event.is_done

    @property
    def waits_for(self) -> Event | None:
        """The event for which the first task waits, if any."""
        task = self._tasks[0] if self._tasks else None
        return task.event if isinstance(task, WaitFor) else None

    def abandon(self, error: BaseException) -> None:
        """Drop all work after an error; another thread that submitted some gets the error later."""
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
    """Captured work that can be replayed: kernels are compiled once."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    @property
    def launches(self) -> int:
        return sum(isinstance(task, Launch) for task in self.tasks)

    def replay(self, stream: Stream) -> list[Launch]:
        """Submit all captured work to one stream, in the order of its capture.

        That order satisfies every event of the graph itself; other events are waited for.
        """
        recorded = {id(task.event) for task in self.tasks if isinstance(task, Record)}
        launches: list[Launch] = []
        for task in self.tasks:
            if isinstance(task, Launch):
                launches.append(task.again())
                stream.submit(launches[-1])
            elif isinstance(task, WaitFor) and id(task.event) not in recorded:
                stream.submit(task)
        return launches
