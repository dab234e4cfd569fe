"""The arrays of a launch as they travel: stretches of host memory, each once, in one address space.

Arrays that overlap on the host are one stretch, so that they overlap on a worker too. Addresses
here count through all stretches, with gaps between them: what a worker has touched means the same
to the host and to every other worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from pto.cluster.atomics import Accumulator, accumulators
from pto.cluster.intervals import NOTHING, Bytes, Intervals
from pto.core.memory import aligned_bytes
from pto.run.jit.border.context import TOUCH
from pto.run.jit.border.threads import Words
from pto.run.launch.arrays import over
from pto.run.launch.prepared import Grid, memories_of

_PAGE = 1 << 12


@dataclass(frozen=True, slots=True)
class Placed:
    """An argument that is an array: where it lies in which stretch, and what it looks like."""

    stretch: int
    offset: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]

    def of(self, data: Bytes) -> Any:
        nbytes = self.kind.itemsize * int(np.prod(self.shape, dtype=np.int64))
        return data[self.offset : self.offset + nbytes].view(self.kind).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Cargo:
    """All but the bytes."""

    arguments: tuple[Any, ...]  # scalars, and where arrays lie
    sizes: tuple[int, ...]  # bytes of each stretch
    written: tuple[bool, ...]  # whether a kernel may write to it
    kept: Mapping[int, Accumulator]  # stretches that are only combined with

    @property
    def starts(self) -> list[int]:
        """Where each stretch begins in the one address space."""
        return list(accumulate((size + _PAGE for size in self.sizes), initial=0))[:-1]

    def plain(self, data: Sequence[Bytes]) -> list[Any]:
        """The arguments of a launch, laid over these bytes."""
        return [a.of(data[a.stretch]) if isinstance(a, Placed) else a for a in self.arguments]

    def own(self, shared: Sequence[Bytes]) -> list[Bytes]:
        """Bytes for one worker to work on: its own where a kernel writes, else the shared ones."""
        found: list[Bytes] = []
        for n, (data, written) in enumerate(zip(shared, self.written, strict=True)):
            if not written:
                found.append(over(data.ctypes.data, data.nbytes, np.dtype(np.uint8)))
                continue
            copy = aligned_bytes(data.nbytes)
            if n in self.kept:
                self.kept[n].clear(copy)
            else:
                copy[:] = data
            found.append(copy)
        return found

    def touched(self, words: Words, data: Sequence[Bytes]) -> tuple[Intervals, Intervals]:
        """What was read and what was written, of uses by machine address, one line a row."""
        if not len(words):
            return NOTHING, NOTHING
        rows = words[:, 2]
        which = np.repeat(np.arange(len(words)), rows)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows)
        low = words[which, 1] + nth * words[which, 4]
        bases = np.array([d.ctypes.data for d in data], np.int64)
        order = np.argsort(bases)
        stretch = order[np.searchsorted(bases[order], low, side="right") - 1]
        low = low - bases[stretch] + np.array(self.starts, np.int64)[stretch]
        found = np.stack([low, low + words[which, 3]], axis=1)
        writes = words[which, 0] < 0
        return found[~writes], found[writes]


def load(grid: Grid) -> tuple[Cargo, list[Bytes]]:
    """What a launch takes with it, and the host's memory of each stretch."""
    arrays = [a for a in grid.given if isinstance(a, np.ndarray)]
    spans = _stretches((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays)
    placed = [_placed(a, spans) if isinstance(a, np.ndarray) else a for a in grid.given]
    written = {m.data.ctypes.data for m in memories_of(grid.kernel.written(grid.values))}
    cargo = Cargo(
        tuple(placed),
        tuple(high - low for low, high in spans),
        tuple(any(low <= at < high for at in written) for low, high in spans),
        _kept(grid, placed),
    )
    return cargo, [over(low, high - low, np.dtype(np.uint8)) for low, high in spans]


def no_uses() -> Words:
    return np.empty((0, TOUCH), np.int64)


def _stretches(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if out and low < out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        elif high > low:
            out.append((low, high))
    return out


def _placed(array: Any, spans: Sequence[tuple[int, int]]) -> Placed:
    at = array.ctypes.data
    holder = (n for n, (low, high) in enumerate(spans) if low <= at < high)
    number = next(holder, 0)  # an empty array lies anywhere
    offset = at - spans[number][0] if array.nbytes else 0
    return Placed(number, offset, array.shape, array.dtype)


def _kept(grid: Grid, placed: Sequence[Any]) -> dict[int, Accumulator]:
    """Stretches with one array that is only combined with."""
    found = accumulators(grid.kernel)
    pairs = list(zip(grid.kernel.parameters, placed, strict=True))
    users = [p.stretch for _, p in pairs if isinstance(p, Placed)]
    return {
        p.stretch: found[name]
        for name, p in pairs
        if isinstance(p, Placed) and name in found and users.count(p.stretch) == 1
    }
