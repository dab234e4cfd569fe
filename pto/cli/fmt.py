"""`pto fmt`: prints a program in one stable form, in MLIR's generic form, or as C++."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pto.cli import findings, options, program
from pto.cli.check import program_files
from pto.cli.command_line import CommandLine
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.output import write_whole
from pto.ir.graph import Module
from pto.ir.text.comments import formatted
from pto.ir.text.parser import parse, read_source
from pto.ir.text.printer import print_module
from pto.verify.program import legal_target

EXAMPLES = """\
  pto fmt kernel.pto                 print it in the stable form
  pto fmt --generic kernel.pto       print MLIR's generic form, which any MLIR tool reads
  pto fmt --cpp kernel.pto > k.cpp   as C++ for the PTO header library, tiles placed, pipes ordered
  pto fmt --write src/               rewrite every .pto file below src/
  pto fmt --check src/               exit 1 if a file is not in the stable form
  pto fmt k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                     the .pto text of a kernel in Python
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=options.FILES)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--generic", action="store_true", help="print MLIR's generic form")
    form.add_argument("--cpp", action="store_true", help="print C++ for the PTO header library")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true", help="change the files")
    group.add_argument("--check", action="store_true", help="only list files that would change")
    options.add_profile(parser)
    options.add_python(parser)
    findings.add_format(parser)


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
    errors: list[Diagnostic] = []
    printed: list[tuple[Path, str, str]] = []
    for path in files:
        try:
            before = read_source(path)
            printed.append((path, before, _printed(before, str(path), args)))
        except PtoError as error:
            errors += error.diagnostics
    changed = [path for path, before, after in printed if before != after]
    for path, _, after in printed if args.write and not errors else ():  # all files or none
        if path in changed:
            write_whole(path, after)
    if errors:
        raise PtoError(*errors)
    if findings.is_text(args):
        rewritten = args.check or args.write
        sys.stdout.write("".join(f"{path}\n" for path in changed) if rewritten else printed[0][2])
    else:
        listed = [{"file": str(p), "changed": p in changed, "text": text} for p, _, text in printed]
        findings.data(args, (), listed, files=listed)
    return 1 if args.check and changed else 0


def _printed(text: str, file: str, args: argparse.Namespace) -> str:
    if args.generic:
        return print_module(parse(text, file), generic=True)
    return formatted(text, file)


def _print_kernel(file: str, args: argparse.Namespace) -> int:
    """The .pto text of one Python kernel, or its C++."""
    if args.write or args.check:
        program.require_text(file, "--write" if args.write else "--check")
    if len(args.files) > 1:
        raise fail("PTO-U006", f"{len(args.files)} files to print: name one")
    module = program.read_program(file, args)
    text = _cpp(module, args) if args.cpp else print_module(module, generic=args.generic)
    if findings.is_text(args):
        sys.stdout.write(text)
    else:
        findings.data(args, files=[{"file": file, "changed": True, "text": text}])
    return 0


def _cpp(module: Module, args: argparse.Namespace) -> str:
    from pto.cxx.export import cpp

    return cpp(module, legal_target(module, profile=args.profile).profile)
