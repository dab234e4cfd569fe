"""Capacities of a runtime: task slots, heap bytes and tensor map entries, by scope depth.

A task keeps its slot and the buffers it creates until the scope it was submitted in has ended.
Slots are released in order. An orchestration that needs a slot while the oldest one belongs to an
open scope waits for ever.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pto.core.errors import Diagnostic, Note, fail
from pto.graphs.model import Graph, GraphBuffer, Task, TaskArg, Use

_OUTPUT = 1024  # bytes that each created buffer is rounded up to


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """Capacities of a runtime, one number for each ring."""

    name: str  # of the runtime
    window: tuple[int, ...]  # task slots; one of them stays free
    heap: tuple[int, ...]  # bytes of created buffers
    entries: int  # of the tensor map
    reclaims: bool  # slots are used again while the graph runs
    fanin: int = 1 << 31  # edges into one task

    def with_settings(self, settings: Mapping[str, Any]) -> RuntimeLimits:
        """The limits of one case: `ring_task_window` and `ring_heap`, of all rings or of each."""
        window = _chosen(self.window, settings.get("ring_task_window", 0))
        heap = _chosen(self.heap, settings.get("ring_heap", 0))
        return replace(self, window=window, heap=heap)


# Defaults of simpler (2026-08-22): runtime/pto_runtime2_types.h of each runtime, a2a3 and a5 alike;
# docs/RUNTIME_LOGIC.md 4.5 and docs/MULTI_RING.md 7 say when an allocation can never succeed.
RUNTIMES = {
    "tensormap_and_ringbuffer": RuntimeLimits(
        "tensormap_and_ringbuffer", (16384,) * 4, (256 << 20,) * 4, 65536, True
    ),
    "host_build_graph": RuntimeLimits(
        "host_build_graph", (16384,), (256 << 20,), 65536, False, 128
    ),
}

UNLIMITED = RuntimeLimits("python", (1 << 62,), (1 << 62,), 1 << 62, False)


def limits_of(runtime: str, settings: Mapping[str, Any]) -> RuntimeLimits:
    limits = RUNTIMES.get(runtime)
    if limits is None:
        raise fail("PTO-U321", f"the limits of the runtime {runtime!r} are not known")
    return limits.with_settings(settings)


def _chosen(defaults: tuple[int, ...], setting: int | Sequence[int]) -> tuple[int, ...]:
    values = (setting,) * len(defaults) if isinstance(setting, int) else setting
    return tuple(n or default for n, default in zip(values, defaults, strict=False))


@dataclass(slots=True)
class TaskRing:
    """One ring while an orchestration runs; sums count from the first task of the graph."""

    scopes: list[int] = field(default_factory=list[int])  # of the tasks so far
    bytes: list[int] = field(default_factory=lambda: [0])  # sums of created buffers
    entries: list[int] = field(default_factory=lambda: [0])
    first: int = 0  # the oldest task that an open scope holds

    def add(self, scope: int, nbytes: int, entries: int) -> None:
        self.scopes.append(scope)
        self.bytes.append(self.bytes[-1] + nbytes)
        self.entries.append(self.entries[-1] + entries)

    @property
    def held(self) -> tuple[int, int, int]:
        """Slots, bytes and entries that cannot be given back now."""
        slots = len(self.scopes) - self.first
        nbytes = self.bytes[-1] - self.bytes[self.first]
        return slots, nbytes, self.entries[-1] - self.entries[self.first]


@dataclass(slots=True)
class Usage:
    """The most that a graph certainly needs at one time, and what is wrong with it."""

    slots: int = 0
    bytes: int = 0
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])


def _released(
    graph: Graph, limits: RuntimeLimits, rings: Sequence[TaskRing]
) -> Iterator[Diagnostic]:
    """Tensors used by tasks that were submitted after the scope of the tensor had ended.

    Memory comes from a ring: it has another owner once the ring has gone round.
    """
    depths = _depths(graph)
    alike: dict[object, list[tuple[Task, int, GraphBuffer]]] = defaultdict(list)
    for task in graph.tasks if limits.reclaims else ():
        for n, argument in enumerate(task.arguments):
            buffer = graph.buffers[argument.region.buffer]
            end = graph.scopes[buffer.scope].end
            if buffer.creator is not None and end is not None and task.number >= end:
                alike[graph.tasks[buffer.creator].loc].append((task, n, buffer))
    for uses in alike.values():
        task, n, buffer = uses[0]
        assert buffer.creator is not None
        creator = graph.tasks[buffer.creator]
        number = min(depths[buffer.scope], len(rings) - 1)
        total, capacity = rings[number].bytes[-1], limits.heap[number]
        others = f" ({len(uses)} such arguments)" if len(uses) > 1 else ""
        message = (
            f"argument {n} of {task.title} is {buffer.title} after the end of its scope{others}:"
            f" the runtime reuses its memory after {capacity:,} bytes, and the graph creates"
            f" {total:,}"
        )
        notes = (Note(f"{creator.title} creates it in the scope", creator.loc),)
        severity = "error" if total > capacity else "warning"
        yield Diagnostic("PTO-G104", message, task.loc, severity, notes)


def usage(graph: Graph, limits: RuntimeLimits) -> Usage:
    """Follow the allocations of a graph. A request that can never be granted is a finding."""
    used = Usage()
    rings = [TaskRing() for _ in limits.window]
    depths = _depths(graph)
    reported: set[str] = set()
    fanin = Counter(after for _, after in graph.edges)
    for task in graph.tasks:
        number = min(depths[task.scope], len(rings) - 1)
        ring = rings[number]
        for ring_of in rings if limits.reclaims else ():
            _reclaim(graph, ring_of, task.number)
        created = sum(_rounded(graph, a.region.buffer) for a in task.arguments if a.use is Use.OUT)
        ring.add(task.scope, created, sum(_enters(task, a) for a in task.arguments))
        slots, nbytes, _ = ring.held
        used.slots, used.bytes = max(used.slots, slots), max(used.bytes, nbytes)
        for resource, have, need in (
            (f"task slots of ring {number}", limits.window[number] - 1, slots),
            (f"bytes of heap {number}", limits.heap[number], nbytes),
            ("entries of the tensor map", limits.entries, sum(r.held[2] for r in rings)),
            ("edges into one task", limits.fanin, fanin[task.number]),
        ):
            if need > have and resource not in reported:
                reported.add(resource)
                used.findings.append(_exhausted(task, resource, have, need, limits))
    used.findings += _released(graph, limits, rings)
    return used


def _exhausted(
    task: Task, resource: str, have: int, need: int, limits: RuntimeLimits
) -> Diagnostic:
    message = f"{task.title} needs {need:,} {resource}, and the runtime has {have:,}"
    if limits.reclaims:
        message += ": open scopes hold the others, so the orchestration waits for ever"
    help = f"end scopes earlier, or change the sizes of the rings (limits of {limits.name})"
    return Diagnostic("PTO-G006", message, task.loc, "error", (), help)


def _reclaim(graph: Graph, ring: TaskRing, now: int) -> None:
    """Release the oldest slots with scopes that had ended before task `now`."""
    while ring.first < len(ring.scopes):
        end = graph.scopes[ring.scopes[ring.first]].end
        if end is None or end > now:
            return
        ring.first += 1


def _depths(graph: Graph) -> list[int]:
    depths: list[int] = []
    for scope in graph.scopes:
        depths.append(0 if scope.parent is None else depths[scope.parent] + 1)
    return depths


def _rounded(graph: Graph, buffer: int) -> int:
    return -(-graph.buffers[buffer].nbytes // _OUTPUT) * _OUTPUT


def _enters(task: Task, argument: TaskArg) -> bool:
    """True if an argument takes an entry of the tensor map."""
    writes = argument.use in (Use.INOUT, Use.OVERWRITE)
    return writes and argument.tracked and not task.is_manual
