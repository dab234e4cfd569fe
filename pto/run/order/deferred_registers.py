"""Registers of a core when operations are done later than they are issued.

An operation sees the registers as they were when it was issued. What it writes itself (a counter,
a mode that is used up) is seen by operations issued after it, unless the scalar unit has written
the same register since.
"""

from __future__ import annotations

from typing import Any


class Registers(dict[str, Any]):
    """Values by name, each with the number of the operation that wrote it."""

    __slots__ = ("_copy", "_now", "_times", "written")

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, Any] = {}  # by the operation at work
        self._times: dict[str, int] = {}
        self._now = 0
        self._copy: Registers | None = None  # while nothing was written since

    def take(self, now: int) -> None:
        """Operation `now` is at work, or the scalar unit after it."""
        self._now = now
        self.written = {}

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._times[name] = self._now
        self.written[name] = value
        self._copy = None

    def kept(self) -> Registers:
        """As they are now."""
        if self._copy is None:
            made = Registers()
            made.update(self)
            made._times = dict(self._times)
            self._copy = made
        return self._copy

    def tell(self, *others: Registers) -> None:
        """What was written here reaches those of later operations."""
        for name, value in self.written.items():
            for other in others:
                if other._times.get(name, -1) < self._now:
                    dict.__setitem__(other, name, value)
                    other._times[name] = self._now
                    other._copy = None
