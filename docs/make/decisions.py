"""The index of docs/decisions_isa.md: which entries are about which instruction (`make tables`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pto.isa import table

PAGE = Path(__file__).parents[1] / "decisions_isa.md"
_MARKED = re.compile(r"(<!-- index -->\n).*?(<!-- end -->)", re.DOTALL)
_ENTRY = re.compile(r"^### (.*)\n((?:(?!^##).*\n?)*)", re.MULTILINE)
_HEAD = "| instruction | decisions |\n| --- | --- |"


def rewritten(text: str) -> str:
    """The page with the index as the entries are now."""
    rows = "\n".join(
        f"| `{name}` | {', '.join(f'[{title}](#{anchor(title)})' for title in titles)} |"
        for name, titles in sorted(by_instruction(text).items())
    )
    return _MARKED.sub(lambda m: f"{m[1]}\n{_HEAD}\n{rows}\n\n{m[2]}", text)


def by_instruction(text: str) -> dict[str, list[str]]:
    """Mnemonic -> titles of the entries that name it, in lower case or as C++ spells it."""
    found: dict[str, list[str]] = {}
    for title, body in _ENTRY.findall(text):
        for name in sorted(set(_named(f"{title}\n{body}"))):
            found.setdefault(name, []).append(title)
    return found


def _named(text: str) -> Iterator[str]:
    known = {row.mnemonic for row in table.rows() if row.name.startswith("pto.")}
    quoted = set(re.findall(r"`(?:pto\.)?([a-z][\w.]*)`", text))
    for word in set(re.findall(r"[A-Za-z][\w.]*\w", text)):
        name = word.lower().removeprefix("pto.")
        plain = re.fullmatch(r"[TM][A-Z0-9_]+|[tv][a-z]+[\w.]*", word)  # no word of English
        if name in known and (plain or name in quoted):
            yield name


def anchor(title: str) -> str:
    """The anchor that Markdown gives a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text("utf-8")), "utf-8")
