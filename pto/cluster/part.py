"""A range of blocks of a launch, run somewhere: what it touched, what it wrote, what it printed.

The host runs a part in the same way where parts meet, so that both know the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pto.cluster.cargo import Cargo, no_uses
from pto.cluster.intervals import (
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
from pto.core.errors import PtoError
from pto.run.jit.border.context import Context, Words, by_machine_address
from pto.run.launch.prepared import Grid
from pto.run.machine.core import Cluster


@dataclass(frozen=True, slots=True)
class Kept:
    """What one block, or all blocks of a part, combined an array with."""

    stretch: int
    where: Intervals
    data: Bytes


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks `first` to `end` are done; None in `reads`: nobody knows what they did."""

    first: int
    end: int
    reads: Intervals | None = None
    writes: Intervals = field(default_factory=lambda: NOTHING)
    data: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    kept: tuple[Kept, ...] = ()
    printed: Mapping[int, list[str]] = field(default_factory=dict[int, list[str]])
    node: str = ""

    @property
    def touched(self) -> Intervals:
        return EVERYTHING if self.reads is None else merged([self.reads, self.writes])

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + sum(k.data.nbytes for k in self.kept)


class Run:
    """A part under way: hears of each block that ends."""

    def __init__(self, cargo: Cargo, data: Sequence[Bytes], keeps: bool) -> None:
        self._cargo, self._data = cargo, data
        self._accumulators = cargo.kept if keeps else {}
        self._by_block = [n for n, how in self._accumulators.items() if how.by_block]
        self._words: list[Words] = []
        self._kept: list[Kept] = []
        self._known = True

    def run(self, grid: Grid, first: int, end: int, node: str = "") -> Part:
        """Blocks in their order, one after the other. A finding of the program is raised."""
        told = grid.printed_by_block()
        grid.only(first, end)
        known = None if self._accumulators else grid.kernel.survey(grid)
        if known is not None:
            self._words = [known]
            grid.run()
        else:
            grid.ended, grid.kernel = self._ended, grid.kernel.logged
            grid.run_in_turns()
        if not self._known:
            return Part(first, end, node=node)
        reads, writes = map(merged, ([each] for each in self._touched(self._words)))
        plain, sums = self._plain(writes), self._sums(writes)
        printed = {n: lines for n, lines in grid.printed_by_block().items() if n not in told}
        data = take(self._cargo, self._data, plain)
        return Part(first, end, reads, plain, data, (*self._kept, *sums), printed, node)

    def _ended(self, cluster: Cluster) -> None:
        uses = [_uses_of(core.native) for core in cluster.agents]
        known = [words for words in uses if words is not None]
        native = all(isinstance(core.native, Context) for core in cluster.agents)
        self._known &= len(known) == len(uses) and native
        self._words += known
        if self._by_block and self._known:
            _, writes = self._touched(known)
            for number in self._by_block:
                self._keep(number, writes, merged([writes]))

    def _touched(self, words: Sequence[Words]) -> tuple[Intervals, Intervals]:
        return self._cargo.touched(np.concatenate([no_uses(), *words]), self._data)

    def _keep(self, number: int, writes: Intervals, together: Intervals) -> None:
        """What one block has combined an array with. Twice at one place: order would be lost."""
        start, size = self._cargo.starts[number], self._cargo.sizes[number]
        where = within(together, start, start + size)
        mine = (writes[:, 0] >= start) & (writes[:, 0] < start + size)
        self._known &= length(writes[mine]) == length(where)
        data = self._data[number]
        self._kept.append(Kept(number, where, gather(data, where)))
        self._accumulators[number].clear(data, where)

    def _sums(self, writes: Intervals) -> list[Kept]:
        """Of the whole part, where order does not show."""
        found: list[Kept] = []
        for n, how in self._accumulators.items():
            if not how.by_block:
                start, size = self._cargo.starts[n], self._cargo.sizes[n]
                where = within(writes, start, start + size)
                found.append(Kept(n, where, gather(self._data[n], where)))
                how.clear(self._data[n], where)
        return found

    def _plain(self, writes: Intervals) -> Intervals:
        """Writes to arrays that are not only combined with."""
        keep = np.ones(len(writes), bool)
        for n in self._accumulators:
            start, size = self._cargo.starts[n], self._cargo.sizes[n]
            keep &= (writes[:, 0] < start) | (writes[:, 0] >= start + size)
        return writes[keep]


def _uses_of(context: object) -> Words | None:
    """What one agent used, by machine address: arrays of a host may overlap. None: unknown."""
    if not isinstance(context, Context):
        return no_uses()
    words = context.touches()
    return None if words is None else by_machine_address(words.copy(), context)


def take(cargo: Cargo, data: Sequence[Bytes], writes: Intervals) -> Bytes:
    """The bytes of these stretches, one after the other."""
    parts = zip(cargo.starts, data, strict=True)
    found = [gather(own, within(writes, start, start + own.nbytes)) for start, own in parts]
    return np.concatenate([np.empty(0, np.uint8), *found])


def put(cargo: Cargo, data: Sequence[Bytes], writes: Intervals, values: Bytes) -> None:
    """The reverse: bytes to where they belong."""
    at = 0
    for start, own in zip(cargo.starts, data, strict=True):
        where = within(writes, start, start + own.nbytes)
        size = length(where)
        scatter(own, where, values[at : at + size])
        at += size


def attempt(
    cargo: Cargo, data: Sequence[Bytes], grid: Grid, first: int, end: int, node: str
) -> Part:
    """A part on a worker; one that fails there is told by the host, which runs it again."""
    try:
        return Run(cargo, data, keeps=True).run(grid, first, end, node)
    except PtoError:
        return Part(first, end, node=node)
