"""A world as data: what is sent to the workers that have its ranks, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.cluster.intervals import Bytes, Intervals
from pto.cluster.parcel import Parcel
from pto.cluster.windows import Window
from pto.core.errors import Diagnostic
from pto.run.machine.agents import Stuck


@dataclass(frozen=True, slots=True)
class There:
    """An argument that is an array: the window that it is."""

    base: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Submitted:
    """One launch, of a stream of a rank."""

    rank: int
    stream: int
    parcel: Parcel
    args: tuple[Any, ...]
    blocks: int
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A world as data: all windows of all ranks, and what is to be launched."""

    ranks: int
    target: tuple[str, str | None, str]
    windows: tuple[Window, ...]
    launches: tuple[Submitted, ...]

    def needed(self, mine: range) -> list[Window]:
        """Windows that ranks of a worker may reach."""
        return [w for w in self.windows if any(rank in mine for rank in w.users)]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a worker says after a turn."""

    is_done: bool
    stuck: tuple[Stuck, ...] = ()
    finished: tuple[str, ...] = ()
    moved: bool = False
    plain: Intervals | None = None
    combined: Intervals | None = None
    nbytes: int = 0
    meetings: Mapping[Any, Mapping[Any, int]] = field(default_factory=dict[Any, dict[Any, int]])
    error: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """What a worker has, when all are done."""

    windows: Mapping[int, tuple[Intervals, Bytes]]
    printed: Mapping[int, tuple[str, ...]]  # by launch
