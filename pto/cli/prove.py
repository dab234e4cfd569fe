"""`pto prove`: properties of a kernel for every size and grid, not only for one run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from pto.cli import findings, options, program, progress
from pto.cli.command_line import CommandLine
from pto.core.errors import fail
from pto.ir.graph import Operation
from pto.observe.proofs import Proofs, prove
from pto.observe.trials import entry_names
from pto.plan.calls import entry_functions
from pto.prove.questions import Answer
from pto.run.launch.arguments import parameters
from pto.verify.program import legal_target

EXAMPLES = """\
  pto prove kernel.pto                     for every size, every block and every iteration
  pto prove kernel.pto --assume 'rows >= 8 * blocks'
                                           where a property needs a relation between numbers
  pto prove kernel.pto --set rows=100 --blocks 4
                                           for these numbers alone
  pto prove k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                           a Python kernel, for all shapes of these dimensions
  pto prove kernel.pto --format json
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("file", metavar="FILE", help=options.FILE)
    parser.add_argument("--entry", metavar="F", help="prove only this kernel")
    options.add_profile(parser)
    parser.add_argument("--assume", action="append", default=[], metavar="A", help=_ASSUME)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=N", help=_SET)
    parser.add_argument("--blocks", type=options.grid, metavar="N", help=_BLOCKS)
    options.add_python(parser)
    findings.add_format(parser)


_ASSUME = "assume an inequality of integer arguments and `blocks`, such as 'rows >= 8 * blocks'"
_SET = "set the value of an integer argument"
_BLOCKS = "prove for this grid only; default: for every grid"


def run(args: argparse.Namespace) -> int:
    stated = {"blocks": args.blocks, "assume": args.assume}
    proofs = _of_kernel(args, stated) if program.is_python(args.file) else _of_text(args, stated)
    data = [{"kernel": name, **_data(a)} for name, a in proofs]
    return findings.show(proofs.findings, args, proofs.pieces(), answers=data)


def _of_kernel(args: argparse.Namespace, stated: Mapping[str, Any]) -> Proofs:
    from pto.lang.any_size import generalised
    from pto.lang.any_size import prove as prove_kernel

    specialised, values = program.traced(args.file, args, complete=False)
    general = generalised(specialised)
    numbers = _numbers(args.set, entry_functions(general.made.module, None))
    with progress.stage("proving", args):
        return prove_kernel(specialised, values, general=general, numbers_given=numbers, **stated)


def _of_text(args: argparse.Namespace, stated: Mapping[str, Any]) -> Proofs:
    module = program.read_program(args.file, args)
    target = legal_target(module, profile=args.profile)
    names = [args.entry] if args.entry is not None else entry_names(module)
    functions = [f for name in names for f in entry_functions(module, name)]
    numbers = _numbers(args.set, functions)
    with progress.stage("proving", args):
        return prove(module, functions, profile=target.profile.name, numbers=numbers, **stated)


def _numbers(words: Sequence[str], functions: Sequence[Operation]) -> dict[str, int]:
    names = [p.name for f in functions for p in parameters(f)]
    return dict(_number(word, names) for word in words)


def _number(word: str, names: Sequence[str]) -> tuple[str, int]:
    name, sign, value = word.partition("=")
    if not sign or name not in names or not value.removeprefix("-").isdecimal():
        listed = ", ".join(dict.fromkeys(names))
        raise fail("PTO-U340", f"--set {word}: give NAME=N for an integer argument: {listed}")
    return name, int(value)


def _data(a: Answer) -> dict[str, Any]:
    example = None if a.example is None else {**a.example.names, "blocks": a.example.blocks}
    if example is not None and a.example is not None and a.example.data:
        example["data"] = a.example.data
    return {
        "question": a.question,
        "verdict": a.verdict,
        "text": a.text,
        "reason": a.reason,
        "loc": None if a.op is None or a.op.loc is None else str(a.op.loc),
        "assumes": list(a.assumes),
        "example": example if a.verdict == "refuted" else None,
    }
