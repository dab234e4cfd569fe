"""A kernel side by side: source, program, C++, tiles and timeline on one page, linked by lines.

A line of the source has a place, `FILE:LINE`. Lines of the program and of the C++ have the place of
the operation that they are; so have tiles. The page lights every line of the place under the
pointer. It is one file, and needs no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pto.core.errors import Loc, PtoError
from pto.core.output import write_whole
from pto.core.render import Sources
from pto.cxx.export import listing
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe.timing import Timing, time
from pto.plan.memory import plan_memory
from pto.target.facts import Profile
from pto.target.profile import profile as find_profile

Lines = list[tuple[str, Loc | None]]


@dataclass(frozen=True)
class Side:
    """A kernel's page: `.html("page.html")` writes it, a notebook shows it."""

    name: str
    text: str

    def html(self, path: str | None = None) -> str:
        """The page; written to `path` where one is given."""
        if path is not None:
            write_whole(Path(path), self.text)
        return self.text

    def _repr_html_(self) -> str:
        frame = 'style="width:100%;height:720px;border:1px solid #8884"'
        return f'<iframe {frame} srcdoc="{escape(self.text)}"></iframe>'


def side_by_side(launch: Any, *args: Any, device: str | None = None, **named: Any) -> Side:
    """The page of a kernel with these arguments: `pto.side_by_side(softmax[7], x, y)`."""
    kernel, blocks = getattr(launch, "kernel", launch), getattr(launch, "blocks", 1)
    made, _, given = kernel.specialise(kernel.values(args, named), blocks)
    return page(made.module, find_profile(kernel.profile), given, blocks, device, kernel.name)


def page(
    module: Module, profile: Profile, values: Sequence[Any], blocks: Any, device: Any, name: str
) -> Side:
    """The page of a program. Where it has no C++ or no time, its pane says why."""
    program = _program(module)
    sources = _sources([loc for _, loc in program if loc is not None])
    panes = [_pane(title, lines) for title, lines in sources]
    panes.append(_pane("program (.pto)", program))
    panes.append(_or_why("C++", lambda: _pane("C++", _cxx(module, profile, name))))
    panes.append(_or_why("tiles", lambda: _tiles(module, profile)))
    timed = _or_why("timeline", lambda: _timeline(module, profile, values, blocks, device))
    css, js = (
        files(__name__).joinpath(f"side.{each}").read_text("utf-8") for each in ("css", "js")
    )
    title = f"{name} on {profile.name}"
    return Side(
        name,
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{css}</style></head><body><header><h1>{escape(title)}</h1><span>lines of one place"
        " light up together; a click keeps them</span></header>"
        f"<main>{''.join(panes)}</main>{timed}<script>{js}</script></body></html>",
    )


def _or_why(title: str, make: Any) -> str:
    try:
        return make()
    except PtoError as error:
        told = error.diagnostics[0]
        return _pane(title, [(f"none: {told.message} [{told.code}]", told.loc)])


def _program(module: Module) -> Lines:
    """The lines of the text; an operation has that of its copy in the text when read again."""
    text = print_module(module)
    places = {
        copy.loc.line: op.loc
        for op, copy in zip(module.op.walk(), parse(text).op.walk(), strict=True)
        if copy.loc is not None
    }
    return [(line, places.get(n)) for n, line in enumerate(text.splitlines(), 1)]


def _cxx(module: Module, profile: Profile, name: str) -> Lines:
    return [(line.text, line.loc) for line in listing(module, profile, name)]


def _sources(places: Iterable[Loc]) -> list[tuple[str, Lines]]:
    """Each file that operations come from, from the first such line to the last."""
    used: dict[str, list[int]] = {}
    for loc in places:
        used.setdefault(loc.file, []).append(loc.line)
    found: list[tuple[str, Lines]] = []
    for file, lines in used.items():
        known, first = Sources(), max(1, min(lines) - 6)
        rows = [(known.line(Loc(file, n)), Loc(file, n)) for n in range(first, max(lines) + 3)]
        shown: Lines = [(text, loc) for text, loc in rows if text is not None]
        found.append((f"{Path(file).name}, from line {first}", shown))
    return found


def _pane(title: str, lines: Lines) -> str:
    body = "".join(
        f"<li{_at(loc)}><i>{n}</i>{escape(text) or ' '}</li>"
        for n, (text, loc) in enumerate(lines, 1)
    )
    return f"<section><h2>{escape(title)}</h2><ol>{body}</ol></section>"


def _at(loc: Loc | None) -> str:
    return "" if loc is None else f' data-at="{escape(_key(loc))}"'


def _key(loc: Loc) -> str:
    return f"{loc.file}:{loc.line}".replace(" ", "%20")


def _tiles(module: Module, profile: Profile) -> str:
    rows = [
        f"<tr{_at(placed.buffer.op.loc)}><td>%{escape(placed.buffer.name)}</td>"
        f"<td>{escape(placed.buffer.type)}</td><td>{placed.buffer.space.value.upper()}</td>"
        f"<td>{placed.start:#x}</td><td>{placed.buffer.nbytes}</td></tr>"
        for plan in plan_memory(module, profile).functions
        for placed in plan.placed
    ]
    head = "<tr><th>tile</th><th>type and layout</th><th>buffer</th><th>at</th><th>bytes</th></tr>"
    return f"<section><h2>tiles</h2><table>{head}{''.join(rows)}</table></section>"


def _timeline(
    module: Module, profile: Profile, values: Sequence[Any], blocks: Any, device: Any
) -> str:
    timing: Timing = time(module, args=values, blocks=blocks, profile=profile.name, device=device)
    return f'<iframe title="timeline" srcdoc="{escape(timing.html())}"></iframe>'
