"""A catalogue of planted faults: right programs, and named edits that make each of them wrong.

A program is a `.pto` file whose lines carry labels (`// @load`). Its head says how it runs and what
may be done to it:

    // args: x=range:1024xf32 y=zeros:1024xf32
    // targets: a2a3 a5                     the program runs for each; `$target` stands for it
    // variant tadd: pto.tadd ins(...) ...  the program runs with each; `$variant` stands for it
    // fault NAME: drop @w => PTO-R001 @use + PTO-D202 @s
    // fault[a2a3] NAME: ...                on these targets only

An edit is `drop @a @b`, `swap @a @b`, `move @a before @b`, `move @a after @b`,
`put {text} before @a` (or after; `as @new` in front of it labels the new line), or
`in @a {old} {new}`; several are joined by `;`. Behind `=>` stand the findings by code and label.
They were reasoned from the rules of order, not copied from a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "faults"
_LABEL = re.compile(r"//\s*@(\S+)")
_HEAD = re.compile(r"// (\w+)(?:\[([\w ]+)\])?(?: ([^:]*))?: (.*)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One edit of one program for one target, and what must be found."""

    name: str
    path: Path
    target: str
    text: str
    expected: tuple[tuple[str, int], ...]  # code, line

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Program:
    """A right program for one target, with one of its variants."""

    name: str
    path: Path
    target: str
    text: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Sheet:
    path: Path
    lines: tuple[str, ...]
    heads: tuple[tuple[str, str, str, str], ...]  # word, targets, name, text

    @classmethod
    def read(cls, path: Path) -> _Sheet:
        lines = path.read_text(encoding="utf-8").split("\n")
        heads = [m.groups("") for line in lines if (m := _HEAD.match(line))]
        return cls(path, tuple(lines), tuple((a, b, c, d) for a, b, c, d in heads))

    def all(self, word: str) -> list[tuple[str, str, str]]:
        return [(targets, name, text) for w, targets, name, text in self.heads if w == word]

    def setups(self) -> Iterator[tuple[str, str, str, str]]:
        """(target, name, variant, text) of each right program."""
        (_, _, targets), *_ = self.all("targets")
        variants = self.all("variant") or [("", "", "")]
        for target in targets.split():
            for only, name, line in variants:
                if only and target not in only.split():
                    continue
                text = "\n".join(self.lines).replace("$target", target).replace("$variant", line)
                parts = [self.path.stem, *([name] if name else []), target]
                yield target, " ".join(parts), name, text


def sheets() -> list[_Sheet]:
    return [_Sheet.read(path) for path in sorted(HERE.glob("*.pto"))]


def programs() -> list[Program]:
    return [
        Program(name, sheet.path, target, text)
        for sheet in sheets()
        for target, name, _, text in sheet.setups()
    ]


def faults() -> list[Fault]:
    return [
        _fault(sheet, target, f"{setup}: {name}", text, how)
        for sheet in sheets()
        for target, setup, _, text in sheet.setups()
        for only, name, how in sheet.all("fault")
        if not only or target in only.split()
    ]


def _fault(sheet: _Sheet, target: str, name: str, text: str, how: str) -> Fault:
    edits, _, found = how.partition("=>")
    lines = text.split("\n")
    for edit in edits.split(";"):
        lines = _edited(lines, edit.strip())
    expected = tuple(_expected(lines, each.strip()) for each in found.split(" + "))
    return Fault(name, sheet.path, target, "\n".join(lines), expected)


def _expected(lines: list[str], words: str) -> tuple[str, int]:
    code, label = words.split()
    return code, _at(lines, label) + 1


def _at(lines: list[str], label: str) -> int:
    wanted = label.removeprefix("@")
    found = [
        n
        for n, line in enumerate(lines)
        if not _HEAD.match(line) and any(m[1] == wanted for m in _LABEL.finditer(line))
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} lines are labelled @{wanted}")
    return found[0]


def _edited(lines: list[str], edit: str) -> list[str]:
    verb, _, rest = edit.partition(" ")
    return {"drop": _drop, "swap": _swap, "move": _move, "put": _put, "in": _replace}[verb](
        list(lines), rest
    )


def _drop(lines: list[str], labels: str) -> list[str]:
    gone = {_at(lines, label) for label in labels.split()}
    return [line for n, line in enumerate(lines) if n not in gone]


def _swap(lines: list[str], labels: str) -> list[str]:
    a, b = (_at(lines, label) for label in labels.split())
    lines[a], lines[b] = lines[b], lines[a]
    return lines


def _move(lines: list[str], words: str) -> list[str]:
    label, where, other = words.split()
    line = lines.pop(_at(lines, label))
    lines.insert(_at(lines, other) + (where == "after"), line)
    return lines


def _put(lines: list[str], words: str) -> list[str]:
    found = re.fullmatch(r"\{(.*)\}(?: as @(\S+))? (before|after) (@\S+)", words)
    if found is None:
        raise ValueError(words)
    text, label, where, other = found.groups()
    line = f"{text} // @{label}" if label else text
    lines.insert(_at(lines, other) + (where == "after"), line)
    return lines


def _replace(lines: list[str], words: str) -> list[str]:
    found = re.fullmatch(r"(@\S+) \{(.*?)\} \{(.*?)\}", words)
    if found is None:
        raise ValueError(words)
    label, old, new = found.groups()
    at = _at(lines, label)
    if old not in lines[at]:
        raise LookupError(f"{old!r} is not in the line of {label}")
    lines[at] = lines[at].replace(old, new)
    return lines
