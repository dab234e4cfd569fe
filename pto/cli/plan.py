"""`pto plan`: shows the address of each tile, the use of each buffer, and event ids."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pto.cli import console, findings, options, program
from pto.cli.command_line import CommandLine
from pto.core.errors import fail, nearest
from pto.core.memory import Space
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.ir.graph import Module, Operation
from pto.ir.text.printer import print_module
from pto.plan.buffers import BufferUse, FunctionPlan, Placed, Placement
from pto.plan.events import BUFFER, Occupancy, occupancy
from pto.plan.memory import addressed, plan_memory
from pto.target.profile import Target
from pto.transform.cores import CUBE, VECTOR
from pto.transform.separate import separate_all
from pto.transform.split import half_name
from pto.verify.program import target_of

EXAMPLES = """\
  pto plan kernel.pto                      under the profile the program declares
  pto plan kernel.pto --device 910b1       within the buffers of one chip
  pto plan kernel.pto --entry softmax --png plan.png
  pto plan kernel.pto --format json
  pto plan kernel.pto -o placed.pto        the program with the address of every tile written down
  pto plan k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
"""

_BAR = 32  # characters of a full buffer
_SPACES = list(Space)


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("file", metavar="FILE", help=options.FILE)
    parser.add_argument("--entry", metavar="F", help="plan only this function and those it calls")
    options.add_target(parser)
    out = "write the program with an address for every tile"
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help=out)
    parser.add_argument("--png", metavar="FILE", type=Path, help="write a picture: png, svg or pdf")
    options.add_python(parser)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    module = program.read_program(args.file, args)
    target = target_of(module, profile=args.profile, device=args.device)
    entry = None if args.entry is None else _function(module, args.entry).symbol
    module = separate_all(module, target.profile).module
    chosen = module if entry is None else _parts(module, entry)
    placement = plan_memory(chosen, target.profile)
    events = _events(module, placement, target)
    if findings.is_text(args):
        console.write(report(placement, target))
        console.write(
            [piece for name, occupancy_of in events.items() for piece in _ids(name, occupancy_of)]
        )
        console.show(placement.warnings, stream=sys.stdout)
    else:
        functions = [_plain(plan, events[plan.name]) for plan in placement.functions]
        header = {"target": str(target), "functions": functions}
        findings.data(args, placement.warnings, functions, **header)
    if args.out:
        write_whole(args.out, print_module(addressed(module, target.profile)))
    if args.png:
        _draw(placement, args.entry, args.png, quiet=not findings.is_text(args))
    return 0


def _function(module: Module, name: str) -> Operation:
    defined = {f.symbol: f for f in module.functions() if f.has_body}
    wanted = name.removeprefix("@")
    if wanted not in defined:
        advice = nearest(wanted, defined) or f"the program has {', '.join(defined)}"
        raise fail("PTO-U071", f"there is no function @{wanted}", help=advice)
    return defined[wanted]


def _parts(module: Module, name: str) -> list[Operation]:
    """The function of this name, or those of both cores that it was split into."""
    names = {name, half_name(name, CUBE), half_name(name, VECTOR)}
    return [f for f in module.functions() if f.has_body and f.symbol in names]


def _events(module: Module, placement: Placement, target: Target) -> dict[str, Occupancy]:
    """The event ids of every planned function."""
    functions = {f.symbol: f for f in module.functions() if f.has_body}
    names = [plan.name for plan in placement.functions]
    return {name: occupancy(functions[name], target.profile) for name in names}


def _draw(placement: Placement, entry: str | None, file: Path, *, quiet: bool) -> None:
    from pto.view.plan_picture import draw

    fullest = max(placement.functions, key=lambda plan: len(plan.placed), default=None)
    named = [p for p in placement.functions if entry and p.name == entry.removeprefix("@")]
    plan = named[0] if named else fullest
    if plan is None:
        raise fail("PTO-U070", "the program has no function to draw")
    draw(plan, file)
    if not quiet:
        console.write([("dim", f"\npicture of @{plan.name} in "), ("", f"{file}\n")])


# ---- as text


def report(placement: Placement, target: Target) -> list[Piece]:
    """For every function a table of its buffers, and the use of each local buffer."""
    out: list[Piece] = [("dim", f"{target}\n")]
    empty = [plan for plan in placement.functions if not plan.placed]
    for plan in placement.functions:
        if plan.placed:
            out += [("title", f"\n@{plan.name}\n"), *_table(plan), ("", "\n")]
            out += [piece for use in plan.uses for piece in _bar(plan, use)]
    if empty:
        names = ", ".join(f"@{plan.name}" for plan in empty)
        out.append(("dim", f"\nno local buffers: {names}\n"))
    return out


def _table(plan: FunctionPlan) -> list[Piece]:
    ordered = sorted((*plan.placed, *plan.taken), key=_by_place)
    rows = [_row(plan, placed) for placed in ordered]
    width = len(_HEADINGS) - all(placed.kind == "planned" for placed in ordered)
    lines = [row[:width] for row in (_HEADINGS, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    out: list[Piece] = []
    for n, line in enumerate(lines):
        cells = [
            f"{cell:>{width}}" if heading == "bytes" else f"{cell:<{width}}"
            for heading, cell, width in zip(_HEADINGS, line, widths, strict=False)
        ]
        rest = "  ".join(["", *cells[1:]]).rstrip()
        style = "name" if n else "dim"
        out += [(style, f"  {cells[0]}"), ("" if n else "dim", f"{rest}\n")]
    return out


_HEADINGS = ("tile", "type", "space", "address", "bytes", "lines", "placed by")
_DECIDED = {"planned": "planner", "fixed": "program", "call": "call", "elsewhere": "set later"}


def _by_place(placed: Placed) -> tuple[int, int, int]:
    alive = placed.buffer.alive
    return _SPACES.index(placed.buffer.space), placed.start, -1 if alive is None else alive.first


def _row(plan: FunctionPlan, placed: Placed) -> tuple[str, ...]:
    buffer, lines = placed.buffer, plan.lines(placed.buffer.alive)
    when = "unused" if buffer.alive is None else "-"
    if lines:
        when = f"{lines[0]}" if lines[0] == lines[1] else f"{lines[0]}-{lines[1]}"
    where = f"{placed.start:#07x}..{placed.end:#07x}"
    size, by = f"{buffer.nbytes:,}", _DECIDED[placed.kind]
    return buffer.name, buffer.type, buffer.space.value, where, size, when, by


def _bar(plan: FunctionPlan, use: BufferUse) -> list[Piece]:
    share = use.high / use.capacity if use.capacity else 1.0
    full = min(_BAR, -(-use.high * _BAR // max(use.capacity, 1)))
    style = "error" if share > 1 else "warning" if share > 0.9 else "value"
    line = plan.line(use.fullest)
    where = f" at line {line}" if line else ""
    return [
        ("name", f"  {use.space.value:<8}"),
        (style, "#" * full),
        ("dim", "." * (_BAR - full)),
        ("", f"  {use.high:,} of {use.capacity:,} bytes ({share:.1%})"),
        ("dim", f", most in use {use.alive:,}{where}\n"),
    ]


def _ids(name: str, events: Occupancy) -> list[Piece]:
    """The event ids of a function, each with its lines."""
    out: list[Piece] = []
    for resource in dict.fromkeys(use.what for use in events.used):
        uses = events.of(resource)
        limit = events.buffers if resource == BUFFER else events.available
        many, line = events.most(resource)
        where = f" at line {line}" if line else ""
        numbered = sum(use.id is not None for use in uses)
        out += [("name", f"  {resource:<14}"), ("", f"{numbered} of {limit} ids")]
        out.append(("dim", f", {many} at once{where}\n" if many else "\n"))
        for use in uses:
            number = "of run" if use.id is None else use.id
            spans = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in events.lines(use))
            inside = f" ({', '.join(use.by)})" if use.by else ""
            out.append(("", f"    id {number:<7} lines {spans or '-'}{inside}\n"))
    return [("title", f"\n@{name}: ids in use\n"), *out] if out else []


# ---- as data


def _plain(plan: FunctionPlan, events: Occupancy) -> dict[str, Any]:
    uses = [
        {"space": u.space.value, "high": u.high, "most_alive": u.alive, "capacity": u.capacity}
        for u in plan.uses
    ]
    placed: Sequence[Placed] = (*plan.placed, *plan.taken)
    ids = [
        {"between": e.what, "id": e.id, "lines": events.lines(e), "by": list(e.by)}
        for e in events.used
    ]
    rows = [_plain_row(plan, p) for p in placed]
    return {"name": plan.name, "buffers": rows, "use": uses, "ids": ids}


def _plain_row(plan: FunctionPlan, placed: Placed) -> dict[str, Any]:
    lines = plan.lines(placed.buffer.alive)
    return {
        "name": placed.buffer.name,
        "type": placed.buffer.type,
        "space": placed.buffer.space.value,
        "start": placed.start,
        "end": placed.end,
        "kind": placed.kind,
        "lines": list(lines) if lines else None,
    }
