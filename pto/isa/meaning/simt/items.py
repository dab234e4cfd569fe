"""The active work items at an instruction: the interface for its meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.isa.meaning.lanes import neutral
from pto.isa.meaning.tile.indices import turns
from pto.isa.row import types as t
from pto.isa.rules.simt import MAX_ITEMS, SLOTS

WARP = 32  # lanes that vote, shuffle and reduce together
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pointers:
    """An address for each work item, all in one memory."""

    memory: Memory
    addresses: Ints
    dtype: DType | None


class Size(NamedTuple):
    """The number of work items in each dimension."""

    x: int
    y: int
    z: int

    @property
    def items(self) -> int:
        return self.x * self.y * self.z


class PersistentSlots:
    """Values that entries keep for later ones, per slot: the bits for each work item."""

    def __init__(self) -> None:
        # the number of work items that kept a value; 0: no value
        self.counts = np.zeros(SLOTS, np.int64)
        self.values = np.zeros((SLOTS, MAX_ITEMS), np.uint64)


@dataclass(frozen=True, slots=True)
class Element:
    """The layout of a value in memory: a number of elements of a type."""

    kind: np.dtype[Any]
    count: int

    @property
    def nbytes(self) -> int:
        return self.kind.itemsize * self.count


def held(type: t.Type | None) -> Element:
    """The elements of a value, as memory holds them."""
    if isinstance(type, t.Vector):
        return Element(held(type.elem).kind, int(np.prod(type.shape)))
    if not isinstance(type, t.Scalar) or type.dtype is None:
        raise fail("PTO-T193", "a work item loads and stores elements")
    return Element(np.dtype(np.uint8) if type.dtype.bits == 1 else type.dtype.numpy, 1)


@dataclass(slots=True)
class ActiveItems:
    """The active work items at an instruction: the interface for its meaning, on arrays.

    Values are lanes, one entry per item, or one per element of a packed value. The compiled engine
    implements the same interface (`run/jit/emit/simt/warp.py`) on symbolic values.
    """

    core: Any  # of the engine
    size: Size
    active: Ints  # the numbers of the active items: x + dimX * (y + dimY * z)
    watch: Any = None  # records conflicts, if the run checks for them
    op: Any = None  # the operation that they execute
    ticks: list[int] = field(default_factory=lambda: [0])  # for the whole launch

    def clock(self) -> int:
        """The number of instructions the launch has executed: a clock that always advances."""
        return self.ticks[0]

    def meet(self) -> None:
        """A barrier of all items."""
        missing = self.size.items - self.active.size
        if missing:
            raise fail(
                "PTO-D115",
                f"{self.active.size} of {self.size.items} work items reach this barrier:"
                f" {missing} took another branch",
            )
        if self.watch is not None:
            self.watch.meet()

    # ---- values of warps

    def everywhere(self, value: Any) -> Values:
        """A number, or one number per item, as a lane value."""
        return np.broadcast_to(np.asarray(value, np.int64), self.active.shape)

    def _by_warp(self, values: Values, rest: Any) -> Values:
        """Values at [warp, lane]; `rest` where no item is active."""
        warps = -(-self.size.items // WARP)
        grid = np.full((warps * WARP, *values.shape[1:]), rest, values.dtype)
        grid[self.active] = values
        return grid.reshape(warps, WARP, *values.shape[1:])

    def ballot(self, pred: Values) -> Values:
        """One bit for each lane of the warp in which pred holds."""
        bits = self._by_warp(pred.astype(np.bool_), False) << np.arange(WARP, dtype=np.int64)
        return bits.sum(1)[self.active // WARP]

    def from_lane(self, value: Values, lane: Values) -> Values:
        """The value of a lane of the same warp; an item's own value if that lane is not active."""
        other = self.active // WARP * WARP + lane
        at = np.minimum(np.searchsorted(self.active, other), self.active.size - 1)
        return value[np.where(self.active[at] == other, at, np.arange(at.size))]

    def folded(self, fn: Callable[[Any, Any], Any], value: Values) -> Values:
        """Combine lanes n and n + 16, n + 8, .. of a warp with fn.

        An inactive lane counts as its neutral element.
        """
        grid = self._by_warp(value, neutral(fn, value.dtype))
        while grid.shape[1] > 1:
            half = grid.shape[1] // 2
            grid = fn(grid[:, :half], grid[:, half:])
        return grid[:, 0][self.active // WARP]

    def reinterpret(self, value: Values, type: t.Type) -> Values:
        """The same bits as another type: one number, or several side by side."""
        wide = np.ascontiguousarray(value).reshape(len(value), -1)
        return _shaped(wide.view(held(type).kind), type)

    def element(self, packed: Values, index: Values) -> Values:
        """An element of a packed value.

        LLVM defines no value for an index out of range: here the first.
        """
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
        self, at: Pointers, new: Callable[..., Values], operands: Sequence[Values], see: Element
    ) -> Values:
        """old = memory; memory = new(old, *given), item by item in order; returns old.

        Items with different addresses are updated together.
        """
        places = self._places(at, see.nbytes, writes=True, atomic=True)
        old = np.zeros((len(places), see.count), see.kind)
        for batch in turns(at.addresses):
            before = np.ascontiguousarray(at.memory.data[places[batch]]).view(see.kind)
            now = [g[batch].reshape(len(batch), see.count).view(see.kind) for g in operands]
            after = np.ascontiguousarray(new(before, *now).astype(see.kind, copy=False))
            at.memory.data[places[batch]] = after.view(np.uint8)
            old[batch] = before
        previous = old.view(operands[0].dtype)
        return previous if operands[0].ndim > 1 else previous[:, 0]

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
        store, size = self.core.kept, self.size.items
        bits = np.ascontiguousarray(payload).view(f"u{payload.dtype.itemsize}")
        store.counts[slot] = size
        store.values[slot, :size] = 0
        store.values[slot, self.active] = bits

    def resume(self, slot: int, type: t.Type) -> Values:
        store = self.core.kept
        kind = held(type).kind
        size = self.size.items
        count = int(store.counts[slot])
        if count != size:
            was = f"a value of each of {count} work items" if count else "nothing"
            raise fail("PTO-V218", f"slot {slot} holds {was}; {size} work items resume it")
        bits = store.values[slot, self.active].astype(f"u{kind.itemsize}")
        return bits.view(kind)


def _shaped(values: Values, type: t.Type) -> Values:
    return values if isinstance(type, t.Vector) else values[:, 0]


def lanes(items: ActiveItems) -> Any:
    return items.active % WARP
