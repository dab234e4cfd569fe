"""Errors of a C++ compiler as findings at the user's line, with the origin of a missing name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pto.core.errors import Diagnostic, Loc, Note, PtoError
from pto.cxx import provided

_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<col>\d+):)? (?:fatal )?error: (.*)$")
_FROM = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<col>\d+):)?\s+(?:required from|note: in )"
)
_LINKED = re.compile(r"undefined (?:reference to|symbol:?) [`']?([^'\n]+)")
_MISSING = (
    re.compile(r"[‘'](?P<name>[\w:]+)(?:<.*>)?[’'] (?:was not declared|has not been declared)"),
    re.compile(r"[‘'](?P<name>[\w:]+)[’'] (?:does not name a type|is not a member of)"),
    re.compile(r"use of undeclared identifier '(?P<name>[\w:]+)'"),
    re.compile(r"(?:unknown type name|no type named|no template named) '(?P<name>[\w:]+)'"),
    re.compile(r"there are no arguments to [‘'](?P<name>\w+)[’']"),
    re.compile(r"'?(?P<name>[\w./-]+\.(?:h|hpp|cuh))'?(?: file not found|: No such file)"),
)
_MORE = 4  # further errors that are shown


@dataclass(frozen=True, slots=True)
class _Error:
    text: str
    loc: Loc | None


def refusal(program: str, text: str, ours: str) -> PtoError:
    """The errors in a compiler's output, the first one as the message.

    `ours` is the folder of our header: an error inside it is located at the call in the user's
    source.
    """
    errors = _errors(text, ours)
    if not errors:
        output = "\n".join(line[:400] for line in text.splitlines()[:12])
        return PtoError(Diagnostic("PTO-U243", f"{program} says:\n{output}"))
    first = errors[0]
    notes = tuple(Note(error.text, error.loc) for error in errors[1 : 1 + _MORE])
    left = len(errors) - 1 - len(notes)
    notes += (Note(f"and {left} more errors"),) if left > 0 else ()
    helps = list(dict.fromkeys(h for e in errors if (h := explained(e.text))))
    return PtoError(
        Diagnostic(
            "PTO-U243",
            f"{program}: {first.text}",
            first.loc,
            notes=notes,
            help="; ".join(helps[:3]) or None,
        )
    )


def _errors(text: str, ours: str) -> list[_Error]:
    """Every error once, at the nearest location outside our header."""
    lines, by_text = text.splitlines(), dict[tuple[str, str], _Error]()
    for n, line in enumerate(lines):
        match = _ERROR.match(line)
        if match is None:
            linked = _LINKED.search(line)
            if linked:
                by_text.setdefault((linked[1], ""), _Error(f"undefined: {linked[1]}", None))
            continue
        loc = _loc(match)
        if loc.file.startswith(ours):
            loc = _caller(lines, n, ours) or loc
        by_text.setdefault((match[4], str(loc)), _Error(match[4][:400], loc))
    return list(by_text.values())


def _loc(match: re.Match[str]) -> Loc:
    return Loc(match["file"], int(match["line"]), int(match["col"] or 1))


def _caller(lines: list[str], at: int, ours: str) -> Loc | None:
    """The user's line that leads to an error in our header: g++ names it before, clang after."""
    for line in (*reversed(lines[max(0, at - 20) : at]), *lines[at + 1 : at + 20]):
        match = _FROM.match(line)
        if match is not None and not match["file"].startswith(ours):
            return _loc(match)
    return None


def explained(error: str) -> str | None:
    """The origin of the name that an error reports as missing, or None if unknown."""
    name = next((m["name"] for p in _MISSING if (m := p.search(error))), None)
    if name is None:
        return None
    provider_text = provided.provider(name)
    if provider_text:
        return provider_text
    if "/" in name or "." in name:
        return f"{name} is not a known header of the SDK or the library: give its folder by -I"
    return f"`{name}` is not provided by the device compiler, the SDK or the library as known here"
