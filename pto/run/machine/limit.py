"""What ends a launch before its program does: its time is over, or somebody asked for it.

Loops of both engines come by here between two turns. An interrupt of the user needs nothing here
while Python runs; compiled code comes back to Python for it (`run/jit/border/clock.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import monotonic

from pto.core.errors import Diagnostic, PtoError, fail


class TimedOut(PtoError):
    """A launch took longer than it was given."""


class Stopped(BaseException):
    """Another thread of the same launch has ended it, and says why."""


@dataclass(slots=True)
class Limit:
    """Of one launch: how long it may take."""

    timeout: float | None = None
    end: float = float("inf")
    stopped: bool = False

    @classmethod
    def of(cls, timeout: float) -> Limit:
        """From now on."""
        if not isinstance(timeout, Real) or not timeout > 0:
            raise fail("PTO-U094", f"timeout is a number of seconds above 0, not {timeout!r}")
        return cls(float(timeout), monotonic() + float(timeout))

    def look(self, who: str) -> None:
        """Raises when the launch is to end."""
        if self.stopped:
            raise Stopped
        if monotonic() > self.end:
            message = f"the launch has taken longer than its {self.timeout:g} s: {who} still runs"
            advice = "a loop that never ends, or a larger timeout is needed"
            raise TimedOut(Diagnostic("PTO-D114", message, help=advice))
