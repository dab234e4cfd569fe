"""Graphs on several chips at once: the child process that interleaves their tasks.

Each submission runs one orchestration on one chip. A chip runs its submissions in order, and a
submission waits for earlier ones that use the same buffers. Tasks of different chips may wait for
each other's signals: a blocked task yields to other tasks. The chips share one memory, so that an
address of another chip is an address.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.cxx.child import serve
from pto.graphs.launch import named
from pto.graphs.model import Task
from pto.graphs.orchestration import GraphMem
from pto.graphs.worker import GraphServer, GraphSession, require_end
from pto.run.sites import RecordLaunch

_ROUNDS = 50  # of the agents of a task, before other tasks run
_RANKS = 64  # capacity of a context


class ChipServer:
    """Answers requests about graphs on several chips."""

    def load(self, programs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Load each program as `GraphServer.load` does."""
        self._programs = [GraphServer() for _ in programs]
        for server, program in zip(self._programs, programs, strict=True):
            server.load(**program)
        return {}

    def run(
        self, buffers: Sequence[int], submissions: Sequence[Mapping[str, Any]], file: str
    ) -> dict[str, Any]:
        """Run submissions on buffers of these sizes; the file has their bytes one after another."""
        for program in self._programs:
            program.clear()
        raw, memory = np.fromfile(file, np.uint8), GraphMem()
        ends = np.cumsum([0, *buffers])
        numbers = [memory.allocate(size) for size in buffers]
        for number, low, high in zip(numbers, ends[:-1], ends[1:], strict=True):
            memory.arrays[number][:] = raw[low:high]
        runs = [Submission(self._programs[s["program"]], s, memory) for s in submissions]
        _take_turns(runs)
        np.concatenate([memory.arrays[n] for n in numbers] or [raw]).tofile(file)
        graphs = [r.graph for r in runs]
        return {
            "tasks": sum(len(g.tasks) for g in graphs),
            "edges": sum(len(g.edges) for g in graphs),
        }


def _take_turns(runs: Sequence[Submission]) -> None:
    """Advance submissions that may run until all have ended."""
    while not all(r.is_done for r in runs):
        moved = False
        busy: set[int] = set()  # chips with an earlier submission that has not ended
        for run in runs:
            if run.is_done:
                continue
            if run.chip not in busy and all(runs[n].is_done for n in run.after):
                moved |= run.advance()
            busy.add(run.chip)
        if not moved:
            raise next(error for r in runs if (error := r.deadlock) is not None)


class Submission:
    """One orchestration on one chip."""

    def __init__(self, server: GraphServer, described: Mapping[str, Any], memory: GraphMem) -> None:
        self.chip: int = described["chip"]
        self.after: Sequence[int] = described["after"]
        self.is_done = False
        self._server = server
        self._memory = memory
        self._session = GraphSession(server, memory)
        self._was_submitted = False
        self._open: list[tuple[Task, RecordLaunch | None]] = []
        for each in described["given"]:
            self._add(each)

    @property
    def graph(self) -> Any:
        return self._session.orchestration.graph

    def _add(self, each: Mapping[str, Any]) -> None:
        """An argument: a number, a tensor, an address in a buffer, or a context of ranks."""
        memory = self._memory
        if "word" in each:
            self._session.add_word(each["word"])
        elif "shape" in each:
            self._session.add_tensor(each["buffer"], each, each["offset"])
        elif "windows" in each:
            number = memory.allocate(_SIZE)
            starts = [memory.starts[n] for n in each["windows"]]
            memory.arrays[number][:] = np.frombuffer(
                _context(each["rank"], starts, each["size"]), np.uint8
            )
            self._session.add_word(memory.starts[number])
        else:
            self._session.add_word(memory.starts[each["buffer"]] + each["offset"])

    def advance(self) -> bool:
        """Run every task that may run; True if anything happened."""
        moved = not self._was_submitted
        if not self._was_submitted:
            self._session.submit()
            self._was_submitted = True
        schedule = self._session.schedule
        while (number := schedule.take()) is not None:
            task = self.graph.tasks[number]
            self._open.append((task, self._server.begin(task, self._memory)))
            moved = True
        for each in list(self._open):
            moved |= self._step(*each)
        if not self._open and not schedule.ready:
            require_end(self.graph, schedule)
            self.is_done = moved = True
        return moved

    def _step(self, task: Task, launch: RecordLaunch | None) -> bool:
        try:
            has_ended = launch is None or launch.go_on(_ROUNDS)
        except PtoError as error:
            raise named(error, task) from None
        if has_ended:
            self._open.remove((task, launch))
            self._session.schedule.finish(task.number)
        return has_ended or (launch is not None and launch.moved)

    @property
    def deadlock(self) -> PtoError | None:
        """The error of the first blocked task, with its wait."""
        found = ((t, run) for t, run in self._open if run is not None)
        return next((named(run.deadlock, task) for task, run in found), None)


def _context(rank: int, windows: Sequence[int], size: int) -> bytes:
    """The record from which a kernel takes its rank and the addresses of all windows."""
    listed = [*windows, *[0] * (_RANKS - len(windows))]
    return struct.pack(_CONTEXT, 0, 0, rank, len(windows), size, *listed, *[0] * _RANKS)


_CONTEXT = f"<QQIIQ{_RANKS}Q{_RANKS}Q"
_SIZE = struct.calcsize(_CONTEXT)

if __name__ == "__main__":
    serve(ChipServer())
