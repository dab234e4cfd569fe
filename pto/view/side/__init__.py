"""A kernel side by side: source, program, C++, tiles, layouts and timeline on one page.

A line of the source has a location, `FILE:LINE`. Lines of the program and of the C++ have the
location of their operation, and so have tiles and instructions of the timeline. The page highlights
everything with the location under the pointer. It is one file, and needs no network.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pto.core.errors import Loc, PtoError
from pto.core.output import write_whole
from pto.core.tile import TileType
from pto.cxx.export import listing
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.isa.row.types import TileBuf
from pto.observe.timing import Timing, time
from pto.plan.buffers import Placed
from pto.plan.memory import plan_memory
from pto.target.facts import Profile
from pto.target.profile import profile as find_profile
from pto.transform.separate import separate_all
from pto.view.side.layout import caption, svg

Lines = list[tuple[int, str, Loc | None]]  # number, text and location
_AROUND = 6, 3  # lines of a source shown before the first and after the last line with an operation


@dataclass(frozen=True)
class Side:
    """A kernel's page: `.html("page.html")` writes it, a notebook shows it."""

    name: str
    text: str

    def html(self, path: str | None = None) -> str:
        """The page; written to `path` if one is given."""
        if path is not None:
            write_whole(Path(path), self.text)
        return self.text

    def _repr_html_(self) -> str:
        frame = 'style="width:100%;height:720px;border:1px solid #8884"'
        return f'<iframe {frame} srcdoc="{escape(self.text)}"></iframe>'


def side_by_side(launch: Any, *args: Any, device: str | None = None, **named: Any) -> Side:
    """The page of a kernel with these arguments: `pto.side_by_side(softmax[7], x, y)`."""
    kernel, blocks = getattr(launch, "kernel", launch), getattr(launch, "blocks", 1)
    specialised, _, run_args = kernel.specialise(kernel.values(args, named), blocks)
    return page(
        specialised.module, find_profile(kernel.profile), run_args, blocks, device, kernel.name
    )


def page(
    module: Module, profile: Profile, values: Sequence[Any], blocks: Any, device: Any, name: str
) -> Side:
    """The page of a program. If it has no C++ or no time, the pane gives the reason."""
    split = separate_all(module, profile).module  # the timeline splits the program itself
    program = _program(split)
    sources = _sources([loc for _, _, loc in program if loc is not None])
    panes = [_pane("source", "".join(_titled(*extension) for extension in sources))]
    if not all(title.endswith(".pto") for title, _ in sources):
        panes.append(_pane("program (.pto)", _listed(program)))
    panes.append(_or_why("C++", lambda: _pane("C++", _listed(_cxx(split, profile, name)))))
    tiles = _or_why("tiles and layouts", lambda: _tiles(split, profile))
    timed = _or_why("timeline", lambda: _timeline(module, profile, values, blocks, device))
    css, js = (
        files(__name__).joinpath(f"side.{extension}").read_text("utf-8")
        for extension in ("css", "js")
    )
    title = f"{name} on {profile.name}"
    return Side(
        name,
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><title>{escape(title)}</title><style>{css}</style></head>'
        f"<body><header><h1>{escape(title)}</h1><span>one colour is one line of the source; what"
        " belongs to it lights up under the pointer, and a click keeps it and scrolls there</span>"
        f"</header><main>{''.join(panes)}</main>{tiles}{timed}<script>{js}</script></body></html>",
    )


def _or_why(title: str, make: Callable[[], str]) -> str:
    try:
        return make()
    except PtoError as error:
        finding = error.diagnostics[0]
        return _pane(
            title, _listed([(1, f"none: {finding.message} [{finding.code}]", finding.loc)])
        )


def _program(module: Module) -> Lines:
    """The lines of the text; each operation has the location of the original operation."""
    text = print_module(module)
    places = {
        copy.loc.line: op.loc
        for op, copy in zip(module.op.walk(), parse(text).op.walk(), strict=True)
        if copy.loc is not None
    }
    return [(n, line, places.get(n)) for n, line in enumerate(text.splitlines(), 1)]


def _cxx(module: Module, profile: Profile, name: str) -> Lines:
    lines = enumerate(listing(module, profile, name), 1)
    return [(n, line.text, line.loc) for n, line in lines]


def _sources(places: Iterable[Loc]) -> list[tuple[str, Lines]]:
    """Each file that operations come from, from the first such line to the last."""
    used: dict[str, list[int]] = {}
    for loc in places:
        used.setdefault(loc.file, []).append(loc.line)
    listed: list[tuple[str, Lines]] = []
    for file, lines in used.items():
        text = linecache.getlines(file)  # also that of a notebook's cell
        first = max(1, min(lines) - _AROUND[0])
        last = min(len(text), max(lines) + _AROUND[1])
        shown: Lines = [(n, text[n - 1].rstrip(), Loc(file, n)) for n in range(first, last + 1)]
        listed.append((file, shown))
    return listed


def _titled(file: str, lines: Lines) -> str:
    return f'<h3 title="{escape(file)}">{escape(Path(file).name)}</h3>{_listed(lines)}'


def _pane(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _listed(lines: Lines) -> str:
    body = "".join(f"<li{_at(loc)}><i>{n}</i>{escape(text) or ' '}</li>" for n, text, loc in lines)
    return f"<ol>{body}</ol>"


def _at(loc: Loc | None) -> str:
    return "" if loc is None else f' data-at="{escape(f"{loc.file}:{loc.line}")}"'


def _tiles(module: Module, profile: Profile) -> str:
    placed = [
        placement for plan in plan_memory(module, profile).functions for placement in plan.placed
    ]
    rows = [
        f"<tr{_at(placement.buffer.op.loc)}><td>{escape(placement.buffer.name)}</td>"
        f"<td>{placement.buffer.space.value.upper()}</td><td>{placement.start:#x}</td>"
        f"<td>{placement.buffer.nbytes:,}</td><td>{escape(placement.buffer.type)}</td></tr>"
        for placement in placed
    ]
    head = "<tr><th>tile</th><th>buffer</th><th>at</th><th>bytes</th><th>type</th></tr>"
    table = f"<table>{head}{''.join(rows)}</table>{_layouts(placed)}"
    return _pane("tiles and layouts", f'<div class="tiles">{table}</div>')


def _layouts(placed: Sequence[Placed]) -> str:
    """A picture for each type of tile: the address as colour, and a line along memory."""
    types: dict[TileType, list[str]] = {}
    for placement in placed:
        type_of_root = placement.buffer.root.type if placement.buffer.root is not None else None
        if isinstance(type_of_root, TileBuf):
            types.setdefault(type_of_root.tile, []).append(placement.buffer.name)
    return "".join(
        f"<figure>{svg(tile)}<figcaption>{escape(str(tile))}: {escape(caption(tile))}"
        f"<br>{escape(', '.join(dict.fromkeys(names)))}</figcaption></figure>"
        for tile, names in types.items()
    )


def _timeline(
    module: Module, profile: Profile, values: Sequence[Any], blocks: Any, device: Any
) -> str:
    timing: Timing = time(module, args=values, blocks=blocks, profile=profile.name, device=device)
    return f'<iframe title="timeline" srcdoc="{escape(timing.html())}"></iframe>'
