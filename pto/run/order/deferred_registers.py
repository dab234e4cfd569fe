"""Registers of a core when operations run later than they are issued.

An operation reads the registers as of its issue. Registers that it writes itself (a counter, a mode
that is used once) are visible to operations issued after it, unless the scalar unit has written the
same register since.
"""

from __future__ import annotations

from typing import Any


class DeferredRegisters(dict[str, Any]):
    """Values by name, each with the number of the operation that wrote it."""

    __slots__ = ("_copy", "_now", "_times", "written")

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, Any] = {}  # by the running operation
        self._times: dict[str, int] = {}
        self._now = 0
        self._copy: DeferredRegisters | None = None  # valid until the next write

    def take(self, now: int) -> None:
        """Mark operation `now` as running, or the scalar unit after it."""
        self._now = now
        self.written = {}

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._times[name] = self._now
        self.written[name] = value
        self._copy = None

    def kept(self) -> DeferredRegisters:
        """A snapshot of the registers."""
        if self._copy is None:
            copy = DeferredRegisters()
            copy.update(self)
            copy._times = dict(self._times)
            self._copy = copy
        return self._copy

    def publish(self, *others: DeferredRegisters) -> None:
        """Copy registers written here to those of later operations."""
        for name, value in self.written.items():
            for other in others:
                if other._times.get(name, -1) < self._now:
                    dict.__setitem__(other, name, value)
                    other._times[name] = self._now
                    other._copy = None
