"""`pto fmt`: a program in one stable form, or in MLIR's generic form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pto.cli import program
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
  pto fmt k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                     the .pto text of a kernel in Python
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=_FILE)
    parser.add_argument("--generic", action="store_true", help="MLIR's generic form")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true", help="change the files; drops comments")
    group.add_argument("--check", action="store_true", help="only say which files would change")
    parser.add_argument("--profile", metavar="P", help="of a Python kernel")
    program.add_arguments(parser)


_FILE = ".pto files, folders of them, or a kernel of a Python file: k.py:softmax"


def run(args: argparse.Namespace) -> int:
    kernels = [file for file in args.files if program.is_python(file)]
    if kernels:
        return _print_kernel(kernels[0], args)
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


def _print_kernel(file: str, args: argparse.Namespace) -> int:
    """The .pto text of one Python kernel."""
    if args.write or args.check:
        program.require_text(file, "--write" if args.write else "--check")
    if len(args.files) > 1:
        raise fail("PTO-U006", f"{len(args.files)} files to print: name one")
    sys.stdout.write(print_module(program.read_program(file, args), generic=args.generic))
    return 0


def _deliver(path: Path, before: str, after: str, args: argparse.Namespace) -> None:
    if args.check or args.write:
        if before != after:
            print(path)
        if args.write and before != after:
            write_whole(path, after)
    else:
        sys.stdout.write(after)
