"""Diagnostics: what is wrong, where, and what to do about it.

Every finding of every layer is a `Diagnostic`; an operation that cannot continue raises a
`PtoError` with one or more. `core/render.py` draws findings; the rules are in the ISA table.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

T = TypeVar("T")
Severity = Literal["error", "warning"]

AREAS = {
    "P": "parse",
    "T": "type",
    "S": "shape and structure",
    "L": "layout",
    "X": "profile",
    "M": "memory",
    "R": "race",
    "D": "deadlock and flags",
    "V": "valid region and undefined data",
    "C": "cost and time",
    "J": "judged candidates",
    "G": "graphs of tasks",
    "U": "usage",
}


# Codes of usage that may be about a request: a command line, an argument, the machine. Other codes
# of usage, and these where they point into a file, are about a program.
_REQUESTS = (
    *((1, 41), (60, 61), (70, 72), (74, 76), (90, 94), (190, 194), (210, 213), (219, 219)),
    *((230, 232), (242, 242), (246, 246), (248, 248), (270, 270), (272, 275), (280, 280)),
    *((300, 307), (320, 320), (330, 330), (340, 340), (350, 351), (360, 360)),
)


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in a source file; lines and columns count from 1, `end` is one past the last."""

    file: str
    line: int
    col: int = 1
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


@dataclass(frozen=True, slots=True)
class Note:
    """A second place or fact that belongs to a finding."""

    message: str
    loc: Loc | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a stable code, a sentence with the actual values, and where it is."""

    code: str
    message: str
    loc: Loc | None = None
    severity: Severity = "error"
    notes: tuple[Note, ...] = ()
    help: str | None = None

    @property
    def is_request(self) -> bool:
        """True if the request is wrong and not a program: a command then ends with status 2."""
        area, number = self.code[4], int(self.code[5:])
        is_usage = area == "U" and any(low <= number <= high for low, high in _REQUESTS)
        return self.loc is None and (is_usage or self.code == "PTO-P004")

    def at(self, loc: Loc | None) -> Diagnostic:
        """The same finding at `loc`, unless it already has a place of its own."""
        return self if self.loc is not None else replace(self, loc=loc)

    def _repr_html_(self) -> str:
        from pto.core import html  # which draws these

        return html.findings([self])

    def __str__(self) -> str:
        where = f"{self.loc}: " if self.loc else ""
        return f"{where}{self.severity}[{self.code}]: {self.message}"


class PtoError(Exception):
    """The program, its data or the request breaks a rule. Carries at least one diagnostic."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(str(d) for d in self.diagnostics)

    @property
    def code(self) -> str:
        return self.diagnostics[0].code


def fail(code: str, message: str, *, loc: Loc | None = None, help: str | None = None) -> PtoError:
    """Build the error to raise: `raise fail("PTO-T001", "...")`."""
    return PtoError(Diagnostic(code, message, loc, help=help))


_MEANT = "did you mean"


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """A help line that names the closest known words, or None when nothing is close."""
    close = difflib.get_close_matches(word, list(candidates), n=3, cutoff=0.6)
    if not close:
        return None
    return f"{_MEANT} " + " or ".join(f"`{c}`" for c in close) + "?"


def look_up(
    entries: Mapping[str, T], key: str, code: str, wrong_key: str, listed: Iterable[str] = ()
) -> T:
    """The entry of a key; if there is none, an error that lists `wrong_key` there is."""
    value = entries.get(key)
    if value is None:
        names = ", ".join(listed or entries)
        raise fail(code, f"unknown {wrong_key} are {names}", help=nearest(key, entries))
    return value


def suggestions(help: str | None) -> list[str]:
    """The words that a help line of `nearest` names."""
    return re.findall(r"`([^`]+)`", help) if help and help.startswith(_MEANT) else []
