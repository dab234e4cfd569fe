"""`pto view`: a kernel side by side on one page: source, program, C++, tiles and timeline."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli import console, findings
from pto.cli.program import BLOCKS, FILE, grid, read_launch
from pto.verify.target import target_of

EXAMPLES = """\
  pto view k.py:softmax --blocks 7 --arg x=zeros:100x128 --arg y=zeros:100x128
                                 writes softmax.html; the file is executed, with your rights
  pto view gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros -o gemm.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE)
    parser.add_argument("--entry", metavar="F", help="the function to show")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=_ARG)
    parser.add_argument("--blocks", type=grid, default=1, metavar="N[,N]", help=BLOCKS)
    parser.add_argument("--profile", metavar="P", help="a2a3 or a5; default: as declared")
    parser.add_argument("--device", metavar="D", help="a chip: 910b1, 950pr, ...")
    parser.add_argument("--seed", type=int, default=0, help="for rand")
    parser.add_argument("-o", dest="out", metavar="FILE", help="the page; default: NAME.html")
    findings.add_format(parser)


_ARG = "as for `pto run`; only shapes count"


def run(args: argparse.Namespace) -> int:
    from pto.lang.side import page

    called = read_launch(args)
    target = target_of(called.module, profile=args.profile, device=args.device)
    name = Path(args.file).stem if ":" not in args.file else args.file.rpartition(":")[2]
    made = page(called.module, target.profile, called.values, args.blocks, args.device, name)
    out = args.out or f"{name}.html"
    made.html(out)
    if findings.is_text(args):
        console.write([("", f"page in {out}\n")])
    else:
        findings.data(args, (), [], page=out)
    return 0
