"""The L2 cache that all cores share: hits of a transfer, and its traffic to memory.

The probability that a line is in the cache falls with the number of lines brought in since its last
access: slowly while that is less than the capacity, then steeply. No line is drawn at random: the
expectation is computed, and two runs give the same times.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pto.isa.cost.work import GlobalRegion

LINE = 512  # bytes; a sector where transfers have shorter rows
SECTOR = 128  # what the counters of asc-devkit's data_copy count: 1.2 GB are 9.4 million
Array = npt.NDArray[Any]
# 1: lines are replaced at random; large: the oldest always. Measured: of 302 MB that are read again
# from the start, 192 MB keep nothing; 128 MB keep the 134 MB of a matmul after a few rounds.
_SHARP = 4


class Traffic(NamedTuple):
    """The traffic of one transfer, on average over the cores that make it at the same time."""

    missed: float  # share of a load that was not there when it began, whichever core brings it;
    # of a store, the share that causes accesses to memory
    read: float  # bytes that memory gives, all cores together
    written: float  # bytes that go to memory
    alike: float = 1.0  # cores that access the same line


class Cache:
    """The lines of global memory: when each was last accessed, in lines brought in since."""

    def __init__(
        self, l2_bytes: float, arrays: Sequence[tuple[int, int]], line: int = LINE
    ) -> None:
        """`arrays`: address and bytes of each on the host.

        The cache is full of other data at first.
        """
        self._line = line
        self.lines = max(1.0, l2_bytes / line)
        self._arrays = sorted(arrays)
        self._starts = [start for start, _ in self._arrays]
        self._first: list[int] = []  # line of each array
        total = 0
        for _, size in self._arrays:
            self._first.append(total)
            total += -(-size // line) + 1
        self._touched = np.full(total, -1.0)
        self._winner = np.zeros(total, np.int64)
        self._written = np.zeros(total, bool)
        self.brought = self.lines  # lines so far
        self.dirty = 0.0  # lines in the cache that differ from memory

    def forget_inputs(self) -> None:
        """Forget inputs, as before a launch on new ones: results not yet written back remain."""
        self._touched[~self._written] = -1.0

    def transfer(
        self, region: GlobalRegion, addresses: Sequence[int] | Array, times: float = 1.0
    ) -> Traffic:
        """The same transfer by several cores at a time, each at its own address.

        It counts `times` times: the further transfers bring in as much, from other addresses.
        """
        if not region.nbytes:
            return Traffic(0.0, 0.0, 0.0)
        lines = self._lines_of(region, np.asarray(addresses, np.int64))
        if region.passes_by:
            alike = lines.size / np.unique(lines).size
            nbytes = float(region.nbytes * len(addresses))
            read = 0.0 if region.writes else nbytes
            return Traffic(1.0, read, nbytes - read, alike)
        last = self._touched[lines]
        number = np.arange(lines.size)
        self._winner[lines] = number
        first = self._winner[lines] == number  # of cores that access one line, one brings it
        present = np.where(last < 0, 0.0, self._still_there(self.brought - last))
        missing = np.where(first, 1.0 - present, 0.0)
        brought = float(missing.sum())
        written_back = self._evict(brought)
        self._touched[lines] = self.brought
        alike = lines.size / max(1, int(first.sum()))
        dirtied = 0.0
        if region.writes:
            dirtied = float(np.where(first & ~self._written[lines], 1.0, missing).sum())
            self._written[lines] = True
            self.dirty = min(self.lines, self.dirty + dirtied)
        if times > 1:
            self._others(brought * (times - 1), dirtied * (times - 1))
        written = written_back * self._line
        if region.writes:
            return Traffic(min(1.0, written_back / max(1, lines.size)), 0.0, written, alike)
        return Traffic(float(1.0 - present.mean()), brought * self._line, written, alike)

    def advance(self, brought: float) -> None:
        """Count further rounds that bring in so many lines; every line keeps its age."""
        self.brought += brought
        self._touched[self._touched >= 0] += brought

    def _still_there(self, brought: Array) -> Array:
        return np.exp(-((brought / self.lines) ** _SHARP))

    def _evict(self, brought: float) -> float:
        """The lines that have to be written back when so many are brought in."""
        self.brought += brought
        out = brought * self.dirty / self.lines
        self.dirty -= out
        return out

    def _others(self, brought: float, dirtied: float) -> None:
        """Count lines brought in elsewhere, some of them written, in the share of dirty lines."""
        self.brought += brought
        left = float(np.exp(-brought / self.lines))
        near = self.lines * dirtied / brought if brought else self.dirty
        self.dirty = min(self.lines, near + (self.dirty - near) * left)

    def array_of(self, region: GlobalRegion) -> int:
        """The number of the array of a region; -1: before all of them."""
        return bisect(self._starts, region.address) - 1

    def _lines_of(self, region: GlobalRegion, addresses: Array) -> Array:
        """The lines of each row of each core's transfer."""
        at = self.array_of(region)
        base = self._first[at] * self._line - self._arrays[at][0] if at >= 0 else 0
        if region.pitch == region.row_bytes:
            rows, length = np.zeros(1, np.int64), region.rows * region.row_bytes
        else:
            rows, length = np.arange(region.rows) * region.pitch, region.row_bytes
        starts = (base + addresses[:, None] + rows[None, :]).reshape(-1)
        first = starts // self._line
        count = int(((starts + length - 1) // self._line - first).max()) + 1
        lines = (first[:, None] + np.arange(count)[None, :]).reshape(-1)
        return np.clip(lines, 0, self._touched.size - 1)
