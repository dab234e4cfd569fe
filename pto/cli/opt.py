"""`pto opt`: apply passes to a program and print the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pto.cli import console, findings, options, program
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.ir.graph import Module, Operation
from pto.ir.text.printer import print_module
from pto.isa.handle.tile import ALLOC_TILE
from pto.plan.memory import addressed
from pto.plan.sync import insert
from pto.target.facts import Profile
from pto.transform import schedule
from pto.transform.pass_result import PassResult
from pto.transform.reuse import Reuse
from pto.transform.schedule import ProgramLaunch
from pto.transform.scratch import complete
from pto.transform.separate import separate_all
from pto.transform.tidy import drop_unused, tidy
from pto.verify.program import legal_target

EXAMPLES = """\
  pto opt --pass tidy add.pto               numbers computed once, regions set once
  pto opt --pass scratch --pass addresses --profile a2a3 add.pto -o out.pto
                                            two passes, in this order
  pto opt --pass sync k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
  pto opt --pass longer=4 --pass slots=2 --explain gemm.pto -o out.pto
                                            passes of a schedule, and what each did
"""


def _each(change: Callable[[Operation], None]) -> Callable[[Module, Profile], Module]:
    """A pass that changes the functions of a program one by one."""

    def run(module: Module, profile: Profile) -> Module:
        for function in (f for f in module.functions() if f.has_body):
            change(function)
        return module

    return run


def _reuse(function: Operation) -> None:
    tiles = [v for op in function.walk() if op.row is ALLOC_TILE for v in op.results]
    Reuse(function, [v for v in tiles if v.maker and not v.maker.group("addr")]).run()


def _split(module: Module, profile: Profile) -> Module:
    return separate_all(module, profile).required().module


PASSES: dict[str, tuple[str, Callable[[Module, Profile], Module]]] = {
    "tidy": ("compute equal numbers once, before loops; set a region once", _each(tidy)),
    "unused": ("erase operations without effect whose results nothing uses", _each(drop_unused)),
    "reuse": ("write elementwise results over a source that is not read again", _each(_reuse)),
    "split": ("give each core of a function for both its own, joined by a queue", _split),
    "scratch": ("allocate the scratch tiles that calls leave out", complete),
    "addresses": ("give every tile the address that the planner chooses", addressed),
    "sync": ("insert flags and barriers, then addresses", insert),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    numbered = {f"{n}={each.number}": each.words for n, each in schedule.PASSES.items()}
    words = {name: words for name, (words, _) in PASSES.items()} | numbered
    listed = "; ".join(f"{name}: {each}" for name, each in words.items())
    parser.add_argument("file", metavar="FILE", help=options.FILE)
    parser.add_argument(
        "--pass",
        dest="passes",
        action="append",
        required=True,
        metavar="NAME[=N]",
        help=f"apply a pass; several in the order given. {listed}",
    )
    blocks = "state the blocks of the launch, for passes that change them; default: 1"
    parser.add_argument("--blocks", type=int, default=1, metavar="N", help=blocks)
    explain = "print what each pass did, on standard error unless -o is given"
    parser.add_argument("--explain", action="store_true", help=explain)
    options.add_target(parser)
    options.add_output(parser)
    options.add_python(parser)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    module = program.read_program(args.file, args)
    target = legal_target(module, profile=args.profile, device=args.device)
    launch, changes = _passed(ProgramLaunch(module, args.blocks), args.passes, target.profile)
    text = print_module(launch.module)
    if args.out:
        write_whole(args.out, text)
    elif findings.is_text(args):
        sys.stdout.write(text)
    if not findings.is_text(args):
        done = [str(each) for each in changes]
        data: dict[str, Any] = {
            "passes": args.passes,
            "changes": done,
            "blocks": launch.blocks,
            "program": text,
        }
        findings.data(args, target=str(target), **data)
    elif args.explain:
        lines: list[Piece] = [("", f"{each}\n") for each in changes]
        console.write(lines, sys.stdout if args.out else sys.stderr)
    return 0


def _passed(
    launch: ProgramLaunch, names: Sequence[str], profile: Profile
) -> tuple[ProgramLaunch, list[PassResult]]:
    """The program after the passes, and what those of a schedule did."""
    changes: list[PassResult] = []
    for name in names:
        if name in PASSES:
            launch = ProgramLaunch(PASSES[name][1](launch.module, profile), launch.blocks)
        else:
            launch, done = schedule.scheduled(launch, [schedule.step(name)])
            changes += [change for each in done for change in each]
    return launch, changes
