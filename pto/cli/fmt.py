"""`pto fmt`: a program in one stable form, or in MLIR's generic form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pto.cli.check import program_files
from pto.core.errors import fail
from pto.core.output import write_whole
from pto.ir.text.parser import parse, read_source
from pto.ir.text.printer import print_module

EXAMPLES = """\
  pto fmt kernel.pto                 print it in the stable form
  pto fmt --generic kernel.pto       print MLIR's generic form, which any MLIR tool reads
  pto fmt --write src/               rewrite every .pto file below src/ (comments are not kept)
  pto fmt --check src/               exit 1 if a file is not in the stable form
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=".pto files, or folders of them")
    parser.add_argument("--generic", action="store_true", help="MLIR's generic form")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true", help="change the files; drops comments")
    group.add_argument("--check", action="store_true", help="only say which files would change")


def run(args: argparse.Namespace) -> int:
    files = list(program_files(args.files))
    if len(files) > 1 and not (args.write or args.check):
        raise fail("PTO-U006", f"{len(files)} files to print: name one, or use --write or --check")
    changed = 0
    for path in files:
        before = read_source(path)
        after = print_module(parse(before, str(path)), generic=args.generic)
        changed += before != after
        _deliver(path, before, after, args)
    return 1 if args.check and changed else 0


def _deliver(path: Path, before: str, after: str, args: argparse.Namespace) -> None:
    if args.check or args.write:
        if before != after:
            print(path)
        if args.write and before != after:
            write_whole(path, after)
    else:
        sys.stdout.write(after)
