"""Preprocessor branches: those that are selected by unknown macros, and those around a kernel.

Names with two underscores belong to the compiler and its headers. If neither the table of provided
names nor the source defines a tested macro, it counts as undefined on the chip too, which may
select the branch of another architecture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pto.core.errors import Diagnostic, Loc, Note
from pto.cxx import header, provided
from pto.cxx.source import without_comments

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_RESERVED = re.compile(r"\b(?:__\w+|_[A-Z]\w*)\b")
# Macros of the host compiler and of the language.
_HOST = re.compile(
    r"__(?:has_\w+|cplusplus|cpp_\w+|GNUC\w*|GLIBC\w*|clang\w*|STDC\w*|FILE__|LINE__|VA_OPT__|x86_64\w*"
    r"|aarch64\w*|linux\w*|unix\w*|APPLE__|SANITIZE_\w+|EXCEPTIONS|OPTIMIZE__|SIZEOF_\w+|INTEL\w*)"
    r"|_(?:WIN32|MSC_VER|GNU_SOURCE|GLIBCXX\w*)"
)


@cache
def _ours() -> frozenset[str]:
    """Macros of the header tree."""
    paths = sorted(header.INCLUDE.rglob("*.h*"))
    return frozenset(m for p in paths for m in _DEFINE.findall(p.read_text(encoding="utf-8")))


def unknown(
    texts: Mapping[Path, str], defines: Sequence[str], profile: str
) -> Iterator[Diagnostic]:
    """A finding for each such macro, at the first condition that tests it."""
    plain = {path: without_comments(text) for path, text in texts.items()}
    defined = {name for text in plain.values() for name in _DEFINE.findall(text)}
    defined |= {d.partition("=")[0] for d in defines} | provided.known_macros() | _ours()
    for path, text in plain.items():
        for condition in _CONDITION.finditer(text):
            for name in _RESERVED.findall(condition[1]):
                if name in defined or _HOST.fullmatch(name):
                    continue
                defined.add(name)
                line = text.count("\n", 0, condition.start()) + 1
                yield Diagnostic(
                    "PTO-U252",
                    f"`{name}` selects a branch, and neither the device compiler for {profile} nor"
                    " this source is known to define it, so it counts as undefined",
                    Loc(str(path), line),
                    "warning",
                    help=f"define it as the build for the chip does: -D {name}, or"
                    f' pto.cpp(..., defines=["{name}"])',
                )


def conditions_around(entry: str, texts: Mapping[Path, str]) -> tuple[Note, ...]:
    """The conditions around the first mention of a kernel, `ns::name<..>`, outermost first."""
    name = re.compile(rf"\b{re.escape(entry.partition('<')[0].rpartition('::')[2].strip())}\b")
    for path, text in texts.items():
        around: list[tuple[int, str]] = []
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            directive = _DIRECTIVE.match(line)
            if directive is None:
                if name.search(line):
                    return tuple(
                        Note(f"the kernel stands under `{words}`", Loc(str(path), at))
                        for at, words in around
                    )
                continue
            word, words = directive[1], " ".join(line.split())
            if not word.startswith("if") and around:
                before = around.pop()[1]
                words = f"#else` of `{before}" if word == "else" else words
            if word != "endif":
                around.append((number, words))
    return ()
