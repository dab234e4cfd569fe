"""`pto view`: shows a kernel on one page: source, program, C++, tiles, layouts and timeline."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli import console, findings, options
from pto.cli.command_line import CommandLine
from pto.cli.program import read_launch
from pto.verify.program import target_of

EXAMPLES = """\
  pto view k.py:softmax          writes softmax.html, for the example in the kernel's docstring;
                                 the file is executed, with your rights
  pto view k.py:softmax --blocks 7 --arg x=zeros:100x128 --arg y=zeros:100x128
  pto view gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros -o gemm.html
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_launch(parser, "show", "set an argument, as for `pto run`; only shapes are used")
    options.add_target(parser, chips=True)
    out = "write the page here; default: NAME.html"
    parser.add_argument("-o", "--out", metavar="FILE", help=out)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    from pto.view.side import page

    called = read_launch(args)
    target = target_of(called.module, profile=args.profile, device=args.device)
    name = Path(args.file).stem if ":" not in args.file else args.file.rpartition(":")[2]
    built_page = page(called.module, target.profile, called.values, args.blocks, args.device, name)
    out = args.out or f"{name}.html"
    built_page.html(out)
    if findings.is_text(args):
        console.write([("", f"page in {out}\n")])
    else:
        findings.data(args, (), [], page=out)
    return 0
