"""The part of a source that one kernel uses: functions, types and macros reachable from its entry.

An approximation by names that never omits a used definition: every overload or template of a
mentioned name counts as used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pto.cxx.source import closing, without_comments

_HEAD = re.compile(
    r"\b(?:struct|class|union)\s+(?P<type>[A-Za-z_]\w*)[^;{}()]*\{"
    r"|\b(?P<function>[A-Za-z_]\w*)\s*\((?:[^;{}()]|\([^;{}()]*\))*\)\s*(?:(?:const|noexcept|override)\b\s*)*"
    r"(?::[^;{}]*)?\{"
)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=[^;]*;")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_STATEMENTS = frozenset(("if", "for", "while", "switch", "catch", "return", "sizeof", "constexpr"))


def used(entry: str, texts: Iterable[str]) -> str:
    """All definitions that `entry` mentions, transitively, and the text between definitions.

    Text between definitions contains preprocessor conditions around whole kernels.
    """
    definitions, outside = dict[str, list[str]](), list[str]()
    for text in texts:
        _collect(without_comments(text), definitions, outside)
    name = entry.partition("<")[0].rpartition("::")[2].strip()
    if name not in definitions:  # from a macro or another file: everything counts as used
        return "\n".join([*outside, *(b for bodies in definitions.values() for b in bodies)])
    visited = {name}
    waiting = [name]
    used_bodies = list[str]()
    while waiting:
        for body in definitions.get(waiting.pop(), ()):
            used_bodies.append(body)
            fresh = {w for w in _WORD.findall(body) if w in definitions} - visited
            visited |= fresh
            waiting += fresh
    return "\n".join([*outside, *used_bodies])


def _collect(text: str, definitions: dict[str, list[str]], outside: list[str]) -> None:
    """Definitions of a text by name; `outside` gets the rest."""
    for pattern in (_ALIAS, _MACRO):
        for match in pattern.finditer(text):
            definitions.setdefault(match[1], []).append(match[0])
    text = _MACRO.sub("", text)
    code = _DIRECTIVE.sub(lambda line: " " * len(line[0]), text)
    at = 0
    for head in _HEAD.finditer(code):
        name = head["type"] or head["function"]
        if head.start() < at or name in _STATEMENTS:
            continue
        outside.append(text[at : head.start()])
        close = closing(code, head.end() - 1, "{}")
        at = len(code) if close is None else close + 1
        definitions.setdefault(name, []).append(text[head.start() : at])
        if head["type"]:  # its members are used through it
            inner: list[str] = []
            _collect(text[head.end() : at - 1], definitions, inner)
    outside.append(text[at:])
