"""Scratch space: earlier writes that filled scratch operands, which have undefined content.

Two unordered writes of one pipe lose data if one fills scratch space and the other a result. If
both fill scratch space, the library has barriers between its steps: such a pair is only a warning.
"""

from __future__ import annotations

from pto.core.memory import Space
from pto.observe.memory.granules import Conflict
from pto.run.watch.memory import Access


class WorkingSpace:
    """The bytes of local buffers that operations have used as scratch space."""

    def __init__(self) -> None:
        self._filled: dict[tuple[int, int], tuple[int, int]] = {}  # by thread and time

    def fill(self, thread: int, time: int, access: Access) -> None:
        self._filled[thread, time] = access.span()

    def costs_data(self, access: Access, conflict: Conflict) -> bool | None:
        """True if exactly one of two writes is a result; None if both are."""
        low, high = self._filled.get((conflict.thread, conflict.time), (0, 0))
        is_local = access.memory.space is not Space.GM
        was_scratch = is_local and low <= conflict.first < high
        return access.is_scratch is not was_scratch if access.is_scratch or was_scratch else None
