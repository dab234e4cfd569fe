"""`pto suite gym --time`: every launch of a case is timed for a chip before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pto.core.errors import PtoError, fail
from pto.core.render import Piece
from pto.ir.graph import Module
from pto.observe.timing import Timing, time
from pto.run.launch.host import Report, launch
from pto.suite.result import Result


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A launch that ran, and how long it takes on the chip."""

    report: Report
    us: float


def launch_timed(module: Module, **options: Any) -> TimedRun:
    """As `launch`; a launch without a positive time fails."""
    timing = timed(module, {n: options[n] for n in ("entry", "args", "blocks", "profile")})
    if not timing.core_us > 0:
        raise fail("PTO-C003", f"{timing.kernel} takes no time on {timing.device}")
    return TimedRun(launch(module, **options), timing.us)


def timed(module: Module, options: dict[str, Any]) -> Timing:
    """The timing, without data unless control flow depends on it."""
    try:
        return time(module, **options)
    except PtoError as error:
        if error.code != "PTO-C010":
            raise
        return time(module, **options, data=True)


def summary(results: Sequence[Result]) -> list[Piece]:
    """How many were timed, and the range of their times."""
    times = sorted((r.facts["us"], r.name) for r in results if "us" in r.facts)
    if not times:
        return [("warning", "no case was timed\n")]
    (shortest, first), (longest, last) = times[0], times[-1]
    text = f"{len(times)} timed: {shortest:.1f} us ({first}) to {longest:.1f} us ({last})"
    return [("", f"{text} on the chip\n")]
