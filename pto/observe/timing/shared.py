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


@dataclass(slots=True)
class Load:
    """What the transfers of a stream ask of memory, one entry a transfer."""

    items: Array  # their numbers among the jobs
    nbytes: Array
    missed: Array  # share of them
    memory: Array  # bytes of all cores together
    cores: int
    writes: Array
    lines: Array  # bytes of the whole lines that the L2 cache gives for what is read


@dataclass(slots=True)
class Shared:
    """How it came out: times, and the bytes and rates of memory and cache."""

    times: Times
    hbm_bytes: float
    l2_bytes: float
    hbm_share: float  # of what memory gives, over the whole run
    l2_share: float
    passes: int


def settle(stream: Stream, chip: Chip, mhz: float, prices: list[Price], load: Load) -> Shared:
    """Times in which nobody gets more than there is."""
    start = np.array([p.start for p in prices])
    latency = np.array([p.lat_hit for p in prices])
    occupancy = start.copy()
    mine = [prices[i] for i in load.items]
    table = {
        name: np.array([getattr(p, name) for p in mine])
        for name in (
            "least_hit",
            "least_miss",
            "hit_rate",
            "miss_rate",
            "lat_hit",
            "lat_miss",
            "lat_load",
        )
    }
    window = _windows(load.nbytes)
    slow, slow_l2, filled = np.ones(WINDOWS), np.ones(WINDOWS), np.zeros(WINDOWS)
    gives = _memory_rate(chip, load)
    missed = load.missed * load.nbytes
    passes = 0
    while True:
        passes += 1
        hit = (load.nbytes - missed) / np.maximum(table["hit_rate"], 1e-9) * slow_l2[window]
        miss = missed / np.maximum(table["miss_rate"], 1e-9) * slow[window]
        least = table["least_hit"] + (table["least_miss"] - table["least_hit"]) * load.missed
        bytes_take = np.where(table["hit_rate"] > 0, hit + miss, 0.0)
        occupancy[load.items] = start[load.items] + np.maximum(least, bytes_take)
        late = table["lat_miss"] * (1 + table["lat_load"] * np.minimum(1.0, filled[window]))
        latency[load.items] = _latency(load, table["lat_hit"], late, table["hit_rate"])
        if (load.missed > 0).any():
            latency[load.items[int(np.argmax(load.missed > 0))]] += chip.cold_start_us * mhz
        times = clock.run(stream, chip, occupancy.tolist(), latency.tolist())
        if not load.items.size or passes == PASSES:
            break
        begins = np.array(times.start)[load.items]
        changed = _adjust(
            begins, times.end, mhz, window, load, gives, chip, (slow, slow_l2, filled)
        )
        if not changed and passes > 2:
            break
    seconds = times.end / mhz / 1e6
    hbm = float(load.memory.sum())
    l2 = float(load.lines.sum()) * load.cores
    return Shared(
        times,
        hbm,
        l2,
        hbm / max(seconds, 1e-12) / gives,
        l2 / max(seconds, 1e-12) / chip.l2_read,
        passes,
    )


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


def _windows(nbytes: Array) -> Array:
    total = nbytes.sum()
    if not total:
        return np.zeros(nbytes.size, np.int64)
    return np.minimum(
        WINDOWS - 1, (WINDOWS * (np.cumsum(nbytes) - nbytes) / total).astype(np.int64)
    )


def _memory_rate(chip: Chip, load: Load) -> float:
    """Bytes a second: less where copies are small, other where writes come between reads."""
    written = float(load.memory[load.writes].sum()) if load.items.size else 0.0
    gives = chip.hbm_mixed if written else chip.hbm_read
    mean = float(load.nbytes.mean()) if load.items.size else 0.0
    return gives * (chip.small_copies if mean <= _SMALL else 1.0)


def _adjust(
    begins: Array,
    end: float,
    mhz: float,
    window: Array,
    load: Load,
    gives: float,
    chip: Chip,
    state: tuple[Array, Array, Array],
) -> bool:
    """Slow down windows that ask for too much, let go those that do not; False when all is well."""
    slow, slow_l2, filled = state
    used = np.unique(window)
    first = np.array([begins[window == w].min() for w in used])
    shortest = end / (8 * WINDOWS)  # agents overlap: a window may begin before the one in front
    length = np.maximum(np.diff(np.append(first, end)), max(shortest, 1e-9)) / mhz / 1e6
    asked = np.array([load.memory[window == w].sum() for w in used]) / length / gives
    lines = np.array([load.lines[window == w].sum() for w in used])
    asked_l2 = lines * load.cores / length / chip.l2_read
    filled[used] = 0.5 * filled[used] + 0.5 * np.minimum(1.0, asked)
    changed = False
    for level, want in ((slow, asked), (slow_l2, asked_l2)):
        off = (want > 1.01) | ((want < 0.98) & (level[used] > 1))
        changed |= bool(off.any())
        level[used] = np.where(off, np.maximum(1.0, level[used] * want**0.8), level[used])
    return changed
