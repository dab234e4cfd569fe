"""What cores take from each other: the rates of memory and of the L2 cache, by a fixed point.

The run is cut into windows of equal traffic. Where all cores together ask for more in a window than
memory or cache give, their transfers in it are slower; times are computed again until that holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.observe.timing import clock
from pto.observe.timing.cache import LINE
from pto.observe.timing.clock import Times
from pto.observe.timing.price import Price
from pto.observe.timing.stream import Stream
from pto.target.costs import Chip

Array = npt.NDArray[Any]
WINDOWS = 48
PASSES = 12
_SMALL = 8192  # bytes of a copy
_DRIFT = 8  # transfers


@dataclass(slots=True)
class Load:
    """What the transfers of a stream ask of memory, one entry a transfer."""

    items: Array  # their numbers among the jobs
    nbytes: Array
    missed: Array  # share of them
    memory: Array  # bytes of all cores together
    writes: Array
    lines: Array  # bytes of the whole lines that the L2 cache gives for reads, of all cores
    alike: Array  # the same, of the cores that want the same lines
    drifts: bool = False  # far more blocks follow on each core


@dataclass(slots=True)
class Shared:
    """How it came out: times, and the bytes and rates of memory and cache."""

    times: Times
    hbm_bytes: float
    l2_bytes: float
    hbm_share: float  # of what memory gives, over the whole run
    l2_share: float
    passes: int


class Windows:
    """Stretches of the run with equal traffic, and how much slower memory and cache are in each.

    A transfer asks evenly from its start to its end. Stretches are numbered by traffic, not by
    time, so that what is known of one stays true when those before it grow.
    """

    def __init__(self, count: int = WINDOWS) -> None:
        self._slow = np.ones((2, count))  # of memory, of the L2 cache
        self._filled = np.zeros(count)
        self._edges = np.zeros(count + 1)

    def adjust(self, begins: Array, ends: Array, load: Load, rates: tuple[float, float]) -> bool:
        """Slow down where too much is asked for, let go elsewhere; False when all is well.

        `rates`: bytes a cycle of memory and of the cache.
        """
        ends = np.maximum(ends, begins + 1e-6)
        at, traffic = _asked(begins, ends, load.nbytes)
        edges = np.linspace(0.0, traffic[-1], self._edges.size)
        self._edges = np.interp(edges, traffic, at)
        length = np.maximum(np.diff(self._edges), 1e-6)
        changed = False
        for n, asks in enumerate((load.memory, load.lines)):
            so_far = np.interp(self._edges, *_asked(begins, ends, asks))
            want = np.diff(so_far) / length / rates[n]
            if n == 0:
                self._filled = 0.5 * self._filled + 0.5 * np.minimum(1.0, want)
            off = (want > 1.01) | ((want < 0.98) & (self._slow[n] > 1))
            changed |= bool(off.any())
            other = np.maximum(1.0, self._slow[n] * np.maximum(want, 1e-9) ** 0.8)
            self._slow[n] = np.where(off, other, self._slow[n])
        return changed

    def felt(self, begins: Array, ends: Array) -> tuple[Array, Array, Array]:
        """For each transfer, the mean over its time: slow-down of memory, of the cache, load."""
        ends = np.maximum(ends, begins + 1e-6)
        length = np.diff(self._edges)

        def mean(each: Array) -> Array:
            total = np.append(0.0, np.cumsum(each * length))
            took = np.interp(ends, self._edges, total) - np.interp(begins, self._edges, total)
            return took / (ends - begins)

        slow, slow_l2 = (np.maximum(1.0, mean(each)) for each in self._slow)
        return slow, slow_l2, mean(self._filled)


def _asked(begins: Array, ends: Array, nbytes: Array) -> tuple[Array, Array]:
    """Bytes asked for so far, at every time at which a transfer begins or ends."""
    rate = nbytes / (ends - begins)
    times = np.concatenate((begins, ends))
    order = np.argsort(times, kind="stable")
    at = times[order]
    rates = np.cumsum(np.concatenate((rate, -rate))[order])
    return at, np.append(0.0, np.cumsum(rates[:-1] * np.diff(at)))


class _Transfers:
    """How long transfers take, from their prices and what they ask for."""

    def __init__(self, prices: list[Price], load: Load) -> None:
        numbers = np.array([p[:9] for p in prices], np.float64).reshape(-1, 9).T
        self._start, least_hit, least_miss, hit_rate, miss_rate, *late, same = numbers
        self._lat_hit, self._lat_miss, self._lat_load = late
        self._load, self._rate = load, hit_rate
        missed = load.missed * load.nbytes
        self._hit = (load.nbytes - missed) / np.maximum(hit_rate, 1e-9)
        self._miss = missed / np.maximum(miss_rate, 1e-9)
        # requests for one line are served one after the other
        one_by_one = np.where(same > 0, load.alike / np.maximum(same, 1e-9), 0.0)
        self._least = np.maximum(least_hit + (least_miss - least_hit) * load.missed, one_by_one)

    def occupancy(self, slow: Array, slow_l2: Array) -> Array:
        """Where memory and cache are so many times slower."""
        took = np.where(self._rate > 0, self._hit * slow_l2 + self._miss * slow, 0.0)
        return self._start + np.maximum(self._least, took)

    def latency(self, filled: Array) -> Array:
        """Where memory gives this share of what it can."""
        late = self._lat_miss * (1 + self._lat_load * np.minimum(1.0, filled))
        return _latency(self._load, self._lat_hit, late, self._rate)


def settle(stream: Stream, chip: Chip, mhz: float, prices: list[Price], load: Load) -> Shared:
    """Times in which nobody gets more than there is.

    Where blocks follow each other for long, cores come out of step: what one does at a time is then
    shared over stretches of several transfers, not with others that do the same.
    """
    items = load.items
    occupancy = np.array([p.start for p in prices], np.float64)
    latency = np.array([p.lat_hit for p in prices], np.float64)
    transfers = _Transfers([prices[i] for i in items], load)
    windows = Windows(min(WINDOWS, max(1, items.size // _DRIFT)) if load.drifts else WINDOWS)
    gives = _memory_rate(chip, load)
    rates = (gives / mhz / 1e6, chip.l2_read / mhz / 1e6)  # bytes a cycle
    slow, slow_l2, filled = (np.full(items.size, each) for each in (1.0, 1.0, 0.0))
    missing = items[load.missed > 0]
    passes = 0
    while True:
        passes += 1
        occupancy[items] = transfers.occupancy(slow, slow_l2)
        latency[items] = transfers.latency(filled)
        latency[missing[:1]] += chip.cold_start_us * mhz
        times = clock.run(stream, chip, occupancy.tolist(), latency.tolist())
        if not items.size or passes == PASSES:
            break
        begins, ends = np.array(times.start)[items], np.array(times.free)[items]
        changed = windows.adjust(begins, ends, load, rates)
        slow, slow_l2, filled = windows.felt(begins, ends)
        if not changed and passes > 2:
            break
    seconds = max(times.end / mhz / 1e6, 1e-12)
    hbm, l2 = float(load.memory.sum()), float(load.lines.sum())
    shares = (hbm / seconds / gives, l2 / seconds / chip.l2_read)
    return Shared(times, hbm, l2, *shares, passes)


def _latency(load: Load, hit: Array, miss: Array, rate: Array) -> Array:
    """From the end of the occupancy to the last byte: how much a miss is felt.

    Lines are asked for one after the other, so one that misses is late by `miss - hit` less what is
    asked for behind it. Expected, with misses anywhere: the gap from the last one to the end is
    exponential, and no longer than the transfer.
    """
    more = np.maximum(miss - hit, 0.0)
    a_line = LINE / np.maximum(rate, 1e-9)
    often = np.maximum(load.missed / a_line, 1e-12)  # misses a cycle
    reach = np.minimum(more, load.nbytes / LINE * a_line)
    none = np.exp(-often * reach)
    felt = more * (1 - none) - (1 - none * (1 + often * reach)) / often
    return hit + np.clip(felt, 0.0, more)


def _memory_rate(chip: Chip, load: Load) -> float:
    """Bytes a second: less where copies are small, other where writes come between reads."""
    written = float(load.memory[load.writes].sum()) if load.items.size else 0.0
    gives = chip.hbm_mixed if written else chip.hbm_read
    mean = float(load.nbytes.mean()) if load.items.size else 0.0
    return gives * (chip.small_copies if mean <= _SMALL else 1.0)
