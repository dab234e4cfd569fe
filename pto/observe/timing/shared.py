"""The rates of memory and of the L2 cache, which all cores share.

Memory and cache serve the transfers of all cores in the order in which they start, none faster than
its rate. Cores run in step at the start of a launch and drift apart: time in which a resource is
idle between two transfers of one core is used by other cores, as far as they are out of step.
Nothing depends on later work, so more work after a run does not change the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.observe.timing import clock
from pto.observe.timing.cache import LINE
from pto.observe.timing.clock import Times
from pto.observe.timing.price import Price
from pto.observe.timing.stream import RecordStream
from pto.target.costs import Chip

Array = npt.NDArray[Any]
PASSES = 24
_DRIFT = 8  # after n transfers, cores are out of step by n / 8 of them ...
_WIDEST = 4  # ... and at most by so many
_RECENT = 16  # transfers over which the load of memory is taken
_PRESENT = 1e-3  # share of misses up to which a transfer finds its data in the cache
_CLOSE = 1e-4  # of the whole run: smaller changes of times are ignored


@dataclass(slots=True)
class Load:
    """The demand of a stream's transfers on memory, one entry a transfer."""

    items: Array  # their numbers among the jobs
    nbytes: Array
    missed: Array  # share of them that memory serves
    memory: Array  # bytes that memory reads or writes, of all cores together
    stored: Array  # bytes that all cores store
    written: Array  # bytes written to memory
    seconds: Array  # busy time of memory
    new: Array  # the same, at the rate of inputs that no launch has read before
    writes: Array
    lines: Array  # bytes of whole lines that the L2 cache reads, of all cores
    alike: Array  # the same of cores that access the same lines; whole ones past the cache
    parts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    # rounds of blocks: the first entry of each, and how many transfers of the core came before


@dataclass(slots=True)
class SharedTimes:
    """Times that respect the limits of memory and cache."""

    times: Times
    served: Array  # by transfer: the earliest time at which memory and cache are done
    passes: int


def steady_after(count: int, position: int) -> int:
    """The number of rounds of so many transfers each after which cores drift no further.

    `position`: transfers of the core before the first of them.
    """
    missing = _DRIFT * _WIDEST - position
    return max(0, -(-missing // max(1, count)))


class Servers:
    """Memory and cache: from the start of each transfer to when it is served."""

    def __init__(self, load: Load, chip: Chip, mhz: float) -> None:
        """Work is counted in cycles that a resource is busy with a transfer of all cores."""
        rates = load.seconds, load.lines / chip.l2_read, load.new
        self._work = np.stack(rates) * mhz * 1e6
        index = np.arange(load.items.size)
        for first, position in load.parts:
            index[first:] = position + np.arange(load.items.size - first)
        self._apart = np.clip(index // _DRIFT, 1, _WIDEST)

    def serve(self, begins: Array) -> tuple[Array, Array]:
        """When each transfer is served, and the used share of the memory rate.

        A resource is busy with all work since it was last idle for every core.
        """
        order = np.argsort(begins, kind="stable")
        at, work = begins[order], self._work[:, order]
        index = np.arange(order.size)
        since = at[np.maximum(0, index - self._apart[order])]
        total = np.cumsum(work, axis=1)
        idle = np.maximum.accumulate(since - (total - work), axis=1)
        done = (total + np.maximum(0.0, idle)).max(axis=0)
        back = np.maximum(0, index - _RECENT)
        recent = total[0] - total[0][back]
        share = recent / np.maximum(at - at[back], np.maximum(recent, 1e-9))
        served, filled = np.empty_like(done), np.empty_like(done)
        served[order], filled[order] = done, np.where(index > 0, share, 0.0)
        return served, filled


class _Transfers:
    """The duration of transfers, from their prices and their demand."""

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

    def occupancy(self) -> Array:
        """Cycles on the pipe with unlimited memory and cache."""
        took = np.where(self._rate > 0, self._hit + self._miss, 0.0)
        return self._start + np.maximum(self._least, took)

    def latency(self, filled: Array) -> Array:
        """The latency at this share of the memory rate."""
        late = self._lat_miss * (1 + self._lat_load * np.minimum(1.0, filled))
        return _latency(self._load, self._lat_hit, late, self._rate)


def settle(
    stream: RecordStream, chip: Chip, mhz: float, prices: list[Price], load: Load
) -> SharedTimes:
    """Compute times that respect the limits of memory and cache.

    The first bytes of cold memory delay a run; they do not give memory time to catch up.
    """
    items = load.items
    occupancy = np.array([p.start for p in prices], np.float64)
    latency = np.array([p.lat_hit for p in prices], np.float64)
    floor = np.zeros(len(prices))
    transfers = _Transfers([prices[i] for i in items], load)
    servers = Servers(load, chip, mhz)
    occupancy[items] = alone = transfers.occupancy()
    cold = items[(load.missed > _PRESENT) & ~load.writes][:1]
    served, filled = np.zeros(items.size), np.zeros(items.size)
    passes = 0
    while True:
        passes += 1
        latency[items] = transfers.latency(filled)
        latency[cold] += chip.cold_start_us * mhz
        floor[items] = served
        times = clock.run(stream, chip, occupancy.tolist(), latency.tolist(), floor.tolist())
        if not items.size or passes == PASSES:
            break
        begins, free = np.array(times.start)[items], np.array(times.free)[items]
        late = np.zeros(items.size)
        if cold.size:
            late[begins >= times.done[cold[0]]] = chip.cold_start_us * mhz
        served, share = servers.serve(begins - late)
        served += late
        off = np.abs(np.maximum(begins + alone, served) - free).max()
        changed = np.abs(share - filled).max()
        filled = 0.5 * filled + 0.5 * share
        if off <= _CLOSE * times.end and changed < 0.05:
            break
    return SharedTimes(times, served, passes)


def _latency(load: Load, hit: Array, miss: Array, rate: Array) -> Array:
    """From the end of the occupancy to the last byte: the visible part of a miss.

    Lines are requested one after the other, so a miss is late by `miss - hit` less the requests
    after it. Expected value, with misses anywhere: the gap from the last one to the end is
    exponential, and no longer than the transfer.
    """
    more = np.maximum(miss - hit, 0.0)
    a_line = LINE / np.maximum(rate, 1e-9)
    often = np.maximum(load.missed / a_line, 1e-12)  # misses a cycle
    reach = np.minimum(more, load.nbytes / LINE * a_line)
    none = np.exp(-often * reach)
    felt = more * (1 - none) - (1 - none * (1 + often * reach)) / often
    return hit + np.clip(felt, 0.0, more)
