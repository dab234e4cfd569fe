"""Findings as a person meets them: in a list, with the lines of the kernel."""

from __future__ import annotations

from collections.abc import Iterable

from pto.core.errors import Diagnostic
from pto.lang.call.place import rendered, sources_of


class Findings(list[Diagnostic]):
    """What a check found; empty means legal. Prints with the lines of the kernel.

    `about` says what was looked at, where that is not everything; `summary` is a last line.
    """

    def __init__(
        self, found: Iterable[Diagnostic] = (), about: str = "", summary: str = ""
    ) -> None:
        super().__init__(found)
        self.about = about
        self.summary = summary

    def __str__(self) -> str:
        shown = rendered(self) if self else "no findings"
        shown = f"{shown}\n{self.summary}" if self.summary else shown
        return f"{shown}; {self.about}" if self.about and not self else shown

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pto.core import html  # only notebooks need it

        return html.findings(self, sources_of(self))
