"""The effects of one executed synchronising operation on the order of operations.

The kinds are those of `isa/row/order.py`, here with run-time values; `resolve.py` makes them. A
`ChangeLog` records which counters between cores the semantics of the operation change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

from pto.isa.row.flag import Flag

# The first item of a key of `Rendezvous`: a barrier of all cores, or of all ranks in any launch.
ALL_CORES = "syncall"
RANKS = "collective"
INNER = -1  # the id of a flag that an instruction sets and waits for internally


@dataclass(frozen=True, slots=True)
class FlagSet:
    flag: Flag  # as written
    key: Flag  # as the profile maps it


@dataclass(frozen=True, slots=True)
class FlagWait:
    flag: Flag
    key: Flag


@dataclass(frozen=True, slots=True)
class PipeBarrier:
    """A barrier of one pipe, or of ALL."""

    pipe: str


@dataclass(frozen=True, slots=True)
class ScopeBarrier:
    """Inside a vector scope: earlier accesses of one class before later ones of another."""

    kind: str


@dataclass(frozen=True, slots=True)
class BufferAcquire:
    id: int
    waits: bool


@dataclass(frozen=True, slots=True)
class BufferRelease:
    id: int
    of_all: bool


@dataclass(frozen=True, slots=True)
class UnitFlag:
    """The unit flag of an operation on the accumulator: the state that it waits for (`full` for a
    transfer, `free` for a matmul) and the state that it sets when it is done, of which bytes."""

    waits: Literal["full", "free"]
    sets: Literal["full", "free", ""]
    start: int = 0
    end: int = 1 << 32  # the whole accumulator, where the bytes are not known

    def of(self, address: int, nbytes: int) -> UnitFlag:
        """The same of a tile."""
        return UnitFlag(self.waits, self.sets, address, address + nbytes)

    def follows(self, other: UnitFlag) -> bool:
        """True if it waits for the state that `other` sets."""
        return other.sets == self.waits and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class SignalSend:
    """Signals to agents of this core, and arrivals at barriers: (participant, round)."""

    signals: tuple[Any, ...]
    arrivals: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class SignalWait:
    """Signals that a wait consumes, and barriers that it passes: (barrier, round)."""

    signals: tuple[Any, ...]
    meetings: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A slot of a queue between the cube and the vector side, or a barrier of all cores or ranks.
    `quorum` is the number of arrivals that a barrier needs before an agent continues."""

    joins: tuple[Any, ...]
    publishes: tuple[Any, ...]
    quorum: int = 0

    @property
    def is_of_all_cores(self) -> bool:
        return any(key[0] == ALL_CORES for key in (*self.joins, *self.publishes))


@dataclass(frozen=True, slots=True)
class WordWrite:
    """A write to a word in global memory: `value` replaces it, or `added` is added to it."""

    word: tuple[Any, ...]
    value: int
    added: int | None


@dataclass(frozen=True, slots=True)
class WordWait:
    """Words in global memory that satisfy the condition of a wait."""

    words: tuple[tuple[Any, ...], ...]
    is_met: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class CacheFlush:
    """Write back and invalidate a line of the data cache, by host address, or all lines."""

    address: int | None


@dataclass(frozen=True, slots=True)
class RankPublish:
    """Make everything that the scalar unit has waited for visible to other ranks."""


Within = FlagSet | FlagWait | PipeBarrier | ScopeBarrier | BufferAcquire | BufferRelease
Between = SignalSend | SignalWait | Rendezvous | WordWrite | WordWait
Effect = Within | Between | CacheFlush | RankPublish


class ChangeLog(MutableMapping[Any, int]):
    """Counters that record their changes."""

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
        changes, self.changes = self.changes, []
        return changes


class AlwaysSet(dict[Any, int]):
    """Flags that the observer keeps: no wait fails in program order."""

    def __missing__(self, key: Any) -> int:
        return 1

    def __setitem__(self, key: Any, value: int) -> None:
        return
