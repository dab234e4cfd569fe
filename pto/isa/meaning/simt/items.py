"""The work items of a launch that are active at an instruction, as its meaning sees them."""

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
    """How many work items there are in each direction."""

    x: int
    y: int
    z: int

    @property
    def items(self) -> int:
        return self.x * self.y * self.z


class Kept:
    """What entries leave to later ones, a value for each work item, by slot: its bits."""

    def __init__(self) -> None:
        self.counts = np.zeros(SLOTS, np.int64)  # of the work items that kept it; 0: nobody has
        self.values = np.zeros((SLOTS, MAX_ITEMS), np.uint64)


class Items(Protocol):
    """The words that meanings of work items are written in, for those that are active. Values are
    lanes, an entry for each item, of a packed value an entry for each of its elements. The compiled
    engine has the same words (`run/jit/emit/simt/warp.py`), where nobody knows values yet."""

    @property
    def core(self) -> Machine: ...
    @property
    def size(self) -> Size: ...
    @property
    def active(self) -> Any:
        """Their numbers: x + dimX * (y + dimY * z)."""
        ...

    def clock(self) -> Any:
        """How many instructions the launch has done: a clock that never stands still."""
        ...

    def meet(self) -> None:
        """All items come here before one goes on."""
        ...

    def everywhere(self, value: Any) -> Values:
        """A number, or one for each item, as a value of each."""
        ...

    def ballot(self, pred: Values) -> Values:
        """One bit for each lane of the own warp in which pred holds."""
        ...

    def from_lane(self, value: Values, lane: Values) -> Values:
        """The value of a lane of the own warp; the own one where that lane is not active."""
        ...

    def folded(self, fn: Callable[[Any, Any], Any], value: Values) -> Values:
        """Lanes n and n + 16, n + 8, .. of the own warp are combined by fn; one that is not active
        counts as its neutral element."""
        ...

    def load(self, at: Pointers, type: t.Type) -> Values: ...
    def store(self, at: Pointers, value: Values, type: t.Type) -> None: ...
    def update(
        self, at: Pointers, new: Callable[..., Values], given: Sequence[Values], see: Element
    ) -> Values:
        """old = memory; memory = new(old, *given), one item after the other; gives old."""
        ...

    def keep(self, slot: int, payload: Values) -> None: ...
    def resume(self, slot: int, type: t.Type) -> Values: ...
    def reinterpret(self, value: Values, type: t.Type) -> Values:
        """The same bits, of one number or of a few side by side."""
        ...

    def element(self, packed: Values, index: Values) -> Values:
        """Of an index that no element has, LLVM promises no value: the first one."""
        ...


@dataclass(frozen=True, slots=True)
class Element:
    """What lies in memory: so many numbers of a type."""

    kind: np.dtype[Any]
    count: int

    @property
    def nbytes(self) -> int:
        return self.kind.itemsize * self.count


def held(type: t.Type | None) -> Element:
    """What a value is made of, as memory has it."""
    if isinstance(type, t.Vector):
        return Element(held(type.elem).kind, int(np.prod(type.shape)))
    if not isinstance(type, t.Scalar) or type.dtype is None:
        raise fail("PTO-T193", "a work item loads and stores elements")
    return Element(np.dtype(np.uint8) if type.dtype.bits == 1 else type.dtype.numpy, 1)


def lanes(items: Items) -> Any:
    return items.active % WARP
