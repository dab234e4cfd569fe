"""`pto export`: a launch as a folder that builds and runs on a board."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli import findings
from pto.cli.program import BLOCKS, FILE, grid, read_launch
from pto.verify.functions import name_of

EXAMPLES = """\
  pto export k.py:softmax --device 910b1 --blocks 7 --arg x=rand:100x128 --arg y=zeros:100x128 \\
      --out softmax              kernel, host program, data, build file; sh run.sh on a board
  pto export gemm.pto --device 950pr --arg a=rand --arg b=rand --arg c=zeros --out gemm
  pto cxx st softmax             run the folder here; its results are those of the kernel
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE)
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="a new folder")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=_ARG)
    parser.add_argument("--blocks", type=grid, default=1, metavar="N[,N]", help=BLOCKS)
    parser.add_argument("--profile", metavar="P", help="a2a3 or a5; default: as declared")
    parser.add_argument("--device", metavar="D", help="the chip: 910b1, 950pr, ...")
    parser.add_argument("--entry", metavar="F", help="the function to export")
    parser.add_argument("--seed", type=int, default=0, help="for rand")
    findings.add_format(parser)


_ARG = "as for `pto run`: the values are the inputs of the test"


def run(args: argparse.Namespace) -> int:
    from pto.cxx.export.folder import export
    from pto.run.launch.entry import entry_functions

    called = read_launch(args)
    name = name_of(entry_functions(called.module, args.entry)[0])
    how = {"blocks": args.blocks, "profile": args.profile, "device": args.device}
    made = export(called.module, called.values, args.out, name=name, **how)
    if findings.is_text(args):
        print(made)
    else:
        findings.data(args, folder=str(made.path), kernel=made.name, us=made.us)
    return 0
