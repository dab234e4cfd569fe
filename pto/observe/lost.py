"""Two writes of one pipe to the same bytes, in either order: what one of them loses.

Programs rely on the later to win where transfers overlap in part. Where nothing of the earlier is
left, and it had other values, somebody's data is gone whichever comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pto.run.watch.events import Event, Observer
from pto.run.watch.memory import Access

Pair = tuple[int, int]  # operations by id: the earlier, the later


class Lost(Observer):
    """Compares what was overwritten with what took its place."""

    def __init__(self, pairs: Collection[Pair]) -> None:
        self._pairs = pairs
        self._first = {first for first, _ in pairs}
        self._kept: dict[tuple[int, int], list[tuple[Any, Any, Any]]] = {}
        self.harmful: set[Pair] = set()

    def event(self, event: Event) -> None:
        core, op = id(event.core), id(event.op)
        for first, second in self._pairs:
            kept = self._kept.get((core, first), ()) if second == op else ()
            if any((raw[places] != before).any() for raw, places, before in kept):
                self.harmful.add((first, second))
        if op in self._first:
            written = [a for a in event.accesses if a.writes]
            self._kept[core, op] = [_copied(access) for access in written]


def _copied(access: Access) -> tuple[Any, Any, Any]:
    places = (access.addresses()[:, None] + np.arange(access.width)).reshape(-1)
    return access.memory.raw, places, access.memory.raw[places]
