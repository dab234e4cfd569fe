"""Work items that are at the same instruction, and their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.ir.graph import Operation
from pto.isa.meaning.lanes import neutral
from pto.isa.meaning.simt.items import WARP, Element, Ints, Pointers, Size, Values, held
from pto.isa.meaning.tile.indices import turns
from pto.isa.row import types as t
from pto.run.machine.core import Core

Frame = dict[int, Any]  # by id of a value


@dataclass(slots=True)
class ItemGroup:
    """Items at the same instruction of a program: implements `Items` on arrays."""

    core: Core
    size: Size
    active: Ints
    watch: Any = None  # records conflicts, if the run checks for them
    op: Operation | None = None
    ticks: list[int] = field(default_factory=lambda: [0])  # for the whole launch

    def of(self, active: Ints) -> ItemGroup:
        return ItemGroup(self.core, self.size, active, self.watch, ticks=self.ticks)

    def clock(self) -> int:
        return self.ticks[0]

    def meet(self) -> None:
        missing = self.size.items - self.active.size
        if missing:
            raise fail(
                "PTO-D115",
                f"{self.active.size} of {self.size.items} work items reach this barrier:"
                f" {missing} took another branch",
            )
        if self.watch is not None:
            self.watch.meet()

    def look(self) -> None:
        """Check the time limit; loops call this."""
        if self.core.cluster.limit is not None:
            self.core.cluster.limit.look(self.core.name)

    # ---- values of warps

    def everywhere(self, value: Any) -> Values:
        return np.broadcast_to(np.asarray(value, np.int64), self.active.shape)

    def _by_warp(self, values: Values, rest: Any) -> Values:
        """Values at [warp, lane]; `rest` where no item is active."""
        warps = -(-self.size.items // WARP)
        grid = np.full((warps * WARP, *values.shape[1:]), rest, values.dtype)
        grid[self.active] = values
        return grid.reshape(warps, WARP, *values.shape[1:])

    def ballot(self, pred: Values) -> Values:
        bits = self._by_warp(pred.astype(np.bool_), False) << np.arange(WARP, dtype=np.int64)
        return bits.sum(1)[self.active // WARP]

    def from_lane(self, value: Values, lane: Values) -> Values:
        other = self.active // WARP * WARP + lane
        at = np.minimum(np.searchsorted(self.active, other), self.active.size - 1)
        return value[np.where(self.active[at] == other, at, np.arange(at.size))]

    def folded(self, fn: Callable[[Any, Any], Any], value: Values) -> Values:
        grid = self._by_warp(value, neutral(fn, value.dtype))
        while grid.shape[1] > 1:
            half = grid.shape[1] // 2
            grid = fn(grid[:, :half], grid[:, half:])
        return grid[:, 0][self.active // WARP]

    def reinterpret(self, value: Values, type: t.Type) -> Values:
        wide = np.ascontiguousarray(value).reshape(len(value), -1)
        return _shaped(wide.view(held(type).kind), type)

    def element(self, packed: Values, index: Values) -> Values:
        inside = (index >= 0) & (index < packed.shape[1])
        return packed[np.arange(len(packed)), np.where(inside, index, 0)]

    # ---- memory

    def load(self, at: Pointers, type: t.Type) -> Values:
        elem = held(type)
        places = self._places(at, elem.nbytes, writes=False)
        return _shaped(np.ascontiguousarray(at.memory.data[places]).view(elem.kind), type)

    def store(self, at: Pointers, value: Values, type: t.Type) -> None:
        elem = held(type)
        raw = np.ascontiguousarray(value.astype(elem.kind, copy=False)).view(np.uint8)
        raw = raw.reshape(len(value), elem.nbytes)
        places = self._places(at, elem.nbytes, writes=True, raw=raw)
        at.memory.data[places] = raw

    def update(
        self, at: Pointers, new: Callable[..., Values], given: Sequence[Values], see: Element
    ) -> Values:
        """Update items with different addresses together; those with equal addresses in order."""
        places = self._places(at, see.nbytes, writes=True, atomic=True)
        old = np.zeros((len(places), see.count), see.kind)
        for turn in turns(at.addresses):
            before = np.ascontiguousarray(at.memory.data[places[turn]]).view(see.kind)
            now = [g[turn].reshape(len(turn), see.count).view(see.kind) for g in given]
            after = np.ascontiguousarray(new(before, *now).astype(see.kind, copy=False))
            at.memory.data[places[turn]] = after.view(np.uint8)
            old[turn] = before
        found = old.view(given[0].dtype)
        return found if given[0].ndim > 1 else found[:, 0]

    def _places(
        self, at: Pointers, nbytes: int, *, writes: bool, atomic: bool = False, raw: Any = None
    ) -> Any:
        """Indices of the bytes that the items access, all in bounds. `raw`: the stored values."""
        first, size = at.addresses, at.memory.size
        bad = np.flatnonzero((first < 0) | (first + nbytes > size))
        if bad.size:
            raise fail(
                "PTO-M001",
                f"work item {int(self.active[bad[0]])}: {at.memory.space.value} address"
                f" {int(first[bad[0]]):#x} with {nbytes} bytes is outside the buffer of"
                f" {size} bytes",
            )
        crooked = np.flatnonzero(first % nbytes)
        if crooked.size:
            raise fail(
                "PTO-M002",
                f"work item {int(self.active[crooked[0]])}: {at.memory.space.value} address"
                f" {int(first[crooked[0]]):#x} is not a multiple of {nbytes} bytes",
            )
        if self.watch is not None:
            self.watch.touch(self, at, nbytes, writes, atomic, raw)
        return first[:, None] + np.arange(nbytes)

    # ---- values kept between entries

    def keep(self, slot: int, payload: Values) -> None:
        kept, size = self.core.kept, self.size.items
        bits = np.ascontiguousarray(payload).view(f"u{payload.dtype.itemsize}")
        kept.counts[slot] = size
        kept.values[slot, :size] = 0
        kept.values[slot, self.active] = bits

    def resume(self, slot: int, type: t.Type) -> Values:
        kept, kind, size = self.core.kept, held(type).kind, self.size.items
        count = int(kept.counts[slot])
        if count != size:
            was = f"a value of each of {count} work items" if count else "nothing"
            raise fail("PTO-V218", f"slot {slot} holds {was}; {size} work items resume it")
        bits = kept.values[slot, self.active].astype(f"u{kind.itemsize}")
        return bits.view(kind)

    # ---- values of all items, and of the active ones

    def taken(self, value: Any) -> Any:
        """The active items' part of a value."""
        if isinstance(value, Pointers):
            return Pointers(value.memory, value.addresses[self.active], value.dtype)
        if isinstance(value, np.ndarray):
            return value[self.active]
        return value

    def put(self, frame: Frame, to: object, found: Any) -> None:
        frame[id(to)] = self.spread(found)

    def spread(self, found: Any) -> Any:
        """The active items' values at their positions among all items."""
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


def _shaped(found: Values, type: t.Type) -> Values:
    return found if isinstance(type, t.Vector) else found[:, 0]
