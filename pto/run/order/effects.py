"""What one execution of a synchronising operation does to the order of things.

Kinds are those of `isa/row/order.py`, here with the values of a run; `resolve.py` makes them. Which
counters between cores change is seen from the meaning itself, through a `Tally`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

from pto.isa.row.flag import Flag

# What a key of `Meet` begins with: all cores meet, or all ranks, whatever launches they are in.
ALL_CORES = "syncall"
RANKS = "collective"
INNER = -1  # the id of a flag that an instruction sets and waits for by itself


@dataclass(frozen=True, slots=True)
class SetFlag:
    flag: Flag  # as it is called
    key: Flag  # as the profile knows it


@dataclass(frozen=True, slots=True)
class WaitFlag:
    flag: Flag
    key: Flag


@dataclass(frozen=True, slots=True)
class Barrier:
    """Of one pipe, or of ALL."""

    pipe: str


@dataclass(frozen=True, slots=True)
class MemoryBarrier:
    """Inside a vector scope: earlier accesses of one class before later ones of another."""

    kind: str


@dataclass(frozen=True, slots=True)
class Acquire:
    id: int
    waits: bool


@dataclass(frozen=True, slots=True)
class Release:
    id: int
    of_all: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """Beside its work: what an operation on the accumulator waits for, `full` of a transfer, `free`
    of a product, and what it tells when it is done."""

    waits: Literal["full", "free"]
    tells: Literal["full", "free", ""]


@dataclass(frozen=True, slots=True)
class Send:
    """Signals to agents of this core, and arrivals where all cores meet: (who, which round)."""

    signals: tuple[Any, ...]
    arrivals: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Hear:
    """Signals that are taken, and meetings that are passed: (meeting, which round)."""

    signals: tuple[Any, ...]
    meetings: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Meet:
    """A slot of a queue between the cube and the vector side, or a round in which all cores, or all
    ranks, come together: `quorum` of them, where all have to come before one goes on."""

    joins: tuple[Any, ...]
    publishes: tuple[Any, ...]
    quorum: int = 0

    @property
    def is_of_all_cores(self) -> bool:
        return any(key[0] == ALL_CORES for key in (*self.joins, *self.publishes))


@dataclass(frozen=True, slots=True)
class Notify:
    """A word in global memory gets a value: all of it, or `added` to what others have told."""

    word: tuple[Any, ...]
    value: int
    added: int | None


@dataclass(frozen=True, slots=True)
class Await:
    """Words in global memory are seen to be as asked."""

    words: tuple[tuple[Any, ...], ...]
    is_met: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Flush:
    """Lines of the data cache are written back and dropped: the one at an address of the host's
    memory, or all."""

    address: int | None


@dataclass(frozen=True, slots=True)
class Publish:
    """What the scalar unit has waited for is visible to other ranks."""


Within = SetFlag | WaitFlag | Barrier | MemoryBarrier | Acquire | Release
Effect = Within | Send | Hear | Meet | Notify | Await | Flush | Publish


class Tally(MutableMapping[Any, int]):
    """Counters that remember what changed."""

    def __init__(self, inner: MutableMapping[Any, int]) -> None:
        self.inner = inner
        self.changes: list[tuple[Any, int, int]] = []

    def __getitem__(self, key: Any) -> int:
        return self.inner[key]

    def __setitem__(self, key: Any, value: int) -> None:
        self.changes.append((key, self.inner[key], value))
        self.inner[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.inner[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def take(self) -> list[tuple[Any, int, int]]:
        found, self.changes = self.changes, []
        return found


class AlwaysSet(dict[Any, int]):
    """Flags for a run in which an observer keeps them: no wait fails in program order."""

    def __missing__(self, key: Any) -> int:
        return 1

    def __setitem__(self, key: Any, value: int) -> None:
        return
