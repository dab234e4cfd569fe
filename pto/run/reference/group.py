"""Work items that are at the same place of a program, and what they have of each value."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.ir.graph import Operation
from pto.isa.meaning.simt.items import Ints, Pointers, Size, Values
from pto.run.machine.core import Core

Frame = dict[int, Any]  # by id of a value


@dataclass(slots=True)
class Group:
    """Items that are at the same place of the program; `Items` of the meanings."""

    core: Core
    size: Size
    active: Ints
    kept: MutableMapping[int, Values] = field(default_factory=dict[int, Values])
    watch: Any = None  # a `Conflicts`, where somebody looks for them
    op: Operation | None = None
    ticks: list[int] = field(default_factory=lambda: [0])  # of the whole launch

    def of(self, active: Ints) -> Group:
        return Group(self.core, self.size, active, self.kept, self.watch, ticks=self.ticks)

    def clock(self) -> int:
        return self.ticks[0]

    def meet(self) -> None:
        missing = self.size.items - self.active.size
        if missing:
            raise fail(
                "PTO-D115",
                f"{self.active.size} of {self.size.items} work items come to this barrier:"
                f" {missing} took another way",
            )
        if self.watch is not None:
            self.watch.meet()

    def touches(self, at: Pointers, nbytes: int, *, writes: bool, atomic: bool = False) -> None:
        if self.watch is not None:
            self.watch.touch(self, at, nbytes, writes, atomic)

    def look(self) -> None:
        """Loops let a limit of time be noticed."""
        if self.core.cluster.limit is not None:
            self.core.cluster.limit.look(self.core.name)

    # ---- values of all items, and of the active ones

    def taken(self, value: Any) -> Any:
        """A value as the active items see it."""
        if isinstance(value, Pointers):
            return Pointers(value.memory, value.addresses[self.active], value.dtype)
        if isinstance(value, np.ndarray):
            return value[self.active]
        return value

    def put(self, frame: Frame, to: object, found: Any) -> None:
        frame[id(to)] = self.spread(found)

    def spread(self, found: Any) -> Any:
        """What the active items found, at their places among all."""
        if isinstance(found, Pointers):
            return Pointers(found.memory, self.spread(found.addresses), found.dtype)
        if not isinstance(found, np.ndarray):
            return found
        if self.active.size == self.size.items:
            return found
        full = np.zeros((self.size.items, *found.shape[1:]), found.dtype)
        full[self.active] = found
        return full

    def merged(self, old: Any, new: Any) -> Any:
        """The new value where items are active, else the old one."""
        if isinstance(new, Pointers) and isinstance(old, Pointers):
            if new.memory is not old.memory:
                raise fail("PTO-M116", "work items point into different memories")
            return Pointers(new.memory, self.merged(old.addresses, new.addresses), new.dtype)
        if not isinstance(new, np.ndarray) or not isinstance(old, np.ndarray):
            return new
        full = old.copy()
        full[self.active] = new[self.active]
        return full
