"""Findings and other styled text as HTML, for notebooks. All text is escaped: none is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pto.core.errors import Diagnostic
from pto.core.render import Piece, Sources, pieces

# Colours that read on a light and on a dark page.
_STYLES = {
    "error": "color:#d03a3a;font-weight:bold",
    "warning": "color:#b07d00;font-weight:bold",
    "title": "font-weight:bold",
    "gutter": "color:#4a7fd0",
    "note": "color:#1a93a8;font-weight:bold",
    "help": "color:#2e9a4a;font-weight:bold",
    "dim": "color:#888",
}
_BLOCK = "line-height:1.35;overflow-x:auto;padding:.5em;border-left:3px solid"


def styled(parts: Iterable[Piece]) -> str:
    """(style, text) pairs as HTML, each text in its colour."""
    return "".join(_span(style, text) for style, text in parts)


def _span(style: str, text: str) -> str:
    css = _STYLES.get(style)
    return f'<span style="{css}">{escape(text)}</span>' if css else escape(text)


def block(inner: str, colour: str = "#888") -> str:
    """Text in columns; `inner` is HTML already."""
    return f'<pre style="{_BLOCK} {colour}">{inner}</pre>'


def findings(diagnostics: Sequence[Diagnostic], sources: Sources | None = None) -> str:
    """Findings with their source lines; "no findings" in green for an empty list."""
    if not diagnostics:
        return block('<span style="color:#2e9a4a;font-weight:bold">no findings</span>', "#2e9a4a")
    texts = sources or Sources()
    bad = any(d.severity == "error" for d in diagnostics)
    rendered = "\n".join(styled(pieces(d, texts)) for d in diagnostics)
    return block(rendered, "#d03a3a" if bad else "#b07d00")
