"""Special registers of a watched run: values that operations of pipes leave, and their reads.

An operation captures mode registers when it is issued, so writes of the scalar unit are ordered for
all operations. A value that an operation of another pipe leaves in a register is valid only after
that operation is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class WatchedRegisters(dict[str, Any]):
    """Values by name; `take` returns the registers accessed since the last call."""

    __slots__ = ("_left", "_read", "_written", "is_touched")

    def __init__(self, before: Mapping[str, Any]) -> None:
        super().__init__(before)
        self._left: set[str] = set()  # by an operation of a pipe other than the scalar unit
        self._read: set[str] = set()
        self._written: set[str] = set()
        self.is_touched = False  # since the last `forget`

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if self._left:
            self._note(name)
        return super().get(name, default)

    def _note(self, name: str) -> None:
        if name in self._left:
            self._read.add(name)
            self.is_touched = True

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._written.add(name)
        self.is_touched = True

    def forget(self) -> None:
        """Start a new operation: clear the recorded accesses."""
        self._read.clear()
        self._written.clear()
        self.is_touched = False

    def take(self, is_scalar: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The registers of other pipes that an operation has read, and those that it leaves."""
        read, written = tuple(self._read), tuple(self._written)
        if is_scalar:
            self._left.difference_update(written)
            return read, ()
        self._left.update(written)
        return read, written
