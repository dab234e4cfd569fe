"""The work items of a launch that are active at an instruction, as its meaning sees them."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType
from pto.core.memory import Memory
from pto.isa.meaning.machine import Machine

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


class Items(Protocol):
    """The active ones, by number: x + dimX * (y + dimY * z)."""

    @property
    def core(self) -> Machine: ...
    @property
    def size(self) -> Size: ...
    @property
    def active(self) -> Ints: ...
    @property
    def kept(self) -> MutableMapping[int, Values]:
        """What an entry leaves to the next, by slot; an array of all items."""
        ...

    def clock(self) -> int:
        """How many instructions the launch has done: a clock that never stands still."""
        ...

    def meet(self) -> None:
        """All items come here before one goes on."""
        ...

    def touches(self, at: Pointers, nbytes: int, *, writes: bool, atomic: bool = False) -> None:
        """Each active item touches so many bytes at its address."""
        ...


def lanes(items: Items) -> Ints:
    return items.active % WARP


def warps(items: Items) -> int:
    return -(-items.size.items // WARP)


def by_warp(items: Items, values: Values, rest: Any) -> Values:
    """Values at [warp, lane]; `rest` where no item is active."""
    grid = np.full((warps(items) * WARP, *values.shape[1:]), rest, values.dtype)
    grid[items.active] = values
    return grid.reshape(warps(items), WARP, *values.shape[1:])
