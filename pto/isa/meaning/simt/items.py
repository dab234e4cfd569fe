"""The active work items at an instruction: the interface for its meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.isa.meaning.machine import Machine
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


class Items(Protocol):
    """The interface for meanings of work items, for the active ones.

    Values are lanes, one entry per item, or one per element of a packed value. The compiled engine
    implements the same interface (`run/jit/emit/simt/warp.py`) on symbolic values.
    """

    @property
    def core(self) -> Machine: ...
    @property
    def size(self) -> Size: ...
    @property
    def active(self) -> Any:
        """The numbers of the active items: x + dimX * (y + dimY * z)."""
        ...

    def clock(self) -> Any:
        """The number of instructions the launch has executed: a clock that always advances."""
        ...

    def meet(self) -> None:
        """A barrier of all items."""
        ...

    def everywhere(self, value: Any) -> Values:
        """A number, or one number per item, as a lane value."""
        ...

    def ballot(self, pred: Values) -> Values:
        """One bit for each lane of the warp in which pred holds."""
        ...

    def from_lane(self, value: Values, lane: Values) -> Values:
        """The value of a lane of the same warp; an item's own value if that lane is not active."""
        ...

    def folded(self, fn: Callable[[Any, Any], Any], value: Values) -> Values:
        """Combine lanes n and n + 16, n + 8, ..

        Of a warp with fn; an inactive lane counts as its neutral element.
        """
        ...

    def load(self, at: Pointers, type: t.Type) -> Values: ...
    def store(self, at: Pointers, value: Values, type: t.Type) -> None: ...
    def update(
        self, at: Pointers, new: Callable[..., Values], given: Sequence[Values], see: Element
    ) -> Values:
        """old = memory; memory = new(old, *given), item by item in order; returns old."""
        ...

    def keep(self, slot: int, payload: Values) -> None: ...
    def resume(self, slot: int, type: t.Type) -> Values: ...
    def reinterpret(self, value: Values, type: t.Type) -> Values:
        """The same bits as another type: one number, or several side by side."""
        ...

    def element(self, packed: Values, index: Values) -> Values:
        """An element of a packed value.

        LLVM defines no value for an index out of range: here the first.
        """
        ...


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


def lanes(items: Items) -> Any:
    return items.active % WARP
