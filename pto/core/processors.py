"""The number of processors that this process may use."""

from __future__ import annotations

import os


def usable() -> int:
    """The processors of the affinity mask; all of the machine where the system has none."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
