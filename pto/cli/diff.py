"""`pto diff`: compares the order of accesses in two compilers' outputs of one program."""

from __future__ import annotations

import argparse

from pto.cli import findings, options, program
from pto.cli.command_line import CommandLine
from pto.core.errors import Diagnostic, PtoError
from pto.core.render import Piece
from pto.ir.graph import Module
from pto.observe.compare import Compared, compare
from pto.verify.program import judge

EXAMPLES = """\
  pto diff old.pto new.pto                 which accesses lost their order, which fences differ
  pto diff old.pto new.pto --profile a2a3
  pto diff old.pto new.pto --format json   status 0: the same order, 1: another, 2: a request
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("first", metavar="A", help="a .pto program, printed by one compiler")
    parser.add_argument("second", metavar="B", help="the same program, printed by another compiler")
    options.add_target(parser)
    options.add_python(parser)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    first, second = (program.read_program(name, args) for name in (args.first, args.second))
    for module in (first, second):
        errors = _errors(module, args)
        if errors:
            raise PtoError(*errors)
    compared = compare(first, second, profile=args.profile, device=args.device)
    every, same = [*compared.order, *compared.fences], compared.is_same
    findings.show(
        every, args, _summary(compared), same=same, fences=compared.both, runs=compared.runs
    )
    return 0 if same else 1


def _errors(module: Module, args: argparse.Namespace) -> list[Diagnostic]:
    _, findings_list = judge(module, profile=args.profile, device=args.device)
    return [d for d in findings_list if d.severity == "error"]


def _summary(compared: Compared) -> list[Piece]:
    fences = f"{compared.both} fences in both programs, {compared.other} in one or elsewhere"
    runs = f"{compared.runs} run{'s' * (compared.runs != 1)} on generated inputs"
    gap: list[Piece] = [("", "\n")] if compared.order or compared.fences else []
    if compared.is_same:
        return [*gap, ("value", "the same order"), ("dim", f": {fences}; {runs}\n")]
    many = f"{len(compared.order)} difference{'s' * (len(compared.order) != 1)}"
    return [*gap, ("error", f"another order: {many}"), ("dim", f"; {fences}; {runs}\n")]
