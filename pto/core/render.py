"""How findings look: text with carets, JSON, SARIF.

A finding becomes a list of (style, text) pairs; joined texts are the plain form, and the command
line colours them by style.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, Loc, Note

Piece = tuple[str, str]  # (style, text)

_WIDEST_LINE = 160  # no carets in longer lines: column 900,000 of a one-line file is not readable


class Sources:
    """Text of the files that findings point into, read once and only when needed."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._lines: dict[str, list[str]] = {f: t.split("\n") for f, t in (texts or {}).items()}

    def line(self, loc: Loc) -> str | None:
        if loc.file not in self._lines:
            try:
                text = Path(loc.file).read_text(encoding="utf-8", errors="replace")
            except (OSError, ValueError):
                text = ""
            self._lines[loc.file] = text.split("\n")
        lines = self._lines[loc.file]
        return lines[loc.line - 1] if 0 < loc.line <= len(lines) else None


def pieces(diagnostic: Diagnostic, sources: Sources) -> list[Piece]:
    """One finding as (style, text) pairs, ending in a newline."""
    d = diagnostic
    out: list[Piece] = [(d.severity, f"{d.severity}[{d.code}]"), ("title", f": {d.message}\n")]
    out += place(d.loc, sources, d.severity, "^", "")
    for note in d.notes:
        out += _note(note, d.loc, sources)
    if d.help:
        out += [("gutter", "   = "), ("help", "help: "), ("", f"{d.help}\n")]
    return out


def text(diagnostics: Iterable[Diagnostic], sources: Sources | None = None) -> str:
    """Findings as plain text, one blank line between them."""
    texts = sources or Sources()
    return "\n".join("".join(t for _, t in pieces(d, texts)) for d in diagnostics)


def place(loc: Loc | None, sources: Sources, style: str, mark: str, label: str) -> list[Piece]:
    """The location and its source line, with marks under the columns of `loc`."""
    if loc is None:
        return []
    out: list[Piece] = [("gutter", "  --> "), ("", f"{loc}\n")]
    line = sources.line(loc)
    if line is None:
        return out
    start = max(0, loc.col - 1 - _WIDEST_LINE // 2) if loc.col > _WIDEST_LINE else 0
    visible = line[start : start + _WIDEST_LINE].replace("\t", " ")
    col = loc.col - 1 - start
    width = max(1, min((loc.end or loc.col + 1) - loc.col, len(visible) - col))
    number = str(loc.line)
    pad = " " * len(number)
    out += [("gutter", f"{number} | "), ("", visible + "\n")]
    out += [("gutter", f"{pad} | "), (style, " " * col + mark * width + label + "\n")]
    return out


def _note(note: Note, main: Loc | None, sources: Sources) -> list[Piece]:
    head: list[Piece] = [("gutter", "   = "), ("note", "note: "), ("", f"{note.message}\n")]
    if note.loc is None or note.loc == main:
        return head
    return head + place(note.loc, sources, "note", "-", "")


def as_json(diagnostics: Sequence[Diagnostic], **header: Any) -> str:
    """Findings as one JSON object; `header` holds what the run was (profile, files...)."""
    return json.dumps({**header, "findings": [plain(d) for d in diagnostics]}, indent=2)


def plain(d: Diagnostic) -> dict[str, Any]:
    """One finding as plain data."""
    return {
        "code": d.code,
        "severity": d.severity,
        "message": d.message,
        "loc": _plain_loc(d.loc),
        "notes": [{"message": n.message, "loc": _plain_loc(n.loc)} for n in d.notes],
        "help": d.help,
    }


def _plain_loc(loc: Loc | None) -> dict[str, Any] | None:
    if loc is None:
        return None
    return {"file": loc.file, "line": loc.line, "col": loc.col, "end": loc.end}


def as_sarif(diagnostics: Sequence[Diagnostic], version: str) -> str:
    """Findings as SARIF 2.1.0, which code hosts and editors show beside the line."""
    rules = sorted({d.code for d in diagnostics})
    driver = {"name": "pto", "version": version, "rules": [{"id": code} for code in rules]}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(d, rules) for d in diagnostics]}
    document = {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [run],
    }
    return json.dumps(document, indent=2)


def _sarif_result(d: Diagnostic, rules: Sequence[str]) -> dict[str, Any]:
    message = d.message + (f" ({d.help})" if d.help else "")
    result: dict[str, Any] = {
        "ruleId": d.code,
        "ruleIndex": rules.index(d.code),
        "level": d.severity,
        "message": {"text": message},
        "locations": [_sarif_location(d.loc)] if d.loc else [],
    }
    related = [{**_sarif_location(n.loc), "message": {"text": n.message}} for n in d.notes if n.loc]
    if related:
        result["relatedLocations"] = related
    return result


def _sarif_location(loc: Loc) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": loc.line, "startColumn": loc.col}
    if loc.end is not None:
        region["endColumn"] = loc.end
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": loc.file.replace("\\", "/")},
            "region": region,
        }
    }
