"""`pto export`: writes a launch as a folder that builds and runs on hardware."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli import findings, options
from pto.cli.command_line import CommandLine
from pto.cli.program import read_launch

EXAMPLES = """\
  pto export k.py:softmax --device 910b1 --blocks 7 --arg x=rand:100x128 --arg y=zeros:100x128 \\
      --out softmax              kernel, host program, data, build file; sh run.sh on a board
  pto export k.py:scale --profile a5 --blocks 4,2 --arg x=rand:64x128 --arg s=0.5 \\
      --arg y=zeros:64x128 --out scale       a number, and a grid of 4 x 2 blocks
  pto export gemm.pto --device 950pr --arg a=rand --arg b=rand --arg c=zeros --out gemm
  pto suite cxx softmax             run the folder here; its results are those of the kernel
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_launch(parser, "export", "set an input of the exported test, as for `pto run`")
    out = "write to this folder, which must be new or empty"
    parser.add_argument("-o", "--out", metavar="DIR", type=Path, required=True, help=out)
    options.add_target(parser, chips=True)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    from pto.cxx.export.folder import export
    from pto.plan.calls import entry_functions

    called = read_launch(args)
    name = entry_functions(called.module, args.entry)[0].symbol
    how = {"blocks": args.blocks, "profile": args.profile, "device": args.device}
    exported = export([called.module], [called.values], args.out, name=name, **how)
    if findings.is_text(args):
        print(exported)
    else:
        findings.data(args, folder=str(exported.path), kernel=exported.name, us=exported.us)
    return 0
