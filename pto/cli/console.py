"""Output of commands: (style, text) pairs, coloured on a terminal and plain in a pipe.

`rich` is imported only for coloured output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from pto.core.errors import Diagnostic
from pto.core.render import Piece, Sources, pieces

STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "title": "bold",
    "gutter": "blue",
    "note": "bold cyan",
    "help": "bold green",
    "dim": "bright_black",
    "name": "bold cyan",
    "value": "green",
    "": "",
}


def wants_colour(stream: TextIO) -> bool:
    """True on a terminal, unless NO_COLOR (https://no-color.org) is set or TERM is dumb."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def write(styled: Iterable[Piece], stream: TextIO | None = None) -> None:
    """Write styled text to `stream` (standard output), in colour if `wants_colour`."""
    out = stream or sys.stdout
    if not wants_colour(out):
        out.write("".join(text for _, text in styled))
        return
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble(*((text, STYLES.get(style, style)) for style, text in styled))
    Console(file=out, highlight=False, soft_wrap=True).print(line, end="")


def show(
    diagnostics: Sequence[Diagnostic],
    sources: Sources | None = None,
    stream: TextIO | None = None,
) -> None:
    """Write findings to `stream` (standard error), a blank line between them."""
    texts = sources or Sources()
    for index, diagnostic in enumerate(diagnostics):
        gap: list[Piece] = [("", "\n")] if index else []
        write(gap + pieces(diagnostic, texts), stream or sys.stderr)


def write_markdown(page: str, stream: TextIO | None = None) -> None:
    """Write a page: rendered on a terminal, as Markdown in a pipe."""
    out = stream or sys.stdout
    if not wants_colour(out):
        out.write(page.rstrip("\n") + "\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=out, width=min(Console(file=out).width, 96)).print(Markdown(page))
