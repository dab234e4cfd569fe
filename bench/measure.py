"""How benchmarks measure: in interleaved rounds, so that a busy machine slows all candidates."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from statistics import median

Rows = list[tuple[str, float, str]]  # (name, value, unit), what every bench module's run() returns


def installed() -> dict[str, str]:
    """The environment of an installed package, whose bytecode Python keeps."""
    return {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(work: Mapping[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Median seconds of one call of each function, over `rounds` that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for function in work.values():
        function()  # fill caches outside the measurement
    for _ in range(rounds):
        for name, function in work.items():
            start = time.perf_counter()
            for _ in range(calls):
                function()
            taken[name].append((time.perf_counter() - start) / calls)
    return {name: median(times) for name, times in taken.items()}


def table(title: str, rows: Rows) -> str:
    width = max(len(name) for name, _, _ in rows)
    return "\n".join(
        [title, *(f"  {name:<{width}}  {value:9.3f} {unit}" for name, value, unit in rows)]
    )
