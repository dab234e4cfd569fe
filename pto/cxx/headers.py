"""Folders in which the build of a repository finds the headers of a source.

Kernels include headers of their repository that lie elsewhere: in a folder above the source, in
`include/` of one, or where CMake or a list of compile commands points. A folder is used only if it
has a header that the source includes and that is found nowhere else.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pto.cxx.source import included

_ABOVE = 8  # folders above a source that are searched, up to that of the repository
_FILES = 20_000  # of a repository that are looked through for a header
_COMMANDS = ("compile_commands.json", "build/compile_commands.json")
_INCLUDED = re.compile(r"(?:target_)?include_directories\s*\(([^)]*)\)", re.IGNORECASE)
_WORDS = re.compile(r'"([^"]*)"|([^\s"]+)')
_OWN = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR")
_TOP = ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def above(source: Path) -> list[Path]:
    """The folder of a source and those above it, up to that of its repository."""
    folders = list(islice(source.resolve().parents, _ABOVE))
    tops = [n for n, folder in enumerate(folders) if (folder / ".git").exists()]
    return folders[: tops[0] + 1] if tops else folders[:3]


@lru_cache(256)
def candidates(source: Path) -> tuple[Path, ...]:
    """Folders that a build of the repository may search, the most specific first."""
    folders = above(source)
    listed = [*_from_commands(source, folders), *_from_cmake(folders)]
    for folder in folders:
        listed += [folder, folder / "include"]
    return tuple(dict.fromkeys(directory.resolve() for directory in listed if directory.is_dir()))


def _from_commands(source: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Include folders of the compile command of a source."""
    for folder in folders:
        for name in _COMMANDS:
            path = folder / name
            if not path.is_file():
                continue
            for entry in _commands(path):
                base = Path(str(entry.get("directory", folder)))
                if (base / str(entry.get("file", ""))).resolve() == source.resolve():
                    yield from _searched(base, entry)


def _commands(path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def _searched(base: Path, entry: dict[str, Any]) -> Iterator[Path]:
    arguments = entry.get("arguments") or shlex.split(str(entry.get("command", "")))
    words = [str(word) for word in arguments]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        for option in ("-I", "-isystem", "-iquote"):
            if word == option:
                yield base / following
            elif word.startswith(option):
                yield base / word.removeprefix(option)


def _from_cmake(folders: Sequence[Path]) -> Iterator[Path]:
    """Folders of `target_include_directories` and `include_directories`."""
    files = [folder / "CMakeLists.txt" for folder in folders]
    existing = [path for path in files if path.is_file()]
    for path in existing:
        text = path.read_text(encoding="utf-8", errors="replace")
        for listed in _INCLUDED.findall(text):
            for quoted, plain in _WORDS.findall(listed):
                resolved = _place(quoted or plain, path.parent, existing[-1].parent)
                if resolved is not None:
                    yield resolved


def _place(word: str, here: Path, top: Path) -> Path | None:
    """A word of CMake as a folder; None if it names a variable of the build."""
    values: dict[str, str] = {**dict.fromkeys(_OWN, str(here)), **dict.fromkeys(_TOP, str(top))}
    if any(name not in values for name in _VARIABLE.findall(word)) or "$<" in word:
        return None
    path = Path(_VARIABLE.sub(lambda match: values[match[1]], word))
    return path if path.is_absolute() else here / path


def needed(source: Path, tree: Path, include: Sequence[Path]) -> list[Path]:
    """Folders with headers that a source includes and that are neither beside the including file,
    nor in the header tree, nor in the folders given."""
    folders: list[Path] = []
    todo, done = [source.resolve()], set[Path]()
    while todo:
        path = todo.pop()
        if path in done or not path.is_file():
            continue
        done.add(path)
        for name in included(path):
            if (tree / name).exists():
                continue
            folder = _first(name, [path.parent, *include, *folders])
            if folder is None and not name.startswith("pto/"):
                folder = _first(name, candidates(source))
                if folder is not None:
                    folders.append(folder)
            if folder is not None:
                todo.append((folder / name).resolve())
    return folders


def _first(name: str, folders: Sequence[Path]) -> Path | None:
    return next((folder for folder in folders if (folder / name).is_file()), None)


def elsewhere(source: Path, name: str) -> Path | None:
    """The file of the repository that an `#include` of this name would find, with its folder."""
    top = above(source)[-1]
    if not (top / ".git").exists():
        return None
    last = Path(name).name
    files = (path for path in islice(top.rglob(last), _FILES) if path.is_file())
    return next((path for path in files if path.as_posix().endswith(f"/{name}")), None)
