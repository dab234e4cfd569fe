"""The arrays of a launch as they are sent: regions of host memory in one address space.

Arrays that overlap on the host are one region, so that they overlap on a worker too. Addresses
count through all regions, with gaps between them, so that an address means the same to the host and
to every worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from pto.cluster.atomics import Accumulator, accumulators
from pto.core.intervals import NOTHING, Bytes, Intervals, stretches
from pto.core.memory import aligned_bytes
from pto.run.jit.runtime.context import LOG_ENTRY, Words
from pto.run.launch.arrays import over
from pto.run.launch.prepared import LaunchGrid, memories_of

_PAGE = 1 << 12


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array argument: its region, its offset there, and its shape."""

    region: int
    offset: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]

    def of(self, data: Bytes) -> Any:
        nbytes = self.kind.itemsize * int(np.prod(self.shape, dtype=np.int64))
        return data[self.offset : self.offset + nbytes].view(self.kind).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Payload:
    """The arguments and regions of a launch, without the bytes."""

    arguments: tuple[Any, ...]  # scalars, and locations of arrays
    sizes: tuple[int, ...]  # bytes of each region
    written: tuple[bool, ...]  # whether the kernel may write to it
    kept: Mapping[int, Accumulator]  # regions that are only updated atomically

    @property
    def starts(self) -> list[int]:
        """The start of each region in the common address space."""
        return list(accumulate((size + _PAGE for size in self.sizes), initial=0))[:-1]

    def plain(self, data: Sequence[Bytes]) -> list[Any]:
        """The arguments of a launch as arrays over these bytes."""
        return [a.of(data[a.region]) if isinstance(a, ArrayArgument) else a for a in self.arguments]

    def own(self, shared: Sequence[Bytes]) -> list[Bytes]:
        """Bytes for one worker: copies of regions that the kernel writes, else the shared bytes."""
        copies: list[Bytes] = []
        for n, (data, written) in enumerate(zip(shared, self.written, strict=True)):
            if not written:
                copies.append(over(data.ctypes.data, data.nbytes, np.dtype(np.uint8)))
                continue
            copy = aligned_bytes(data.nbytes)
            if n in self.kept:
                self.kept[n].clear(copy)
            else:
                copy[:] = data
            copies.append(copy)
        return copies

    def touched(self, words: Words, data: Sequence[Bytes]) -> tuple[Intervals, Intervals]:
        """The intervals read and written, from an access log with machine addresses."""
        if not len(words):
            return NOTHING, NOTHING
        rows = words[:, 2]
        row_of = np.repeat(np.arange(len(words)), rows)
        nth = np.arange(len(row_of)) - np.repeat(np.cumsum(rows) - rows, rows)
        low = words[row_of, 1] + nth * words[row_of, 4]
        bases = np.array([d.ctypes.data for d in data], np.int64)
        order = np.argsort(bases)
        region = order[np.searchsorted(bases[order], low, side="right") - 1]
        low = low - bases[region] + np.array(self.starts, np.int64)[region]
        ranges = np.stack([low, low + words[row_of, 3]], axis=1)
        writes = words[row_of, 0] < 0
        return ranges[~writes], ranges[writes]


def load(grid: LaunchGrid) -> tuple[Payload, list[Bytes]]:
    """The payload of a launch, and the host's memory of each region."""
    arrays = [a for a in grid.given if isinstance(a, np.ndarray)]
    spans = stretches((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays)
    placed = [_placed(a, spans) if isinstance(a, np.ndarray) else a for a in grid.given]
    written = {m.data.ctypes.data for m in memories_of(grid.kernel.written(grid.values))}
    payload = Payload(
        tuple(placed),
        tuple(high - low for low, high in spans),
        tuple(any(low <= at < high for at in written) for low, high in spans),
        _kept(grid, placed),
    )
    return payload, [over(low, high - low, np.dtype(np.uint8)) for low, high in spans]


def no_uses() -> Words:
    return np.empty((0, LOG_ENTRY), np.int64)


def _placed(array: Any, spans: Sequence[tuple[int, int]]) -> ArrayArgument:
    at = array.ctypes.data
    holder = (n for n, (low, high) in enumerate(spans) if low <= at < high)
    number = next(holder, 0)  # an empty array may be in any region
    offset = at - spans[number][0] if array.nbytes else 0
    return ArrayArgument(number, offset, array.shape, array.dtype)


def _kept(grid: LaunchGrid, placed: Sequence[Any]) -> dict[int, Accumulator]:
    """Regions with one array that is only updated atomically."""
    accumulator_of = accumulators(grid.kernel)
    pairs = list(zip(grid.kernel.parameters, placed, strict=True))
    users = [p.region for _, p in pairs if isinstance(p, ArrayArgument)]
    return {
        p.region: accumulator_of[name]
        for name, p in pairs
        if isinstance(p, ArrayArgument) and name in accumulator_of and users.count(p.region) == 1
    }
