"""The costs of work on the chips of a profile: data types. Values: `costs_*.py`.

Cycles are of the core clock. An instruction is issued by the scalar unit, starts when its pipe is
free and its waits have ended, occupies the pipe for its occupancy, and is done (its result visible,
later flags set) a latency later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pto.core.errors import fail

# measured: fitted to a published table of a device. vendor: from a vendor's file or manual. sim:
# from a vendor's simulator or another model. guess: not published.
Status = Literal["measured", "vendor", "sim", "guess"]

# How far off a part of a time is, as a share of it, by what its cost rests on. Chosen on the rows
# marked fit of docs/timing_rows.md, so that intervals cover four of five of them.
SPREAD: Mapping[str, float] = {
    "measured": 0.15,
    "vendor": 0.35,
    "sim": 0.35,
    "guess": 0.6,
    "shared": 0.12,  # rates of memory and cache, from copies of known size
    "launch": 0.35,  # fixed costs of a launch
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Numbers of one class of work, for the formula `form` of `observe/timing/price.py`."""

    form: str
    status: Status
    source: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def __getitem__(self, name: str) -> float:
        return self.numbers.get(name, 0.0)

    @property
    def text(self) -> str:
        """`load: issue 20.6, r_hit 87 (measured: ...)`, as `pto isa` shows it."""
        numbers = ", ".join(f"{name} {value:g}" for name, value in self.numbers.items())
        return f"{self.form}: {numbers} ({self.status}: {self.source})"


def cost(form: str, status: Status, source: str, **numbers: float) -> Cost:
    return Cost(form, status, source, numbers)


LaunchKind = Literal["vector", "cube", "mix"]  # the cores that a launch uses; mix: both


class LaunchCost(NamedTuple):
    """Fixed costs of a launch, as a profiler shows the kernel: without the host."""

    us: float  # before the first instruction and after the last one
    cold_us: float  # until the first bytes that are not in the L2 cache arrive


@dataclass(frozen=True, slots=True)
class Chip:
    """Properties shared by all cores of a chip, and costs that every instruction has."""

    mhz: float  # of the chips that were measured
    queue_depth: int
    launches: Mapping[LaunchKind, LaunchCost]
    hbm_read: float  # bytes a second
    hbm_write: float  # bytes a second
    hbm_new: float  # bytes a second of inputs that no earlier launch has read
    small_copies: float  # share of both that copies of at most 8 KiB reach
    l2_read: float  # bytes a second
    l2_bytes: float
    past_row: float  # bytes of bandwidth lost with each row that bypasses the cache
    unaligned: int  # granularity in bytes of rows that begin off 32, both ends together
    flag: float  # cycles from the end of the work to the pipe that waits
    cross_core: float  # the same between cores
    issue: float  # cycles of the scalar unit for each instruction
    loop: float  # the same in a loop of the headers, which computes addresses for each
    slowest: float  # of the clock, under power throttling: reports give a band
    vector_functions: bool  # a vector scope or tile operation is one function with start-up
    kind: LaunchKind = "mix"  # of the launch that is timed

    @property
    def launch_us(self) -> float:
        return self.launches[self.kind].us

    @property
    def cold_start_us(self) -> float:
        return self.launches[self.kind].cold_us


OTHER = "other>path"  # between buffers, if no rate is published


@dataclass(frozen=True, slots=True)
class Costs:
    """All costs of one profile."""

    chip: Chip
    classes: Mapping[str, Cost]
    # inside a vector function: class -> (latency, interval) of each type width
    lanes: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def of(self, name: str) -> Cost:
        cost = self.classes.get(name) or (self.classes.get(OTHER) if ">" in name else None)
        if cost is None:
            raise fail("PTO-C001", f"the cost of `{name}` on this chip is not known")
        return cost
