"""What to do about a source that does not compile, from the other files of its repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from pto.core.errors import Diagnostic, PtoError
from pto.cxx.headers import above, elsewhere
from pto.cxx.source import closing, without_comments

_ABSENT = re.compile(r"'?(?P<name>[\w./-]+\.(?:h|hpp|cuh))'?(?: file not found|: No such file)")
_SOURCES = (".cpp", ".cc", ".h", ".hpp", ".cce", ".asc")
_FILES = 2_000  # of a repository that are looked through for uses of a template


def hinted(error: PtoError, source: Path, entry: str) -> PtoError:
    """The same error with the file that a header is, or with the instances of a template."""
    first, *others = error.diagnostics
    match = _ABSENT.search(first.message)
    hint = _header(source, match["name"]) if match else _instances(source, entry)
    if hint is None:
        return error
    return type(error)(_with_help(first, hint), *others)


def _with_help(finding: Diagnostic, hint: str) -> Diagnostic:
    return replace(finding, help=hint)


def _header(source: Path, name: str) -> str | None:
    path = elsewhere(source, name)
    if path is None:
        return None
    folder = path.parents[len(Path(name).parts) - 1]
    return f"the repository has {path}: give its folder, -I {folder}"


def _instances(source: Path, entry: str) -> str | None:
    """Where a template that is called without arguments is instantiated."""
    name = entry.rpartition("::")[2].strip()
    if "<" in entry or not name or not _is_template(source, name):
        return None
    for path, line, text in _uses(source, name):
        return (
            f"{name} is a template, which {path.name}:{line} instantiates:"
            f" give its arguments, for example {text}"
        )
    return f"{name} is a template, and no file beside it instantiates it: give its arguments"


def _is_template(source: Path, name: str) -> bool:
    text = without_comments(source.read_text(encoding="utf-8", errors="replace"))
    return re.search(rf"\btemplate\s*<[^;{{}}]*?\b{re.escape(name)}\s*\(", text) is not None


def _uses(source: Path, name: str) -> Iterator[tuple[Path, int, str]]:
    """Instances `name<..>` in the files of a source's repository, the nearest first."""
    visited = set[Path]()
    for folder in above(source):
        for path in islice(sorted(folder.rglob("*")), _FILES):
            if path.suffix not in _SOURCES or path in visited or not path.is_file():
                continue
            visited.add(path)
            text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
            for match in re.finditer(rf"\b{re.escape(name)}\s*<(?!<)", text):
                end = closing(text, match.end() - 1, "<>")
                if end is not None and end - match.start() < 200:
                    line = text.count("\n", 0, match.start()) + 1
                    yield path, line, " ".join(text[match.start() : end + 1].split())
