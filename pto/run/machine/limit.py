"""Limits that end a launch before its program does: a timeout, or a request of another thread.

Loops of both engines check them between two iterations. While Python runs, an interrupt of the user
needs no check here; compiled code returns to Python for it (`run/jit/runtime/clock.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import monotonic

from pto.core.errors import Diagnostic, PtoError, fail


class TimedOut(PtoError):
    """A launch took longer than its timeout."""


class Stopped(BaseException):
    """Another thread has ended the same launch, and reports the reason."""


@dataclass(slots=True)
class Limit:
    """The deadline of one launch."""

    timeout: float | None = None
    end: float = float("inf")
    stopped: bool = False

    @classmethod
    def of(cls, timeout: float) -> Limit:
        """A limit that starts now."""
        if not isinstance(timeout, Real) or not timeout > 0:
            raise fail("PTO-U094", f"timeout is a number of seconds above 0, not {timeout!r}")
        return cls(float(timeout), monotonic() + float(timeout))

    def look(self, who: str) -> None:
        """Raise if the launch must end."""
        if self.stopped:
            raise Stopped
        if monotonic() > self.end:
            message = f"the launch has taken longer than its {self.timeout:g} s: {who} still runs"
            advice = "a loop that never ends, or a larger timeout is needed"
            raise TimedOut(Diagnostic("PTO-D114", message, help=advice))
