"""`pto header`: writes the header that kernels in C++ include."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli.command_line import CommandLine
from pto.cxx import header

EXAMPLES = """\
  pto header -o include     the header, for compilers and editors (clangd)
"""


def add_arguments(parser: CommandLine) -> None:
    text = "write to this folder"
    parser.add_argument("-o", "--out", metavar="DIR", type=Path, required=True, help=text)


def run(args: argparse.Namespace) -> int:
    header.write(args.out)
    print(f"{args.out}: compile with -I{args.out} -std=c++17")
    return 0
