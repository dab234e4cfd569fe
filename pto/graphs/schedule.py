"""Orders in which the tasks of a graph may run.

Every order that the edges allow must give the same bytes. A seed picks one of them; seed None is
the order of submission. Tasks can be added after earlier ones have run, since an orchestration that
reads a tensor needs its value before it continues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random

from pto.core.errors import Diagnostic, PtoError
from pto.graphs.model import Graph


class TaskSchedule:
    """Runs the tasks of a growing graph by their edges."""

    def __init__(self, graph: Graph, execute: Callable[[int], None], seed: int | None = None):
        self._graph = graph
        self._execute = execute
        self._random = None if seed is None else Random(seed)
        self._known = 0  # tasks seen so far
        self._missing: dict[int, int] = {}  # of each waiting task: edges not yet satisfied
        self._after: dict[int, list[int]] = defaultdict(list)
        self._ready: list[int] = []
        self._done: set[int] = set()
        self.order: list[int] = []

    def _take_up(self) -> None:
        """Add the tasks submitted since the last call."""
        first, self._known = self._known, len(self._graph.tasks)
        if first == self._known:
            return
        for number in range(first, self._known):
            self._missing[number] = 0
        for before, after in self._graph.edges:
            if after >= first and before not in self._done:
                self._missing[after] += 1
                self._after[before].append(after)
        self._ready += [n for n in range(first, self._known) if not self._missing[n]]

    def run(self, wanted: Iterable[int] | None = None) -> None:
        """Run until these tasks are done, or all of them."""
        self._take_up()
        needed = None if wanted is None else self._needed(wanted)
        while needed is None or needed - self._done:
            number = self._next(needed)
            if number is None:
                return
            self._execute(number)
            self.finish(number)

    def take(self) -> int | None:
        """A task that may begin now; the caller reports its end. None: none may."""
        self._take_up()
        return self._next(None)

    @property
    def ready(self) -> bool:
        """True if a task may begin."""
        return bool(self._ready)

    def _next(self, needed: set[int] | None) -> int | None:
        choice = [n for n in self._ready if needed is None or n in needed]
        if not choice:
            return None
        number = min(choice) if self._random is None else self._random.choice(choice)
        self._ready.remove(number)
        return number

    def finish(self, number: int) -> None:
        self._done.add(number)
        self.order.append(number)
        del self._missing[number]
        for after in self._after.pop(number, ()):
            self._missing[after] -= 1
            if not self._missing[after]:
                self._ready.append(after)

    def _needed(self, wanted: Iterable[int]) -> set[int]:
        """These tasks and their ancestors that have not run."""
        incoming: dict[int, list[int]] = defaultdict(list)
        for before, after in self._graph.edges:
            incoming[after].append(before)
        needed: set[int] = set()
        waiting = [n for n in wanted if n not in self._done]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += [n for n in incoming[number] if n not in self._done]
        return needed

    def require_end(self) -> None:
        """Refuse a graph with tasks that no order reaches."""
        if self._missing:
            number = min(self._missing)
            tasks, edges = self._graph.tasks, self._graph.edges
            before = next(b for b, after in edges if after == number and b in self._missing)
            message = f"{tasks[number].title} waits for {tasks[before].title}, which never runs"
            raise PtoError(Diagnostic("PTO-G005", message, tasks[number].loc))
