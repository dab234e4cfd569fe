"""Rewrites C++ sources for a host compiler: launches (`k<<<n, x, s>>>(a)`) become calls.

Line numbers, comments and strings are unchanged. Files included by quotes are processed too: those
with launches get a rewritten copy that is found before the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pto.core.errors import Loc, fail

_LIBRARY = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](pto/[^>"]+)[>"]', re.MULTILINE)
_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]""", re.MULTILINE)
_CHANGED = re.compile(r"<<<|\[aicore\]|\basm\b|\[\[block_local\]\]")
_BLOCK_LOCAL = '__attribute__((section("pto_block_local")))'  # runtime.cpp keeps it for each agent
_REDEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+get_(?:block_(?:idx|num)|subblock(?:id|dim)|coreid)\(", re.MULTILINE
)
_ASSEMBLY = re.compile(r"\b(?:__)?asm(?:__)?\s*(?:volatile\s*)?\(")
_CALLEE = re.compile(r"[A-Za-z_][\w:#]*$")
_WORDS = {"[aicore]": "", "[[block_local]]": _BLOCK_LOCAL}
_WORD = re.compile("|".join(map(re.escape, _WORDS)))
_OPAQUE = re.compile(  # comments, raw strings, strings, characters; not the ' of 1'000
    r"//(?:[^\\\n]|\\.)*|/\*.*?\*/|R\"([^()\\ \n]{0,16})\(.*?\)\1\""
    r"|\"(?:[^\"\\\n]|\\.)*\"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'",
    re.DOTALL,
)


def without_comments(text: str) -> str:
    """The text with blanks for comments and strings, at the same offsets."""
    return _OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


@dataclass(frozen=True, slots=True)
class Launch:
    """The text of `callee<<<blocks, ..>>>(arguments)`, and its number in the source."""

    number: int
    callee: str
    blocks: str
    arguments: str


def _on_machine(launch: Launch) -> str:
    """A launch as a call of the machine."""
    return (
        f"::pto::machine::launch<{launch.number}, PTO_MACHINE_SIDE>({launch.blocks},"
        f" [=]() mutable {{ {launch.callee}({launch.arguments}); }})"
    )


WriteLaunch = Callable[[Launch], str]


def rewritten(text: str, file: str = "", write: WriteLaunch = _on_machine) -> str:
    """Every launch as `write` gives it; the same number of lines."""
    for edits in (partial(_launches, write), _words, _assembly):
        out, at = list[str](), 0
        for start, end, new in edits(text, without_comments(text), file):
            out += [text[at:start], new]
            at = end
        text = "".join([*out, text[at:]])
    return text


_Edits = Iterator[tuple[int, int, str]]  # start, end, and the text that is there instead


def _launches(write: WriteLaunch, text: str, code: str, file: str) -> _Edits:
    at = count = 0
    while (arrow := code.find("<<<", at)) >= 0:
        end = code.find(">>>", arrow)
        begin = _callee(code, arrow)
        if end < 0 or begin is None or _directive(code, begin):
            at = arrow + 3
            continue
        open_ = code.find("(", end)
        at = _closing(code, open_, file) + 1
        blocks = _first(text[arrow + 3 : end])
        call = write(Launch(count, text[begin:arrow].strip(), blocks, text[open_ + 1 : at - 1]))
        lost = text.count("\n", begin, at) - call.count("\n")
        continued = "\\\n" if "\\\n" in text[begin:at] else "\n"
        yield begin, at, call + continued * max(0, lost)
        count += 1


def _words(text: str, code: str, file: str) -> _Edits:
    """Keywords of the device compiler by forms for the host compiler."""
    return ((*match.span(), _WORDS[match[0]]) for match in _WORD.finditer(code))


def _assembly(text: str, code: str, file: str) -> _Edits:
    """Statements in the chip's assembly only wait or prefetch: they are removed."""
    end = 0
    for match in _ASSEMBLY.finditer(code):
        if match.start() >= end:
            end = _closing(code, match.end() - 1, file) + 1
            yield match.start(), end, "((void)0)" + "\n" * text.count("\n", match.start(), end)


def _directive(text: str, at: int) -> bool:
    """True for a launch split by a preprocessor condition: `kernel`, `#ifndef`, `<<<..>>>`."""
    return text[text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("#if")


def _callee(text: str, arrow: int) -> int | None:
    """The start of the kernel name with template arguments before `<<<`, or of a macro call."""
    at = _before_brackets(text, _before_brackets(text, arrow, "<>"), "()")
    match = _CALLEE.search(text[max(0, at - 200) : at])
    return None if match is None else at - len(match.group())


def _before_brackets(text: str, at: int, pair: str) -> int:
    """The end of the text before optional brackets of this kind and blanks."""
    at, depth = _before_blanks(text, at), 0
    if not at or text[at - 1] != pair[1]:
        return at
    while at:
        at -= 1
        depth += (text[at] == pair[1]) - (text[at] == pair[0])
        if not depth:
            break
    return _before_blanks(text, at)


def _before_blanks(text: str, at: int) -> int:
    while at and text[at - 1] in " \t\n\\":
        at -= 1
    return at


def closing(text: str, at: int, pair: str = "()") -> int | None:
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for match in re.compile(f"[{re.escape(pair)}]").finditer(text, at):
        depth += 1 if match[0] == pair[0] else -1
        if not depth:
            return match.start()
    return None


def _closing(text: str, open_: int, file: str) -> int:
    end = None if open_ < 0 else closing(text, open_)
    if end is None:
        line = text.count("\n", 0, max(open_, 0)) + 1
        raise fail("PTO-U241", "a launch has no end", loc=Loc(file, line))
    return end


def _first(config: str) -> str:
    """The first of the comma-separated arguments."""
    depth = 0
    for at, ch in enumerate(config):
        depth += (ch in "([{<") - (ch in ")]}>")
        if ch == "," and not depth:
            return config[:at].strip()
    return config.strip()


def read_included(path: Path, tree: Path | None = None, *include: Path) -> dict[Path, str]:
    """The texts of a file and of those that it includes from its own folder, or from others if the
    tree, which compilers search before, does not have them."""
    texts, todo = dict[Path, str](), [path]
    while todo:
        path = todo.pop(0).resolve()
        if path in texts or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        texts[path] = text.removeprefix("\ufeff")  # copies get a line in front of it
        names = _INCLUDE.findall(texts[path])
        todo += [path.parent / name for name in names]
        rest = [name for name in names if tree is not None and not (tree / name).exists()]
        todo += [folder / name for name in rest for folder in include]
    return texts


def included(path: Path) -> list[str]:
    """The names that a file includes."""
    return _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


def redefines(texts: Iterable[str]) -> bool:
    """True if a source redefines a device function as a macro, which the header must see."""
    return any(map(_REDEFINED.search, texts))


def forward(texts: Iterable[str], tree: Path, folder: Path) -> Path:
    """Write forwarding headers for library headers that the tree lacks; returns their folder."""
    for name in {header for text in texts for header in _LIBRARY.findall(text)}:
        path = folder / name
        if not (tree / name).exists() and ".." not in name:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#include <pto/pto-inst.hpp>\n", encoding="utf-8")
    return folder


def prepared(
    source: Path,
    folder: Path,
    write: WriteLaunch = _on_machine,
    tree: Path | None = None,
    include: Sequence[Path] = (),
) -> tuple[Path, list[Path], list[str]]:
    """The file to compile, folders to search for headers last, and all source texts."""
    texts = read_included(source, tree, *include)
    files = list(texts)
    launching = [p for p in files if _CHANGED.search(texts[p])]
    last = [*include, source.resolve().parent]
    if not launching:
        return source, last, list(texts.values())
    root = Path(folder)
    for path in files:  # copies side by side, so that includes by quotes find them
        target = root / path.relative_to(path.anchor)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = rewritten(texts[path], str(path), write) if path in launching else texts[path]
        target.write_text(f'#line 1 "{path}"\n{text}', encoding="utf-8")
    resolved = source.resolve()
    copies = [
        root / directory.resolve().relative_to(directory.resolve().anchor) for directory in include
    ]
    return root / resolved.relative_to(resolved.anchor), [*copies, *last], list(texts.values())
