"""Converts between offsets of characters and the lines and columns of an editor.

Editors count columns in code units of UTF-16 unless they agree on another encoding; lines start at
0.
"""

from __future__ import annotations

from bisect import bisect_right

from pto.core.errors import Loc
from pto.lsp.document import TextSpan

_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


class Places:
    """The positions in one text."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._text = text
        self._starts = [0, *(i + 1 for i, ch in enumerate(text) if ch == "\n")]
        self._codec = {"utf-8": "utf-8", "utf-32": "utf-32-le"}.get(encoding, "utf-16-le")
        self._unit = _BYTES.get(encoding, 2)
        self._plain = text.isascii()

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        if self._plain:
            return line, offset - start
        return line, len(self._text[start:offset].encode(self._codec)) // self._unit

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column, clamped to the text."""
        if line >= len(self._starts):
            return len(self._text)
        start = self._starts[line]
        end = self._starts[line + 1] - 1 if line + 1 < len(self._starts) else len(self._text)
        if self._plain:
            return min(start + column, end)
        units = self._text[start:end].encode(self._codec)[: column * self._unit]
        return start + len(units.decode(self._codec, errors="ignore"))

    def span(self, loc: Loc | None) -> TextSpan:
        """The span of a finding's location, which counts from 1.

        The first line if it has no location.
        """
        if loc is None:
            return TextSpan(0, 0)
        line = min(loc.line, len(self._starts)) - 1
        start = self._starts[line] + loc.col - 1
        return TextSpan(start, start + max(1, (loc.end or loc.col + 1) - loc.col))
