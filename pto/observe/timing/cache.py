"""The L2 cache that all cores share: hits of a transfer, and its traffic to memory.

The probability that a line is in the cache falls with the number of lines brought in since its last
access: slowly while that is less than the capacity, then steeply. No line is drawn at random: the
expectation is computed, and two runs give the same times.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.isa.cost.work import GlobalRegion

LINE = 512  # bytes; a sector where transfers have shorter rows
_READ, _WRITTEN = 1, 2
SECTOR = 128  # what the counters of asc-devkit's data_copy count: 1.2 GB are 9.4 million
Array = npt.NDArray[Any]
# 1: lines are replaced at random; large: the oldest always. Measured: of 302 MB that are read again
# from the start, 192 MB keep nothing; 128 MB keep the 134 MB of a matmul after a few rounds.
_SHARP = 4
_COHORTS = 32  # of dirty lines, for each time that the cache is filled
_GONE = 1e-3  # of lines: so few are none


State = Literal["cold", "warm", "clean"]  # of the cache when a launch begins
STATES: tuple[State, ...] = get_args(State)


def known_state(state: str) -> None:
    """Raise unless a state exists."""
    if state not in STATES:
        raise fail("PTO-U039", f"a cache is {', '.join(STATES)}, not {state!r}")


def survival(age: Array) -> Array:
    """The probability that a line is still there after so many fillings of the cache."""
    return np.exp(-(np.maximum(age, 0.0) ** _SHARP))


class Traffic(NamedTuple):
    """The traffic of one transfer, on average over the cores that make it at the same time."""

    missed: float  # share of a load that was not there when it began, whichever core brings it;
    # of a store, the share that causes accesses to memory
    read: float  # bytes that memory gives, all cores together
    written: float  # bytes that go to memory
    new: float = 0.0  # of both, bytes at the rate of arrays that are new to the chip
    alike: float = 1.0  # cores that access the same line


class _Dirty:
    """Lines that differ from memory, by when they were last accessed in lines brought in."""

    def __init__(self, lines: float) -> None:
        self._lines, self._step = lines, lines / _COHORTS
        self._when, self._count = np.zeros(0), np.zeros(0)

    def left(self, now: float) -> float:
        """How many are still in the cache."""
        return float((self._count * survival((now - self._when) / self._lines)).sum())

    def add(self, when: float, count: float) -> None:
        if self._when.size and when - self._when[-1] < self._step:
            self._count[-1] += count
        else:
            self._when, self._count = np.append(self._when, when), np.append(self._count, count)

    def renew(self, last: Array) -> None:
        """Remove lines that were last accessed at `last`: they are added again as of now."""
        if last.size and self._when.size:
            at = np.clip(np.searchsorted(self._when, last, "right") - 1, 0, None)
            taken = np.bincount(at, minlength=self._when.size)
            self._count = np.maximum(0.0, self._count - taken)

    def written_back(self, now: float, brought: float) -> float:
        """How many leave the cache when so many lines are brought in."""
        ages = (now - self._when) / self._lines
        after = survival(ages + brought / self._lines)
        out = float((self._count * (survival(ages) - after)).sum())
        if self._when.size > 2 * _COHORTS:
            kept = after > _GONE
            self._when, self._count = self._when[kept], self._count[kept]
        return out

    def older(self, now: float, brought: float, density: float) -> None:
        """Add lines of earlier launches, so many for each line they brought in."""
        ages = np.arange(brought, 2 * self._lines, self._step)[::-1]
        self._when = np.concatenate([now - ages, self._when])
        self._count = np.concatenate([np.full(ages.size, density * self._step), self._count])

    def advance(self, brought: float) -> None:
        self._when = self._when + brought


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
        self._touched = np.zeros(total)  # 0: not yet; no memory is taken for lines never accessed
        self._winner = np.zeros(total, np.int64)
        self._written = np.zeros(total, bool)
        self._used = np.zeros(total, np.int8)  # in this launch: 0 not yet, else how it began
        self._is_repeated = False
        self.brought = self.lines  # lines so far
        self._dirty = _Dirty(self.lines)

    @property
    def dirty(self) -> float:
        """Lines in the cache that differ from memory."""
        return self._dirty.left(self.brought)

    def begin_again(self, state: State) -> None:
        """Begin the next launch after an equal one.

        warm: on the same arrays. cold: on other inputs, into the same results, of which those not
        yet written back remain; what was computed in place is dirty data of other launches.
        """
        self._is_repeated = state == "warm"
        if state == "cold":
            inputs = np.flatnonzero(self._used == _READ)
            in_place = float(self._written[inputs].sum())
            brought = max(1.0, self.brought - self.lines)
            self._dirty.older(self.brought, brought, min(1.0, in_place / brought))
            self._touched[inputs] = 0.0
            self._written[inputs] = False
        self._used[:] = 0

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
            new = read * self._begun(lines, region.writes).mean()
            return Traffic(1.0, read, nbytes - read, float(new), alike)
        last = self._touched[lines]
        number = np.arange(lines.size)
        self._winner[lines] = number
        first = self._winner[lines] == number  # of cores that access one line, one brings it
        present = np.where(last <= 0, 0.0, survival((self.brought - last) / self.lines))
        missing = np.where(first, 1.0 - present, 0.0)
        brought = float(missing.sum())
        written = self._written[lines] & first
        self._dirty.renew(last[written])
        written_back = self._evict(brought)
        self._touched[lines] = self.brought
        new = float(missing[self._begun(lines, region.writes)].sum())
        alike = lines.size / max(1, int(first.sum()))
        dirtied = float(first.sum() if region.writes else present[written].sum())
        self._dirty.add(self.brought, dirtied)
        self._written[lines] |= region.writes
        self._written[lines[written & (present < _GONE)]] = region.writes
        if times > 1:
            self._others(brought * (times - 1), dirtied * (times - 1))
        written = written_back * self._line
        slow = 0.0 if self._is_repeated else written
        if region.writes:
            share = min(1.0, written_back / max(1, lines.size))
            return Traffic(share, 0.0, written, slow, alike)
        read, slow = brought * self._line, slow + new * self._line
        return Traffic(float(1.0 - present.mean()), read, written, slow, alike)

    def _begun(self, lines: Array, writes: bool) -> Array:
        """True for lines that this launch uses first, which are noted as read or written first;
        False for all in a launch on the arrays of the one before."""
        fresh = self._used[lines] == 0
        self._used[lines[fresh]] = _WRITTEN if writes else _READ
        return fresh & (not self._is_repeated)

    def advance(self, brought: float) -> None:
        """Count further rounds that bring in so many lines; every line keeps its age."""
        self.brought += brought
        self._touched[np.flatnonzero(self._touched)] += brought
        self._dirty.advance(brought)

    def _evict(self, brought: float) -> float:
        """The lines that have to be written back when so many are brought in."""
        out = self._dirty.written_back(self.brought, brought)
        self.brought += brought
        return out

    def _others(self, brought: float, dirtied: float) -> None:
        """Count lines brought in elsewhere, some of them written."""
        self.brought += brought
        self._dirty.add(self.brought, dirtied)

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
