"""Findings about the order of tasks, from exact footprints and the edges of the graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pto.core.errors import Diagnostic, Note
from pto.core.intervals import Intervals, common, length, meet, merged, without
from pto.graphs.footprint import TaskUse
from pto.graphs.model import Graph, HostUse, Reason, Task, Use

Touches = Mapping[int, Sequence[TaskUse]]  # by task
_OUTPUTS = (Use.OUT, Use.OVERWRITE)  # inout may serve to order readers
_MOST = 20  # findings of one kind


@dataclass(frozen=True, slots=True)
class Race:
    """Two tasks that no edge orders, and the bytes they conflict on."""

    first: Task
    second: Task
    a: TaskUse
    b: TaskUse
    bytes: Intervals

    @property
    def kind(self) -> str:
        if self.a.how == "reads":
            return "write-after-read"
        return "read-after-write" if self.b.how == "reads" else "write-after-write"


Users = list[tuple[int, list[TaskUse]]]  # of one buffer: tasks in order, and their touches


def find(graph: Graph, touches: Touches) -> list[Race]:
    """Every conflict between tasks that the edges leave unordered."""
    buffers: dict[int, Users] = defaultdict(list)
    for task in sorted(touches):
        by_buffer: dict[int, list[TaskUse]] = defaultdict(list)
        for touch in touches[task]:
            by_buffer[touch.buffer].append(touch)
        for buffer, uses in by_buffer.items():
            buffers[buffer].append((task, uses))
    ancestors = graph.ancestors()
    races = [race for users in buffers.values() for race in _in_buffer(graph, users, ancestors)]
    return sorted(races, key=lambda r: (r.second.number, r.first.number))


def _in_buffer(graph: Graph, users: Users, ancestors: Sequence[int]) -> Iterator[Race]:
    """Conflicts on one buffer: each task against earlier ones with overlapping spans."""
    if all(touch.how == "reads" for _, uses in users for touch in uses):
        return
    spans = np.array([_bounds(merged([t.bytes for t in uses])) for _, uses in users], np.int64)
    for n, (later, uses) in enumerate(users):
        low, high = spans[n]
        for m in np.flatnonzero((spans[:n, 0] < high) & (spans[:n, 1] > low)):
            earlier, before = users[m]
            pair = None if (ancestors[later] >> earlier) & 1 else _conflict(before, uses)
            if pair is not None:
                yield Race(graph.tasks[earlier], graph.tasks[later], *pair)


def _bounds(intervals: Intervals) -> tuple[int, int]:
    """The first byte, and one past the last."""
    return int(intervals[0, 0]), int(intervals[-1, 1])


def _conflict(
    earlier: Sequence[TaskUse], later: Sequence[TaskUse]
) -> tuple[TaskUse, TaskUse, Intervals] | None:
    """The first pair of touches that conflict, and their bytes; two atomic updates do not."""
    for a in earlier:
        for b in later:
            if a.how == b.how == "reads" or a.how == b.how == "accumulates into":
                continue
            both = common(a.bytes, b.bytes)
            if len(both):
                return a, b, both
    return None


def findings(graph: Graph, touches: Touches) -> list[Diagnostic]:
    """All findings of a graph, one for each cause."""
    out = list(_race_findings(graph, find(graph, touches)))
    out += _host_races(graph, touches)
    out += _undefined(graph, touches)
    out += _unwritten(graph, touches)
    out += _against_declaration(graph, touches)
    return out


def _race_findings(graph: Graph, races: Sequence[Race]) -> Iterator[Diagnostic]:
    """Races between the same two kernels at the same lines are one finding with a count."""
    causes: dict[tuple[object, ...], list[Race]] = defaultdict(list)
    for race in races:
        key = (race.kind, race.a.op.loc, race.b.op.loc, race.first.loc, race.second.loc)
        causes[key].append(race)
    for alike in list(causes.values())[:_MOST]:
        yield _race_finding(graph, alike)


def _race_finding(graph: Graph, alike: Sequence[Race]) -> Diagnostic:
    race = alike[0]
    first, second = race.first, race.second
    name = graph.buffers[race.a.buffer].title
    low, high = _bounds(race.bytes)
    others = f" ({len(alike)} pairs of tasks alike)" if len(alike) > 1 else ""
    message = (
        f"{race.kind} race between tasks on {name}, bytes {low:#x}..{high:#x}: no edge orders"
        f" {first.title} and {second.title}{others}"
    )
    notes = (
        Note(f"{first.title} {race.a.how} the bytes", race.a.op.loc),
        Note(f"{second.title} {race.b.how} the bytes", race.b.op.loc),
        first.submitted(),
        second.submitted(),
    )
    return Diagnostic("PTO-G101", message, second.loc, "error", notes, _remedy(graph, alike))


def _remedy(graph: Graph, alike: Sequence[Race]) -> str:
    """The edge that is missing, tried: the pairs are ordered with it."""
    added = [(r.first.number, r.second.number) for r in alike]
    trial = replace(graph, edges=dict(graph.edges))
    for before, after in added:
        trial.connect(before, after, Reason.EXPLICIT)
    ancestors = trial.ancestors()
    ordered = all((ancestors[after] >> before) & 1 for before, after in added)
    race = alike[0]
    edge = f"make {race.second.title} depend on {race.first.title}"
    return f"{edge} (tried: {'ordered' if ordered else 'still unordered'})"


def _host_races(graph: Graph, touches: Touches) -> Iterator[Diagnostic]:
    """Elements that the orchestration accesses while a task that it did not wait for may run."""
    ancestors, reported = graph.ancestors(), set[object]()
    done = 0  # the orchestration has waited for these, now or before
    for use in graph.accesses:
        for number in use.waited:
            done |= ancestors[number] | 1 << number
        element = np.array([use.bytes], np.int64)
        for number in range(use.submitted):
            for touch in touches.get(number, ()) if not (done >> number) & 1 else ():
                conflicts = touch.buffer == use.buffer and (use.writes or touch.how != "reads")
                key = (touch.op.loc, use.where.loc)
                if conflicts and key not in reported and meet(touch.bytes, element):
                    reported.add(key)
                    yield _host_race(graph, number, touch, use)


def _host_race(graph: Graph, number: int, touch: TaskUse, use: HostUse) -> Diagnostic:
    task, name = graph.tasks[number], graph.buffers[use.buffer].title
    low, high = use.bytes
    does = "writes" if use.writes else "reads"
    message = (
        f"race between {task.title} and the orchestration on {name}, bytes {low:#x}..{high:#x}: the"
        f" orchestration {does} the element and does not wait for the task"
    )
    notes = (
        Note(f"{task.title} {touch.how} the bytes", touch.op.loc),
        task.submitted(),
    )
    help = "the runtime waits for tasks that declare the tensor as inout in an automatic scope"
    return Diagnostic("PTO-G101", message, use.where.loc, "error", notes, help)


def _undefined(graph: Graph, touches: Touches) -> Iterator[Diagnostic]:
    """Reads of bytes that no earlier task has written and that had no value before."""
    ancestors = graph.ancestors()
    written: dict[int, list[tuple[int, Intervals]]] = defaultdict(list)
    reported: set[tuple[object, ...]] = set()
    for number in sorted(touches):
        for touch in touches[number]:
            buffer = graph.buffers[touch.buffer]
            if touch.how == "writes" or buffer.initial:
                continue
            here = [
                t.bytes for t in touches[number] if t.buffer == touch.buffer and t.how == "writes"
            ]
            defined = here + [b for n, b in written[touch.buffer] if (ancestors[number] >> n) & 1]
            defined += [
                np.array([use.bytes], np.int64)
                for use in graph.accesses
                if use.writes and use.buffer == touch.buffer and use.submitted <= number
            ]
            missing = without(touch.bytes, merged(defined))
            key = (touch.op.loc, graph.tasks[number].loc)
            if len(missing) and key not in reported:
                reported.add(key)
                yield _undefined_finding(graph, number, touch, missing)
        for touch in touches[number]:
            if touch.how != "reads":
                written[touch.buffer].append((number, touch.bytes))


def _undefined_finding(graph: Graph, number: int, touch: TaskUse, missing: Intervals) -> Diagnostic:
    task, buffer = graph.tasks[number], graph.buffers[touch.buffer]
    low, high = _bounds(missing)
    message = (
        f"{task.title} {touch.how} {length(missing)} bytes of {buffer.title} in {low:#x}..{high:#x}"
        " that no task before it has written"
    )
    creator = None if buffer.creator is None else graph.tasks[buffer.creator]
    notes = [task.submitted()]
    if creator is not None:
        notes.append(Note(f"{creator.title} creates the buffer", creator.loc))
    return Diagnostic("PTO-G102", message, touch.op.loc, "error", tuple(notes))


def _unwritten(graph: Graph, touches: Touches) -> Iterator[Diagnostic]:
    """Tensors that a task declares as an output and does not write."""
    reported: set[object] = set()
    for number, uses in touches.items():
        task = graph.tasks[number]
        changed = {t.buffer for t in uses if t.how != "reads"}
        for n, argument in enumerate(() if task.was_skipped else task.arguments):
            region = argument.region
            if argument.use not in _OUTPUTS or region.buffer in changed or region.is_empty:
                continue
            if (key := (task.kernels, n)) in reported:
                continue
            reported.add(key)
            title = graph.buffers[region.buffer].title
            message = (
                f"{task.title} declares argument {n} ({title}) as {argument.use.value} and no"
                " instruction of it writes there"
            )
            yield Diagnostic("PTO-G103", message, task.loc, "warning")


def _against_declaration(graph: Graph, touches: Touches) -> Iterator[Diagnostic]:
    """Inputs that a task changes, where the runtime derives edges from declarations."""
    reported: set[object] = set()
    for number, uses in touches.items():
        task = graph.tasks[number]
        inputs = {a.region.buffer for a in task.arguments if a.use is Use.IN}
        inputs -= {a.region.buffer for a in task.arguments if a.use is not Use.IN}
        for touch in uses if not task.is_manual else ():
            key = (touch.op.loc, task.loc)
            if touch.how == "reads" or touch.buffer not in inputs or key in reported:
                continue
            reported.add(key)
            title = graph.buffers[touch.buffer].title
            message = f"{task.title} {touch.how} {title}, which it declares as an input"
            notes = (task.submitted(),)
            help = "declare it as inout: later readers do not wait for this task"
            yield Diagnostic("PTO-G105", message, touch.op.loc, "error", notes, help)


def needless(graph: Graph, touches: Touches) -> list[tuple[int, int]]:
    """Edges between tasks that share no byte of which one is changed, and no other path needs."""
    edges: list[tuple[int, int]] = []
    for (before, after), edge in graph.edges.items():
        if edge.reason is Reason.CREATES or before not in touches or after not in touches:
            continue
        if not _meet(touches[before], touches[after]):
            edges.append((before, after))
    return edges


def _meet(a: Sequence[TaskUse], b: Sequence[TaskUse]) -> bool:
    return any(
        x.buffer == y.buffer and not x.how == y.how == "reads" and meet(x.bytes, y.bytes)
        for x in a
        for y in b
    )
