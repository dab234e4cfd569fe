"""A range of blocks of a launch, run on a worker or the host: its accesses, writes and output.

The host runs a range in the same way if it conflicts with another, so that the results compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pto.cluster.payload import Payload, no_uses
from pto.core.errors import PtoError
from pto.core.intervals import (
    EVERYTHING,
    NOTHING,
    Bytes,
    Intervals,
    gather,
    length,
    merged,
    scatter,
    within,
)
from pto.run.jit.runtime.context import Context, Words, by_machine_address
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.core import Cluster


@dataclass(frozen=True, slots=True)
class AtomicUpdates:
    """The values with which one block, or all blocks of a range, updated an array atomically."""

    region: int
    where: Intervals
    data: Bytes


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The result of blocks `first` to `end`; `reads` is None if their accesses are unknown."""

    first: int
    end: int
    reads: Intervals | None = None
    writes: Intervals = field(default_factory=lambda: NOTHING)
    data: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    kept: tuple[AtomicUpdates, ...] = ()
    printed: Mapping[int, list[str]] = field(default_factory=dict[int, list[str]])
    node: str = ""

    @property
    def touched(self) -> Intervals:
        return EVERYTHING if self.reads is None else merged([self.reads, self.writes])

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + sum(k.data.nbytes for k in self.kept)


class RangeRun:
    """A range of blocks that runs; it is notified of each block that ends, or of all blocks of one
    worker."""

    def __init__(self, payload: Payload, data: Sequence[Bytes], keeps: bool) -> None:
        self._payload, self._data = payload, data
        self._accumulators = payload.kept if keeps else {}
        self._by_block = [n for n, how in self._accumulators.items() if how.by_block]
        self._words: list[Words] = []
        self._kept: list[AtomicUpdates] = []
        self._known = True

    def run(self, grid: LaunchGrid, first: int, end: int, node: str = "") -> RangeResult:
        """Run the blocks in order, one after the other. A finding of the program is raised."""
        printed_before = grid.printed_by_block()
        grid.only(first, end)
        grid.ended, grid.kernel = self._ended, grid.kernel.logged
        if self._accumulators:
            grid.run_cooperatively()
        else:
            grid.run()
        if not self._known:
            return RangeResult(first, end, node=node)
        reads, writes = map(merged, ([words] for words in self._touched(self._words)))
        plain, sums = self._plain(writes), self._sums(writes)
        printed = {
            n: lines for n, lines in grid.printed_by_block().items() if n not in printed_before
        }
        data = take(self._payload, self._data, plain)
        return RangeResult(first, end, reads, plain, data, (*self._kept, *sums), printed, node)

    def _ended(self, cluster: Cluster) -> None:
        uses = [_uses_of(core.native) for core in cluster.agents]
        native_words = [words for words in uses if words is not None]
        native = all(isinstance(core.native, Context) for core in cluster.agents)
        self._known &= len(native_words) == len(uses) and native
        self._words += native_words
        if self._by_block and self._known:
            _, writes = self._touched(native_words)
            for number in self._by_block:
                self._keep(number, writes, merged([writes]))

    def _touched(self, words: Sequence[Words]) -> tuple[Intervals, Intervals]:
        return self._payload.touched(np.concatenate([no_uses(), *words]), self._data)

    def _keep(self, number: int, writes: Intervals, together: Intervals) -> None:
        """Collect the atomic updates of one block, if no element is updated twice."""
        start, size = self._payload.starts[number], self._payload.sizes[number]
        where = within(together, start, start + size)
        mine = (writes[:, 0] >= start) & (writes[:, 0] < start + size)
        self._known &= length(writes[mine]) == length(where)
        data = self._data[number]
        self._kept.append(AtomicUpdates(number, where, gather(data, where)))
        self._accumulators[number].clear(data, where)

    def _sums(self, writes: Intervals) -> list[AtomicUpdates]:
        """The atomic updates of the whole range, where order does not change the bits."""
        updates: list[AtomicUpdates] = []
        for n, how in self._accumulators.items():
            if not how.by_block:
                start, size = self._payload.starts[n], self._payload.sizes[n]
                where = within(writes, start, start + size)
                updates.append(AtomicUpdates(n, where, gather(self._data[n], where)))
                how.clear(self._data[n], where)
        return updates

    def _plain(self, writes: Intervals) -> Intervals:
        """Writes to arrays that are not only updated atomically."""
        keep = np.ones(len(writes), bool)
        for n in self._accumulators:
            start, size = self._payload.starts[n], self._payload.sizes[n]
            keep &= (writes[:, 0] < start) | (writes[:, 0] >= start + size)
        return writes[keep]


def _uses_of(context: object) -> Words | None:
    """The accesses of one agent by machine address (host arrays may overlap); None: unknown."""
    if not isinstance(context, Context):
        return no_uses()
    words = context.logged_accesses()
    return None if words is None else by_machine_address(words.copy(), context)


def take(payload: Payload, data: Sequence[Bytes], writes: Intervals) -> Bytes:
    """The bytes of these intervals, concatenated."""
    parts = zip(payload.starts, data, strict=True)
    gathered = [
        gather(array, within(writes, start, start + array.nbytes)) for start, array in parts
    ]
    return np.concatenate([np.empty(0, np.uint8), *gathered])


def put(payload: Payload, data: Sequence[Bytes], writes: Intervals, values: Bytes) -> None:
    """Write concatenated bytes back to their intervals."""
    at = 0
    for start, array in zip(payload.starts, data, strict=True):
        where = within(writes, start, start + array.nbytes)
        size = length(where)
        scatter(array, where, values[at : at + size])
        at += size


def attempt(
    payload: Payload, data: Sequence[Bytes], grid: LaunchGrid, first: int, end: int, node: str
) -> RangeResult:
    """Run a range on a worker. If it fails there, the host runs it again and reports the error."""
    try:
        return RangeRun(payload, data, keeps=True).run(grid, first, end, node)
    except PtoError:
        return RangeResult(first, end, node=node)
