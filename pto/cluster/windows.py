"""Global memory of all ranks as one worker holds it: its own, and copies of shared memory.

Between two rounds workers exchange the bytes they have changed. Additions to memory (signals,
`tput` with `atomic_add`) are sent as additions, so that those of several workers add up. All
workers apply them in the same order, and so get the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import dtype
from pto.core.global_layout import Shape5
from pto.core.global_tensor import GlobalTensor
from pto.core.intervals import NOTHING, Bytes, Intervals, gather, merged, scatter
from pto.core.memory import Memory, Space
from pto.isa.meaning import lanes

_CHUNK = 1 << 12  # bytes that are compared at once
_WORD = 4
_PIECE = np.dtype(np.uint64)


@dataclass(frozen=True, slots=True)
class RankWindow:
    """An array in the global memory of a rank, identified by its address."""

    base: int
    size: int
    rank: int
    heap: bool
    users: frozenset[int]  # ranks that can access it


@dataclass(frozen=True, slots=True)
class Added:
    """Values that were added to elements of a window."""

    base: int
    address: int
    shape: Shape5
    strides: Shape5
    element: str
    values: npt.NDArray[Any]

    def view(self, data: Bytes) -> npt.NDArray[Any]:
        memory = Memory.over(Space.GM, data)
        kind = dtype(self.element)
        return GlobalTensor(memory, self.address, kind, self.shape, self.strides).as_array()

    def apply(self, data: Bytes) -> None:
        elements = self.view(data)
        elements[...] = lanes.add(elements, self.values)

    @property
    def where(self) -> tuple[int, int]:
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        start = self.base + self.address
        return start, start + (reach + 1) * dtype(self.element).itemsize


@dataclass(frozen=True, slots=True)
class Update:
    """The changes of one worker in a round."""

    changed: Mapping[int, tuple[Intervals, Bytes]]  # by window
    added: tuple[Added, ...]

    @property
    def nbytes(self) -> int:
        return sum(data.nbytes for _, data in self.changed.values()) + sum(
            addition.values.nbytes for addition in self.added
        )

    def plain(self) -> Intervals:
        return merged([where + base for base, (where, _) in self.changed.items()])

    def combined(self) -> Intervals:
        return merged(
            [np.array([addition.where for addition in self.added], np.int64).reshape(-1, 2)]
        )


class Memories:
    """The windows of a worker, and their contents at the end of the last round."""

    def __init__(self, windows: Sequence[RankWindow], data: Mapping[int, Bytes]) -> None:
        self._first = data  # shared by all workers, never written
        self.now = {base: np.array(contents) for base, contents in data.items()}
        shared = [w.base for w in windows if len(w.users) > 1 and w.base in data]
        self._before = {base: self.now[base].copy() for base in shared}

    def take(self, added: Sequence[tuple[GlobalTensor, npt.NDArray[Any]]]) -> Update:
        """The changes since the last round, to be sent to the other workers."""
        bases = {addition.ctypes.data: base for base, addition in self.now.items()}
        additions = [_added(bases[t.memory.data.ctypes.data], t, values) for t, values in added]
        combined = _together(additions)
        shared_sums: dict[int, list[Added]] = {}
        for addition in combined:
            if addition.base in self._before:
                shared_sums.setdefault(addition.base, []).append(addition)
        sums = [
            addition for base, mine in shared_sums.items() for addition in self._sums(base, mine)
        ]
        changed: dict[int, tuple[Intervals, Bytes]] = {}
        for base, before in self._before.items():
            now = self.now[base]
            where = differing(before, now)
            if len(where):
                changed[base] = where, gather(now, where)
                scatter(before, where, changed[base][1])
        return Update(changed, tuple(sums))

    def _sums(self, base: int, mine: list[Added]) -> list[Added]:
        """The additions to one window, undone here; empty if other writes came between them."""
        alone = self._before[base].copy()
        for addition in mine:
            addition.apply(alone)
        now = self.now[base]
        if any(addition.view(alone).tobytes() != addition.view(now).tobytes() for addition in mine):
            return []
        for addition in mine:
            addition.view(now)[...] = addition.view(self._before[base])
        return mine

    def give(self, updates: Sequence[Update], worker: int) -> None:
        """Apply the changes of all workers, in the order of the workers."""
        for number, update in enumerate(updates):
            for base, (where, data) in update.changed.items():
                if number != worker and base in self._before:
                    scatter(self.now[base], where, data)
                    scatter(self._before[base], where, data)
        for update in updates:
            for addition in update.added:
                if addition.base in self._before:
                    addition.apply(self.now[addition.base])
                    addition.view(self._before[addition.base])[...] = addition.view(
                        self.now[addition.base]
                    )

    def result(self, homes: Sequence[int]) -> dict[int, tuple[Intervals, Bytes]]:
        """The changes of these windows since the start."""
        changes = {base: differing(self._first[base], self.now[base]) for base in homes}
        return {
            b: (where, gather(self.now[b], where)) for b, where in changes.items() if len(where)
        }


def _added(base: int, target: GlobalTensor, values: npt.NDArray[Any]) -> Added:
    t = target
    return Added(base, t.address, t.shape, t.strides, t.dtype.name, values)


def _together(additions: Sequence[Added]) -> list[Added]:
    """Integers added to one element become one sum, since order does not matter; floats do not."""
    sums: dict[Any, Added] = {}
    for n, addition in enumerate(additions):
        target = addition.base, addition.address, addition.shape, addition.strides, addition.element
        key = (target, n) if dtype(addition.element).is_float else (target, 0)
        earlier = sums.get(key)
        if earlier is not None:
            addition = replace(earlier, values=lanes.add(earlier.values, addition.values))
        sums[key] = addition
    return list(sums.values())


def differing(a: Bytes, b: Bytes) -> Intervals:
    """The words of 4 bytes in which two arrays differ, compared in chunks, most of which are equal.

    Words keep a number together, since seldom all of its bytes change. Two workers that change
    different bytes of one word in a round therefore conflict, and the world runs in one process.
    """
    return merged([NOTHING, *_differences(a, b)])


def _differences(a: Bytes, b: Bytes) -> Iterator[Intervals]:
    full = len(a) // _CHUNK * _CHUNK
    odd = (a[:full].view(_PIECE) != b[:full].view(_PIECE)).nonzero()[0]
    starts = (np.unique(odd * 8 // _CHUNK) * _CHUNK).tolist()
    for start in [*starts, *([full] if full < len(a) else [])]:
        unlike = a[start : start + _CHUNK] != b[start : start + _CHUNK]
        words = np.logical_or.reduceat(unlike, np.arange(0, len(unlike), _WORD))
        edges = np.flatnonzero(np.diff(np.concatenate([[False], words, [False]]).astype(np.int8)))
        ranges = edges.reshape(-1, 2).astype(np.int64) * _WORD + start
        yield np.minimum(ranges, len(a))
