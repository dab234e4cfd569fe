"""A Python file with kernels in an editor: facts about its lines, and definitions of its words.

Facts about kernels come from `examine.py`, which executes the file in a separate process. The
server starts it when the file is opened or saved, and only with permission: text that is being
typed is never executed.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pto.core.confined import ProcessLimits, run
from pto.core.errors import Diagnostic, Loc, Note
from pto.isa.row.instr import Instr
from pto.isa.table import lookup
from pto.lang.names import find
from pto.lsp.document import TextSpan
from pto.lsp.features import HoverPage, fenced, row_home
from pto.view.instruction import page

LIMITS = ProcessLimits(seconds=60.0, megabytes=8192)
NOT_ALLOWED = (
    "kernels are not checked: that executes this file, with your rights. The setting `pto.python`"
    " of VS Code, or `pto lsp --allow-python`, allows it"
)
_WORD = re.compile(r"(?:\w+\.){0,2}\w+")
_KERNEL = re.compile(r"^[ \t]*@(?:\w+\.)?kernel\b", re.MULTILINE)


class Remark(NamedTuple):
    """A remark that is not a finding."""

    message: str
    severity: str
    loc: Loc


@dataclass(slots=True)
class Examined:
    """The output of `examine.py` for a text. Lines count from 1."""

    text: str = ""
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    remarks: list[Remark] = field(default_factory=list[Remark])
    heads: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lines: dict[int, list[dict[str, str]]] = field(default_factory=dict[int, list[dict[str, str]]])
    tiles: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])

    def add(self, part: dict[str, Any]) -> None:
        """Add one line of its output; later lines contain more."""
        findings = [_diagnostic(entry) for entry in part.get("findings", ())]
        self.findings += [entry for entry in findings if entry not in self.findings]
        for entry in part.get("remarks", ()):
            self.remarks.append(Remark(entry["message"], entry["severity"], Loc(**entry["loc"])))
        self.heads += part.get("heads", ())
        self.lines |= {int(n): rows for n, rows in part.get("lines", {}).items()}
        self.tiles |= {int(n): (text, tip) for n, (text, tip) in part.get("tiles", {}).items()}


def examined(file: str, options: dict[str, str | None], roots: Sequence[str]) -> Examined:
    """Execute a file and examine its kernels, in a process with limits."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        remark = Remark(f"not checked: {error}", "warning", Loc(file, 1))
        return Examined(remarks=[remark])
    words = [file, *(f"--{name}={value}" for name, value in options.items() if value)]
    done = run([*words, *(f"--root={root}" for root in roots)], {}, LIMITS, "pto.lsp.examine")
    result = Examined(text)
    parts = [done["result"]] if "result" in done else _objects(done.get("text", ""))
    for part in parts:
        result.add(part)
    if "error" in done or done["status"] not in (0, 1):
        why = done.get("error") or done.get("messages", "").strip().rpartition("\n")[2]
        result.remarks.append(Remark(f"not checked to the end: {why}", "warning", Loc(file, 1)))
    return result


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the last line is incomplete if the time ran out
            return


class PythonFile:
    """One open Python file."""

    def __init__(self, file: str, allowed: bool) -> None:
        self.file, self.allowed = file, allowed
        self.text = ""
        self.known = Examined()

    def update(self, text: str) -> None:
        self.text = text
        self.__dict__.pop("_moved", None)
        self.__dict__.pop("_imports", None)

    def learn(self, examined: Examined) -> None:
        self.known = examined
        self.__dict__.pop("_moved", None)

    @property
    def has_kernels(self) -> bool:
        return _KERNEL.search(self.text) is not None

    @property
    def findings(self) -> list[Diagnostic]:
        """Findings at their current positions; those of changed lines are dropped."""
        return [
            replace(finding, loc=loc)
            for finding in self.known.findings
            if (loc := self._now(finding.loc)) is not None
        ]

    @property
    def remarks(self) -> list[Remark]:
        if not self.allowed:
            kernel = _KERNEL.search(self.text)
            line = self.text.count("\n", 0, kernel.start()) + 1 if kernel else 1
            here = Remark(NOT_ALLOWED, "information", Loc(self.file, line))
            return [here] if kernel else []
        moved = ((remark, self._now(remark.loc)) for remark in self.known.remarks)
        return [remark._replace(loc=loc) for remark, loc in moved if loc is not None]

    @cached_property
    def _moved(self) -> dict[int, int]:
        """Old line -> current line, for examined lines that have not changed."""
        if self.text == self.known.text:
            return {n: n for n in range(1, self.text.count("\n") + 2)}
        before, now = self.known.text.splitlines(), self.text.splitlines()
        blocks = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
        return {a + n + 1: b + n + 1 for a, b, size in blocks for n in range(size)}

    def _now(self, loc: Loc | None) -> Loc | None:
        line = None if loc is None else self._moved.get(loc.line)
        return None if loc is None or line is None else replace(loc, line=line)

    # ---- requests

    def hover(self, offset: int) -> HoverPage | None:
        """The instructions of the line, and the page of an instruction or function of pto."""
        line = self.text.count("\n", 0, offset) + 1
        was = next((a for a, b in self._moved.items() if b == line), 0)
        sections = [_table(self.known.lines[was])] if was in self.known.lines else []
        span, name = self._word(offset)
        row = _row(name)
        if row is not None:
            sections.append(fenced("".join(words for _, words in page(row)), "text"))
        elif name and (about := inspect.getdoc(find(name))):
            sections.append(about)
        return HoverPage(span, "\n---\n".join(sections)) if sections else None

    def definition(self, offset: int) -> tuple[str, int] | None:
        """File and line that define a name: a row of the instruction table, or a function."""
        name = self._word(offset)[1]
        row = _row(name)
        if row is not None:
            return row_home(row)
        try:
            function = inspect.unwrap(find(name))
            file = inspect.getsourcefile(function)
            return None if file is None else (file, inspect.getsourcelines(function)[1])
        except (TypeError, OSError):  # not a Python function
            return None

    def hints(self) -> Iterator[tuple[int, int, str, str]]:
        """Inlay hints: offset, line, text and tooltip."""
        starts = [0, *(n + 1 for n, ch in enumerate(self.text) if ch == "\n"), len(self.text)]
        for line, (text, tip) in self.known.tiles.items():
            now = self._moved.get(line)
            at = None if now is None else _target(self.text[starts[now - 1] : starts[now]])
            if now is not None and at is not None:
                yield starts[now - 1] + at, now, f": {text}", tip
        for head in self.known.heads:
            now = self._moved.get(head["line"])
            if now is not None:
                whole = self.text[starts[now - 1] : starts[now]].rstrip("\n")
                yield starts[now - 1] + len(whole), now, f"  {head['text']}", head["tip"]

    def _word(self, offset: int) -> tuple[TextSpan, str]:
        """The name of pto at an offset, as `isa.tadd` or `load`; empty for any other name."""
        start = self.text.rfind("\n", 0, offset) + 1
        for found in _WORD.finditer(self.text, start):
            if found.start() > offset or "\n" in self.text[start : found.start()]:
                break
            if found.end() >= offset:
                modules, names = self._imports
                owner, _, word = found[0].rpartition(".")
                if not owner:
                    return TextSpan(*found.span()), names.get(word, "")
                home = modules.get(owner)
                return TextSpan(*found.span()), "" if home is None else f"{home}{word}"
        return TextSpan(offset, offset), ""

    @cached_property
    def _imports(self) -> tuple[dict[str, str], dict[str, str]]:
        """What modules are called here, as `isa` -> `isa.`, and what the names imported from them
        are, as `tadd` -> `isa.tadd`."""
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError):  # the text is incomplete while it is typed
            return {"pto": "", "isa": "isa.", "pto.isa": "isa."}, {}
        modules: dict[str, str] = {}
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                aliases = [a.asname or a.name for a in node.names if a.name == "pto"]
                modules |= dict.fromkeys(aliases, "")
                modules |= {f"{alias}.isa": "isa." for alias in aliases}
                modules |= {
                    a.asname: "isa." for a in node.names if a.name == "pto.isa" and a.asname
                }
            elif isinstance(node, ast.ImportFrom) and node.module in ("pto", "pto.isa"):
                home = "isa." if node.module == "pto.isa" else ""
                names |= {a.asname or a.name: f"{home}{a.name}" for a in node.names}
        modules |= {word: "isa." for word, name in names.items() if name == "isa"}
        return modules, names


def _row(name: str) -> Instr | None:
    """The instruction `isa.NAME`."""
    return lookup(f"pto.{name.removeprefix('isa.')}") if name.startswith("isa.") else None


def _target(line: str) -> int | None:
    """The column after the variable that a line assigns to."""
    assignment = re.match(r"\s*\w+(?=\s*(?::[^=]*)?[-+*/]?=[^=])", line)
    return assignment.end() if assignment else None


def _table(rows: Sequence[dict[str, str]]) -> str:
    head = "| instruction | pipe | cost | tiles |\n| --- | --- | --- | --- |\n"
    cells = ([f"`{row['op']}`", row["pipe"], row["cost"], row["tiles"]] for row in rows)
    return head + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _diagnostic(entry: dict[str, Any]) -> Diagnostic:
    notes = tuple(Note(n["message"], _loc(n["loc"])) for n in entry["notes"])
    code = entry["code"]
    message = entry["message"]
    loc = _loc(entry["loc"])
    return Diagnostic(code, message, loc, entry["severity"], notes, entry["help"])


def _loc(loc: dict[str, Any] | None) -> Loc | None:
    return None if loc is None else Loc(**loc)
