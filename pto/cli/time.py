"""`pto time`: how long a kernel takes on a chip, and what bounds it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pto.cli import console
from pto.core.render import Piece
from pto.ir.text.parser import parse_file
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.host import entry_functions

EXAMPLES = """\
  pto time gemm.pto --blocks 24 --arg a=zeros --arg b=zeros --arg c=zeros
  pto time gemm.pto --blocks 24 --arg a=zeros --arg b=zeros --arg c=zeros --device all
                                 every chip of the profile, as a table
  pto time gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros --trace gemm.json
                                 when each pipe was busy, for Perfetto
  pto time gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros --html gemm.html
                                 the same as a page to look at
  pto time topk.pto --arg x=x.npy --arg y=zeros --data
                                 a program that reads what decides where it goes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .pto program")
    parser.add_argument("--entry", metavar="F", help="the function to time")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=_ARG)
    parser.add_argument("--blocks", type=int, default=1, metavar="N", help="blocks of the grid")
    parser.add_argument("--profile", metavar="P", help="a2a3 or a5; default: as declared")
    parser.add_argument("--device", metavar="D", help="a chip: 910b1, 950pr, ...; or all")
    parser.add_argument("--data", action="store_true", help=_DATA)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline in Chrome's format")
    parser.add_argument("--html", metavar="FILE", help="write the timeline as a page")
    parser.add_argument("--seed", type=int, default=0, help="for rand")


_ARG = "as for `pto run`; only shapes count, unless --data is given"
_DATA = "run with the arrays' values: needed where data decides what a program does"


def run(args: argparse.Namespace) -> int:
    from pto.observe.timing import benches, time

    module = parse_file(args.file)
    kernels = entry_functions(module, args.entry)
    values = build(parameters(*kernels), parse_args(args.arg), args.seed)
    options: dict[str, Any] = {
        "args": values,
        "blocks": args.blocks,
        "entry": args.entry,
        "profile": args.profile,
        "data": args.data,
    }
    if args.device == "all":
        first = time(module, **options)
        profile = next(
            b.device.profile
            for b in benches("a2a3") + benches("a5")
            if b.device.name == first.device
        )
        found = [time(module, **options, device=b.device.name) for b in benches(profile)]
    else:
        found = [time(module, **options, device=args.device)]
    if args.trace:
        found[0].trace(args.trace)
    if args.html:
        found[0].html(args.html)
    if args.format == "json":
        print(json.dumps([each.to_json() for each in found], indent=2))
    elif len(found) == 1:
        console.write([("", f"{found[0]}\n")])
    else:
        console.write(_table(found))
    return 0


def _table(found: list[Any]) -> list[Piece]:
    lines: list[Piece] = [("title", f"{'chip':<12} {'cores':>5} {'us':>10}  bound\n")]
    for each in found:
        lines.append(("", f"{each.device:<12} {each.cores:>5} {each.us:>10.1f}  {each.bound}\n"))
    return lines
