"""Checks of the declared arguments of a graph, without values and without running a kernel.

A declaration is an upper bound: a kernel may access a part of a tensor, and two atomic updates may
overlap. So most conflicts between declarations are only counted here; `races` decides them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Note
from pto.graphs.limits import RuntimeLimits, Usage, usage
from pto.graphs.model import Graph, Task, TensorBox, Use

Users = dict[int, list[tuple[Task, TensorBox, Use]]]  # by buffer, in order of submission


@dataclass(frozen=True, slots=True)
class DryReport:
    """Findings, and what a run with values must decide."""

    findings: list[Diagnostic]
    usage: Usage
    undecided: int  # pairs of tasks that conflict by their declarations, in no order


def report(graph: Graph, limits: RuntimeLimits) -> DryReport:
    order = _TaskOrder(graph)
    users = _users(graph)
    used = usage(graph, limits)
    findings = list(used.findings)
    findings += _undefined(graph, users, order)
    findings += _unwritten(graph, users)
    findings += _against_caller(graph, users)
    return DryReport(findings, used, _undecided(users, order))


class _TaskOrder:
    """Which tasks end before a task begins."""

    def __init__(self, graph: Graph) -> None:
        size = len(graph.tasks) // 8 + 1
        rows = [bits.to_bytes(size, "little") for bits in graph.ancestors()]
        self._rows = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), size)

    def before(self, task: int, others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return ((self._rows[task][others >> 3] >> (others & 7)) & 1).astype(bool)


def _users(graph: Graph) -> Users:
    users: Users = defaultdict(list)
    for task in graph.tasks:
        for argument in task.arguments if task.kind == "task" else ():
            if not argument.region.is_empty:
                users[argument.region.buffer].append((task, argument.region, argument.use))
    return users


def _undefined(graph: Graph, users: Users, order: _TaskOrder) -> Iterator[Diagnostic]:
    """Inputs that no task before has written, in buffers without an initial value."""
    reported: set[object] = set()
    for buffer, uses in users.items():
        if graph.buffers[buffer].initial:
            continue
        for task, region, use in uses:
            if use is not Use.IN:
                continue
            writers = [
                t
                for t, other, how in uses
                if t is not task and how is not Use.IN and other.overlaps(region)
            ]
            numbers = np.array([t.number for t in writers], np.int64)
            if not order.before(task.number, numbers).any() and task.loc not in reported:
                reported.add(task.loc)
                yield _undefined_finding(graph, task, buffer, writers)


def _undefined_finding(graph: Graph, task: Task, buffer: int, writers: list[Task]) -> Diagnostic:
    memory = graph.buffers[buffer]
    message = (
        f"{task.title} declares to read {memory.title}, which no task before it declares to write"
    )
    notes: list[Note] = []
    if memory.creator is not None:
        creator = graph.tasks[memory.creator]
        notes.append(Note(f"{creator.title} creates it", creator.loc))
    help = None
    if writers:
        notes.append(Note(f"{writers[0].title} writes it, and no edge orders them", writers[0].loc))
        help = f"make {task.title} depend on {writers[0].title}"
    # In a manual scope directions have no effect: the declaration may be wrong without harm.
    severity = "warning" if task.is_manual else "error"
    return Diagnostic("PTO-G102", message, task.loc, severity, tuple(notes), help)


def _unwritten(graph: Graph, users: Users) -> Iterator[Diagnostic]:
    """Outputs of the graph that no task declares to write."""
    for buffer in graph.buffers.values():
        if buffer.use is Use.OUT and all(how is Use.IN for _, _, how in users[buffer.number]):
            message = f"no task declares to write {buffer.title}, an output of the graph"
            yield Diagnostic("PTO-G103", message, None, "warning")


def _against_caller(graph: Graph, users: Users) -> Iterator[Diagnostic]:
    """Inputs of the graph that a task overwrites: the caller does not get them back."""
    for buffer in graph.buffers.values():
        if buffer.use is not Use.IN:
            continue
        first = next((t for t, _, how in users[buffer.number] if how is Use.OVERWRITE), None)
        if first is not None:
            message = (
                f"{first.title} overwrites {buffer.title}, which the graph declares as an input"
            )
            yield Diagnostic("PTO-G105", message, first.loc, "warning")


def _undecided(users: Users, order: _TaskOrder) -> int:
    """Pairs of tasks with conflicting declared regions and without order by edges."""
    pairs: set[tuple[int, int]] = set()
    for uses in users.values():
        changes = np.array([use is not Use.IN for _, _, use in uses])
        if not changes.any():
            continue
        tasks = np.array([t.number for t, _, _ in uses], np.int64)
        spans = np.array([region.span for _, region, _ in uses], np.int64)
        overlaps: dict[tuple[TensorBox, TensorBox], bool] = {}
        for n, (task, region, _) in enumerate(uses):
            near = (spans[:n, 0] < spans[n, 1]) & (spans[:n, 1] > spans[n, 0])
            near &= (changes[:n] | changes[n]) & (tasks[:n] != task.number)
            for m in np.flatnonzero(near & ~order.before(task.number, tasks[:n])):
                key = (uses[m][1], region)
                if key not in overlaps:
                    overlaps[key] = uses[m][1].overlaps(region)
                if overlaps[key]:
                    pairs.add((int(tasks[m]), task.number))
    return len(pairs)
