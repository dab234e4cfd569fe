"""A list of findings that prints with the lines of the kernel."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence

from pto.core import render
from pto.core.errors import Diagnostic


def rendered(diagnostics: Sequence[Diagnostic]) -> str:
    """Findings with their lines, those of notebooks and consoles too."""
    return render.text(diagnostics, sources_of(diagnostics))


def sources_of(diagnostics: Sequence[Diagnostic]) -> render.Sources:
    """The text that findings point into; Python keeps that of cells and consoles."""
    places = [d.loc for d in diagnostics] + [n.loc for d in diagnostics for n in d.notes]
    texts = {loc.file: "".join(linecache.getlines(loc.file)) for loc in places if loc}
    nonempty = {file: text for file, text in texts.items() if text}
    return render.Sources(nonempty)


class Findings(list[Diagnostic]):
    """The findings of a check; empty means legal. Prints with the lines of the kernel.

    `about` describes a check that does not cover everything; `summary` is printed last.
    """

    def __init__(
        self, diagnostics: Iterable[Diagnostic] = (), about: str = "", summary: str = ""
    ) -> None:
        super().__init__(diagnostics)
        self.about = about
        self.summary = summary

    def __str__(self) -> str:
        text = rendered(list(self)) if len(self) else "no findings"
        text = f"{text}\n{self.summary}" if self.summary else text
        return f"{text}; {self.about}" if self.about and not len(self) else text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pto.core import html  # only notebooks need it

        return html.findings(list(self), sources_of(self))
