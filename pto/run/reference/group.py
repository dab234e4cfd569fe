"""Work items that are at the same instruction, and their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.isa.meaning.simt.items import ActiveItems, Ints, Pointers

Frame = dict[int, Any]  # by id of a value


class ItemGroup(ActiveItems):
    """Items at the same instruction of a program, with their part of the values of all items."""

    __slots__ = ()

    def of(self, active: Ints) -> ItemGroup:
        return ItemGroup(self.core, self.size, active, self.watch, ticks=self.ticks)

    def look(self) -> None:
        """Check the time limit; loops call this."""
        if self.core.cluster.limit is not None:
            self.core.cluster.limit.look(self.core.name)

    def taken(self, value: Any) -> Any:
        """The active items' part of a value."""
        if isinstance(value, Pointers):
            return Pointers(value.memory, value.addresses[self.active], value.dtype)
        if isinstance(value, np.ndarray):
            return value[self.active]
        return value

    def put(self, frame: Frame, to: object, value: Any) -> None:
        frame[id(to)] = self.spread(value)

    def spread(self, value: Any) -> Any:
        """The active items' values at their positions among all items."""
        if isinstance(value, Pointers):
            return Pointers(value.memory, self.spread(value.addresses), value.dtype)
        if not isinstance(value, np.ndarray):
            return value
        if self.active.size == self.size.items:
            return value
        full = np.zeros((self.size.items, *value.shape[1:]), value.dtype)
        full[self.active] = value
        return full

    def merged(self, old: Any, new: Any) -> Any:
        """The new value of active items, the old value of the rest."""
        if isinstance(new, Pointers) and isinstance(old, Pointers):
            if new.memory is not old.memory:
                raise fail("PTO-M116", "work items point into different memories")
            return Pointers(new.memory, self.merged(old.addresses, new.addresses), new.dtype)
        if not isinstance(new, np.ndarray) or not isinstance(old, np.ndarray):
            return new
        full = old.copy()
        full[self.active] = new[self.active]
        return full
