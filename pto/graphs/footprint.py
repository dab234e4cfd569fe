"""The bytes of global memory that a task reads, writes and accumulates into, exactly.

An observer of the task's run collects them by operation. Scalar code of a C++ kernel that
dereferences a pointer itself runs natively and is not seen here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.observe.memory.atomic import combination
from pto.observe.memory.granules import cells_of
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import WatchedMemory

Ints = npt.NDArray[np.int64]
How = Literal["reads", "writes", "accumulates into"]


@dataclass(frozen=True, slots=True)
class Bytes:
    """Disjoint intervals of bytes in order: `starts[i] <= byte < ends[i]`."""

    starts: Ints
    ends: Ints

    @property
    def span(self) -> tuple[int, int]:
        return int(self.starts[0]), int(self.ends[-1])

    @property
    def count(self) -> int:
        return int((self.ends - self.starts).sum())

    def common(self, other: Bytes) -> Bytes:
        """The bytes in both."""
        first = np.searchsorted(other.ends, self.starts, side="right")
        last = np.searchsorted(other.starts, self.ends, side="left")
        counts = np.maximum(last - first, 0)
        if not counts.any():
            return Bytes(np.zeros(0, np.int64), np.zeros(0, np.int64))
        mine = np.repeat(np.arange(len(self.starts)), counts)
        offsets = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
        theirs = np.repeat(first, counts) + offsets
        return Bytes(
            np.maximum(self.starts[mine], other.starts[theirs]),
            np.minimum(self.ends[mine], other.ends[theirs]),
        )

    def without(self, other: Bytes) -> Bytes:
        """The bytes that are not in `other`."""
        high = 1 << 62
        gaps = Bytes(
            np.concatenate([np.array([-1], np.int64), other.ends]),
            np.concatenate([other.starts, np.array([high], np.int64)]),
        )
        keep = gaps.ends > gaps.starts
        return self.common(Bytes(gaps.starts[keep], gaps.ends[keep]))


NONE = Bytes(np.zeros(0, np.int64), np.zeros(0, np.int64))


def merged(starts: Ints, ends: Ints) -> Bytes:
    """Intervals in any order as disjoint ones."""
    if not len(starts):
        return NONE
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    fresh = np.concatenate([[True], starts[1:] > ends[:-1]])
    firsts = np.flatnonzero(fresh)
    lasts = np.concatenate([firsts[1:], [len(starts)]]) - 1
    return Bytes(starts[firsts], ends[lasts])


def union(parts: list[Bytes]) -> Bytes:
    if not parts:
        return NONE
    return merged(
        np.concatenate([p.starts for p in parts]), np.concatenate([p.ends for p in parts])
    )


@dataclass(frozen=True, slots=True)
class TaskUse:
    """The accesses of one operation of a task to one buffer."""

    buffer: int
    how: How
    op: Operation
    bytes: Bytes


@dataclass(slots=True)
class TaskFootprint(Observer):
    """Collects the touches of one launch."""

    _parts: dict[tuple[int, How, int], list[tuple[Ints, Ints]]] = field(
        default_factory=lambda: defaultdict[tuple[int, How, int], list[tuple[Ints, Ints]]](list)
    )
    _ops: dict[int, Operation] = field(default_factory=dict[int, Operation])
    _memories: dict[int, WatchedMemory] = field(default_factory=dict[int, WatchedMemory])

    def event(self, event: InstructionEvent) -> None:
        touched = [a for a in event.accesses if a.memory.space is Space.GM]
        if not touched:
            return
        op = event.op
        written = {id(a.memory) for a in touched if a.writes}
        is_atomic = bool(written) and combination(op, event.core) != op.name
        for access in touched:
            memory = id(access.memory)
            if is_atomic and not access.writes and memory in written:
                continue  # the read of an atomic update
            cells = cells_of(access)
            starts = cells.starts()
            if not len(starts):
                continue
            how: How = "reads"
            if access.writes:
                how = "accumulates into" if is_atomic else "writes"
            self._ops[id(op)], self._memories[memory] = op, access.memory
            self._parts[memory, how, id(op)].append((starts, starts + cells.width))

    def take(self, locate: Callable[[WatchedMemory], tuple[int, int]]) -> list[TaskUse]:
        """Everything seen; `locate` gives the buffer of a memory and the offset it begins at."""
        found: list[TaskUse] = []
        for (memory, how, op), parts in self._parts.items():
            buffer, offset = locate(self._memories[memory])
            starts = np.concatenate([p[0] for p in parts]) + offset
            ends = np.concatenate([p[1] for p in parts]) + offset
            found.append(TaskUse(buffer, how, self._ops[op], merged(starts, ends)))
        return found
