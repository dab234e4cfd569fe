"""`pto fmt`: a program in one stable form, in MLIR's generic form, or as C++."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pto.cli import program
from pto.cli.check import program_files
from pto.core.errors import PtoError, fail
from pto.core.output import write_whole
from pto.ir.graph import Module
from pto.ir.text.comments import formatted
from pto.ir.text.parser import parse, read_source
from pto.ir.text.printer import print_module
from pto.verify.target import judge

EXAMPLES = """\
  pto fmt kernel.pto                 print it in the stable form
  pto fmt --generic kernel.pto       print MLIR's generic form, which any MLIR tool reads
  pto fmt --cpp kernel.pto > k.cpp   as C++ for the PTO header library, tiles placed, pipes ordered
  pto fmt --write src/               rewrite every .pto file below src/
  pto fmt --check src/               exit 1 if a file is not in the stable form
  pto fmt k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                     the .pto text of a kernel in Python
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=_FILE)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--generic", action="store_true", help="MLIR's generic form")
    form.add_argument("--cpp", action="store_true", help="C++ for the PTO header library")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true", help="change the files")
    group.add_argument("--check", action="store_true", help="only say which files would change")
    parser.add_argument("--profile", metavar="P", help="of a Python kernel, or of C++")
    program.add_arguments(parser)


_FILE = ".pto files, folders of them, or a kernel of a Python file: k.py:softmax"


def run(args: argparse.Namespace) -> int:
    kernels = [file for file in args.files if program.is_python(file)]
    if kernels:
        return _print_kernel(kernels[0], args)
    files = list(program_files(args.files))
    if len(files) > 1 and not (args.write or args.check):
        raise fail("PTO-U006", f"{len(files)} files to print: name one, or use --write or --check")
    if args.cpp:
        if args.write or args.check:
            raise fail("PTO-U006", "--cpp prints one program: without --write and --check")
        sys.stdout.write(_cpp(parse(read_source(files[0]), str(files[0])), args))
        return 0
    changed = 0
    for path in files:
        before = read_source(path)
        if args.generic:
            after = print_module(parse(before, str(path)), generic=True)
        else:
            after = formatted(before, str(path))
        changed += before != after
        _deliver(path, before, after, args)
    return 1 if args.check and changed else 0


def _print_kernel(file: str, args: argparse.Namespace) -> int:
    """The .pto text of one Python kernel, or its C++."""
    if args.write or args.check:
        program.require_text(file, "--write" if args.write else "--check")
    if len(args.files) > 1:
        raise fail("PTO-U006", f"{len(args.files)} files to print: name one")
    module = program.read_program(file, args)
    sys.stdout.write(_cpp(module, args) if args.cpp else print_module(module, generic=args.generic))
    return 0


def _cpp(module: Module, args: argparse.Namespace) -> str:
    from pto.cxx.export import cpp

    target, findings = judge(module, profile=args.profile)
    errors = [d for d in findings if d.severity == "error"]
    if errors:
        raise PtoError(*errors)
    return cpp(module, target.profile)


def _deliver(path: Path, before: str, after: str, args: argparse.Namespace) -> None:
    if args.check or args.write:
        if before != after:
            print(path)
        if args.write and before != after:
            write_whole(path, after)
    else:
        sys.stdout.write(after)
