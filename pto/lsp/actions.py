"""What an editor offers to change for a finding: edits made from what the finding itself says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pto.core.errors import Diagnostic, suggestions
from pto.lsp.features import Span

_WRITTEN = re.compile(r"%\S+ is (.+), but its type is written .+")
_LEGAL = re.compile(r"legal under (\w+)|it does on (\w+)")
_ARCH = re.compile(r'pto\.target_arch = "(\w+)"')
_WORD = re.compile(r"[%!#@]?[\w$.]+")


class Edit(NamedTuple):
    """`text` in the place of a span, under a title that a menu shows."""

    title: str
    span: Span
    text: str


def fixes(finding: Diagnostic, text: str, span: Span) -> list[Edit]:
    """Edits that answer a finding; `span` is where the text has it."""
    return [edit for make in _MAKERS for edit in make(finding, text, span)]


def _suggested(finding: Diagnostic, text: str, span: Span) -> Iterator[Edit]:
    """`did you mean`: the word of the message that stands in the operation, for the one meant."""
    wrong = _wrong_word(finding.message, text, span)
    if wrong is None:
        return
    for word in suggestions(finding.help):
        old = text[wrong.start : wrong.end]
        mark = old[0] if old[0] in "%!#@" and word[0] != old[0] else ""
        yield Edit(f"write {mark}{word}", wrong, mark + word)


def _wrong_word(message: str, text: str, span: Span) -> Span | None:
    """In the marked text if it is there, else further on in the same operation."""
    end = text.find("\n", span.end)
    marked, rest = text[span.start : span.end], text[span.start : end if end >= 0 else len(text)]
    quoted = re.findall(r"`([^`]+)`", message)
    words = [*quoted, *(w.rstrip(".,:") for w in _WORD.findall(message))]
    for place in (marked, rest):
        for word in words:
            found = re.search(rf"(?<![\w$.%!#@]){re.escape(word)}(?![\w$])", place)
            if found and word not in ("op", "has", "no"):
                return Span(span.start + found.start(), span.start + found.end())
    return None


def _typed(finding: Diagnostic, text: str, span: Span) -> Iterator[Edit]:
    """A written type that is not that of the value."""
    found = _WRITTEN.fullmatch(finding.message) if finding.code == "PTO-T040" else None
    if found:
        yield Edit(f"write its type, {found[1]}", span, found[1])


def _retargeted(finding: Diagnostic, text: str, span: Span) -> Iterator[Edit]:
    """What another profile has: declare that one."""
    found = _LEGAL.search(finding.help or "") or _LEGAL.search(finding.message)
    arch = _ARCH.search(text)
    if found and arch and finding.code.startswith("PTO-X"):
        profile = found[1] or found[2]
        yield Edit(f"declare the target {profile}", Span(*arch.span(1)), profile)


_MAKERS: tuple[Callable[[Diagnostic, str, Span], Iterator[Edit]], ...] = (
    _suggested,
    _typed,
    _retargeted,
)
