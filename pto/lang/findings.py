"""Findings as a person meets them: in a list, with the lines of the kernel."""

from __future__ import annotations

from pto.core.errors import Diagnostic
from pto.lang.call.place import rendered, sources_of


class Findings(list[Diagnostic]):
    """What a check found; empty means legal. Prints with the lines of the kernel."""

    def __str__(self) -> str:
        return rendered(self) if self else "no findings"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pto.core import html  # only notebooks need it

        return html.findings(self, sources_of(self))
