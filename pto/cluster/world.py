"""A world as data: the messages to the workers that run its ranks, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.cluster.kernel_message import KernelMessage
from pto.cluster.windows import RankWindow
from pto.core.errors import Diagnostic
from pto.core.intervals import Bytes, Intervals
from pto.run.machine.agents import BlockedAgent


@dataclass(frozen=True, slots=True)
class WindowArgument:
    """An array argument: the window it is in."""

    base: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """One launch of a stream of a rank."""

    rank: int
    stream: int
    message: KernelMessage
    args: tuple[Any, ...]
    blocks: int
    timeout: float | None


@dataclass(frozen=True, slots=True)
class WorldPlan:
    """A world as data: all windows of all ranks, and what is to be launched."""

    ranks: int
    target: tuple[str, str | None, str]
    windows: tuple[RankWindow, ...]
    launches: tuple[RankLaunch, ...]

    def needed(self, mine: range) -> list[RankWindow]:
        """Windows that ranks of a worker can access."""
        return [w for w in self.windows if any(rank in mine for rank in w.users)]


@dataclass(frozen=True, slots=True)
class RoundReport:
    """The report of a worker after a round."""

    is_done: bool
    stuck: tuple[BlockedAgent, ...] = ()
    finished: tuple[str, ...] = ()
    moved: bool = False
    plain: Intervals | None = None
    combined: Intervals | None = None
    nbytes: int = 0
    meetings: Mapping[Any, Mapping[Any, int]] = field(default_factory=dict[Any, dict[Any, int]])
    error: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """The results of a worker at the end."""

    windows: Mapping[int, tuple[Intervals, Bytes]]
    printed: Mapping[int, tuple[str, ...]]  # by launch


Meetings = Mapping[Any, Mapping[Any, int]]  # barrier -> participant -> arrivals


def met(all: Iterable[Meetings]) -> dict[Any, dict[Any, int]]:
    """Arrival counts of several workers, merged by maximum: counts only grow."""
    joint: dict[Any, dict[Any, int]] = {}
    for meetings in all:
        for group, counts in meetings.items():
            counts_of_group = joint.setdefault(group, {})
            for who, count in counts.items():
                counts_of_group[who] = max(count, counts_of_group.get(who, 0))
    return joint
