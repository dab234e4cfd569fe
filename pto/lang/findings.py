"""Findings as a person meets them: in a list, with the lines of the kernel."""

from __future__ import annotations

from pto.core.errors import Diagnostic
from pto.lang.place import rendered


class Findings(list[Diagnostic]):
    """What a check found; empty means legal. Prints with the lines of the kernel."""

    def __str__(self) -> str:
        return rendered(self) if self else "no findings"

    __repr__ = __str__
