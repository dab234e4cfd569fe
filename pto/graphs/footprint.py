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

from pto.core.intervals import Intervals, merged
from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.observe.memory.atomic import combination
from pto.observe.memory.granules import cells_of
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.memory import WatchedMemory

SMALL = 1 << 16  # bytes of a buffer that scalar code may go through
COMPARED = 1 << 24  # bytes of an output that is compared with what it was before a task
How = Literal["reads", "writes", "accumulates into"]


@dataclass(frozen=True, slots=True)
class TaskUse:
    """The accesses of one operation of a task to one buffer."""

    buffer: int
    how: How
    op: Operation
    bytes: Intervals


@dataclass(slots=True)
class TaskFootprint(Observer):
    """Collects the touches of one launch."""

    _parts: dict[tuple[int, How, int], list[Intervals]] = field(
        default_factory=lambda: defaultdict[tuple[int, How, int], list[Intervals]](list)
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
            self._parts[memory, how, id(op)].append(
                np.stack([starts, starts + cells.width], axis=1)
            )

    def take(
        self, locate: Callable[[WatchedMemory, Intervals], tuple[int, Intervals]]
    ) -> list[TaskUse]:
        """Everything seen; `locate` gives the buffer of a memory, and bytes of it in the buffer."""
        uses: list[TaskUse] = []
        for (memory, how, op), parts in self._parts.items():
            buffer, touched = locate(self._memories[memory], merged(parts))
            uses.append(TaskUse(buffer, how, self._ops[op], touched))
        return uses
