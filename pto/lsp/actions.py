"""Quick fixes of an editor: edits made from the text of a finding."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pto.core.errors import Diagnostic, suggestions
from pto.lsp.document import TextSpan

_WRITTEN = re.compile(r"%\S+ is (.+), but its type is written .+")
_LEGAL = re.compile(r"legal under (\w+)|it does on (\w+)")
_ARCH = re.compile(r'(?:pto\.target_arch = |\bprofile=)"(\w+)"')
_FLAG = re.compile(
    r"set_flag\((\w+), (\w+), (\d+)\) after line (\d+), wait_flag before line (\d+)"
    r"(?:, primed before and drained after the loop of line (\d+))?"
)
_BARRIER = re.compile(r"barrier (\w+) before line (\d+)")
_WORD = re.compile(r"[%!#@]?[\w$.]+")


class QuickFix(NamedTuple):
    """Replacement texts for spans, with a title for the menu."""

    title: str
    changes: tuple[tuple[TextSpan, str], ...]


def fixes(finding: Diagnostic, text: str, span: TextSpan) -> list[QuickFix]:
    """Edits that fix a finding; `span` is its position in the text."""
    return [edit for make in _MAKERS for edit in make(finding, text, span)]


def _suggested(finding: Diagnostic, text: str, span: TextSpan) -> Iterator[QuickFix]:
    """`did you mean`: replace the unknown word of the operation by the suggested one."""
    wrong = _wrong_word(finding, text, span)
    if wrong is None:
        return
    for word in suggestions(finding.help):
        old = text[wrong.start : wrong.end]
        mark = old[0] if old[0] in "%!#@" and word[0] != old[0] else ""
        yield QuickFix(f"write {mark}{word}", ((wrong, mark + word),))


def _wrong_word(finding: Diagnostic, text: str, span: TextSpan) -> TextSpan | None:
    """The span of a wrong word: in the marked text, else later in the same operation."""
    message, before = finding.message, r"[\w$%!#@]" if _is_python(finding) else r"[\w$.%!#@]"
    end = text.find("\n", span.end)
    marked, rest = text[span.start : span.end], text[span.start : end if end >= 0 else len(text)]
    quoted = re.findall(r"`([^`]+)`", message)
    words = [*quoted, *(w.rstrip(".,:") for w in _WORD.findall(message))]
    for text_part in (marked, rest):
        for word in words:
            match = re.search(rf"(?<!{before}){re.escape(word)}(?![\w$])", text_part)
            if match and word not in ("op", "has", "no"):
                return TextSpan(span.start + match.start(), span.start + match.end())
    return None


def _typed(finding: Diagnostic, text: str, span: TextSpan) -> Iterator[QuickFix]:
    """Replace a written type that differs from the type of the value."""
    match = _WRITTEN.fullmatch(finding.message) if finding.code == "PTO-T040" else None
    if match:
        yield QuickFix(f"write its type, {match[1]}", ((span, match[1]),))


def _retargeted(finding: Diagnostic, text: str, span: TextSpan) -> Iterator[QuickFix]:
    """Declare the target that has the instruction."""
    match = _LEGAL.search(finding.help or "") or _LEGAL.search(finding.message)
    declared = [
        declaration for declaration in _ARCH.finditer(text) if declaration.start() <= span.start
    ]
    if match and declared and finding.code.startswith("PTO-X"):
        profile = match[1] or match[2]
        yield QuickFix(
            f"declare the target {profile}", ((TextSpan(*declared[-1].span(1)), profile),)
        )


def _ordered(finding: Diagnostic, text: str, span: TextSpan) -> Iterator[QuickFix]:
    """For a Python kernel: insert the flag or barrier that a run has proven to end a race."""
    here = {n.loc.file for n in finding.notes if n.loc} | {finding.loc.file if finding.loc else ""}
    if not _is_python(finding) or len(here) > 1 or not finding.help:
        return
    flag, barrier = _FLAG.search(finding.help), _BARRIER.search(finding.help)
    if flag is not None:
        words = f'"{flag[1]}", "{flag[2]}", {flag[3]}'
        sets, waits = f"pto.isa.set_flag({words})", f"pto.isa.wait_flag({words})"
        lines = [(int(flag[4]), True, sets), (int(flag[5]), False, waits)]
        if flag[6]:
            lines += [(int(flag[6]), False, sets), (int(flag[6]), True, waits)]
        elif flag[4] == flag[5]:
            return  # both are in one statement
    elif barrier is not None:
        lines = [(int(barrier[2]), False, f'pto.isa.barrier("{barrier[1]}")')]
    else:
        return
    changes = tuple(insertion for line in lines for insertion in _inserted(text, *line))
    if len(changes) == len(lines):
        yield QuickFix(finding.help.partition(" (re-run")[0], changes)


def _inserted(text: str, line: int, after: bool, statement: str) -> Iterator[tuple[TextSpan, str]]:
    """Insert a statement before or after the one at a line; no edit if the text is not Python."""
    try:
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)]
    except (SyntaxError, ValueError):
        return
    around = [n for n in nodes if n.lineno <= line <= (n.end_lineno or n.lineno)]
    if around:
        inner = max(around, key=lambda n: (n.lineno, n.col_offset))
        at = (inner.end_lineno or inner.lineno) if after else inner.lineno - 1
        offset = sum(map(len, text.splitlines(keepends=True)[:at]))
        yield TextSpan(offset, offset), f"{' ' * inner.col_offset}{statement}\n"


def _is_python(finding: Diagnostic) -> bool:
    return finding.loc is not None and finding.loc.file.endswith(".py")


_MAKERS: tuple[Callable[[Diagnostic, str, TextSpan], Iterator[QuickFix]], ...] = (
    _suggested,
    _typed,
    _retargeted,
    _ordered,
)
