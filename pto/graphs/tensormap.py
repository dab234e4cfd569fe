"""The edges that a tensor-map runtime derives from the arguments of a task.

The runtime remembers the tasks that wrote to each buffer. A task that reads a region waits for the
writers of overlapping regions and for the task that created the buffer. Readers are not
remembered: a write after a read needs an explicit edge, or the reader must declare `INOUT`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from pto.graphs.model import Graph, Reason, Task, TensorBox, Use


class _Writer(NamedTuple):
    """A task that wrote a region with the bytes `low` to before `high`."""

    task: int
    region: TensorBox
    low: int
    high: int


class TensorMap:
    """Writers by buffer, newest last."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._writers: dict[int, list[_Writer]] = defaultdict(list)

    def submit(self, task: Task) -> None:
        """Add the edges of a task, then remember what it writes."""
        if task.is_manual:
            return
        for argument in task.arguments:
            if argument.use is not Use.OUT:
                self._wait(task, argument.region, argument.use, argument.tracked)
        for argument in task.arguments:
            if argument.tracked and argument.use in (Use.INOUT, Use.OVERWRITE):
                region = argument.region
                self._writers[region.buffer].append(_Writer(task.number, region, *region.span))

    def _wait(self, task: Task, region: TensorBox, use: Use, tracked: bool) -> None:
        graph = self._graph
        creator = graph.buffers[region.buffer].creator
        if creator is not None:
            graph.connect(creator, task.number, Reason.CREATES)
        if use not in (Use.IN, Use.INOUT) or not tracked:
            return
        low, high = region.span
        covered: list[_Writer] = []
        for writer in self._writers[region.buffer]:
            if writer.low < high and low < writer.high and writer.region.overlaps(region):
                graph.connect(writer.task, task.number, Reason.WRITES)
                # A full rewrite orders every later reader behind this task: older writers can go.
                if use is Use.INOUT and region.covers(writer.region):
                    covered.append(writer)
        for writer in covered:
            self._writers[region.buffer].remove(writer)

    def writers(self, region: TensorBox) -> list[int]:
        """Tasks that a read of this region by the orchestration waits for."""
        tasks = [w.task for w in self._writers[region.buffer] if w.region.overlaps(region)]
        creator = self._graph.buffers[region.buffer].creator
        return tasks if creator is None else [creator, *tasks]
