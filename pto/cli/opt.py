"""`pto opt`: search the fastest program for a chip, or apply passes, and print the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.cli import console, findings, options, program, progress
from pto.cli.command_line import CommandLine
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.ir.graph import Module, Operation
from pto.ir.text.printer import print_module
from pto.isa.handle.tile import ALLOC_TILE
from pto.observe.timing import bench
from pto.optimize.accept import Comparison, random_array
from pto.optimize.bound import cores_of
from pto.optimize.grid import grid_of
from pto.optimize.outcome import Task
from pto.optimize.report import Optimization
from pto.optimize.search import Point, Program
from pto.plan.calls import entry_functions
from pto.plan.memory import addressed
from pto.plan.sync import insert
from pto.run.launch.call import count_of
from pto.target.facts import Profile
from pto.transform import schedule
from pto.transform.pass_result import PassResult
from pto.transform.reuse import Reuse
from pto.transform.schedule import ProgramLaunch, scheduled
from pto.transform.scratch import complete
from pto.transform.separate import separate_all
from pto.transform.tidy import drop_unused, tidy
from pto.verify.program import legal_target

EXAMPLES = """\
  pto opt k.py:gemm --device 910b1 --arg a=zeros:1536x1536 --arg b=zeros:1536x1536 \\
          --arg c=zeros:1536x1536 --explain -o fast.pto
                                            the fastest schedule for these shapes, and its report
  pto opt gemm.pto --device 910b1 --blocks 72 --arg a=zeros --arg b=zeros --arg c=zeros
                                            the same for the text of any compiler
  pto opt --pass tidy add.pto               numbers computed once, regions set once
  pto opt --pass scratch --pass addresses --profile a2a3 add.pto -o out.pto
                                            two passes, in this order
  pto opt --pass sync k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
  pto opt --pass longer=4 --pass slots=2 --explain gemm.pto -o out.pto
                                            passes of a schedule, and what each did
  pto opt --show nests k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
                                            the loops that the compiled engine makes of a program
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


_SMALL = 1 << 20  # bytes of arrays: a launch on more is not run

PASSES: dict[str, tuple[str, Callable[[Module, Profile], Module]]] = {
    "tidy": ("compute equal numbers once, before loops; set a region once", _each(tidy)),
    "unused": ("erase operations without effects or used results", _each(drop_unused)),
    "reuse": ("write elementwise results over a source that is not read again", _each(_reuse)),
    "split": ("give each core of a function for both its own, joined by a queue", _split),
    "scratch": ("allocate the scratch tiles that calls leave out", complete),
    "addresses": ("give every tile the address that the planner chooses", addressed),
    "sync": ("insert flags and barriers, then addresses", insert),
}


def add_arguments(parser: CommandLine) -> None:
    numbered = {f"{n}={each.number}": each.words for n, each in schedule.PASSES.items()}
    words = {name: words for name, (words, _) in PASSES.items()} | numbered
    listed = "; ".join(f"{name}: {each}" for name, each in words.items())
    parser.add_argument("file", metavar="FILE", help=options.FILE)
    parser.add_argument(
        "--pass",
        dest="passes",
        action="append",
        default=[],
        metavar="NAME[=N]",
        help=f"apply this pass instead of a search; several in the order given. {listed}",
    )
    parser.add_argument("--entry", metavar="F", help="search for this kernel, if FILE has several")
    blocks = "state the blocks of the launch; default: as many as the stores need, 1 for passes"
    parser.add_argument("--blocks", type=options.grid, metavar="N[,N]", help=blocks)
    data = "use the values of arrays in the search: needed if control flow depends on data"
    parser.add_argument("--data", action="store_true", help=data)
    stages = {
        "groups": "the instructions that run as one loop",
        "nests": "their loops: accesses and expressions",
        "llvm": "the LLVM module",
    }
    words = "; ".join(f"{name}: {each}" for name, each in stages.items())
    parser.add_argument(
        "--show",
        choices=list(stages),
        metavar="STAGE",
        help=f"print a stage of the compiled engine instead of a program. {words}",
    )
    again = "search again even if a cached result exists"
    parser.add_argument("--again", action="store_true", help=again)
    explain = "print what each pass did and saves, on standard error unless -o is given"
    parser.add_argument("--explain", action="store_true", help=explain)
    options.add_target(parser)
    options.add_output(parser)
    options.add_values(
        parser, "set an argument, as for `pto run`: arrays give the shapes of a launch"
    )
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    if not args.passes and not args.show:
        return _search(args)
    module = program.read_program(args.file, args)
    target = legal_target(module, profile=args.profile, device=args.device)
    launch, changes = _passed(
        ProgramLaunch(module, count_of(args.blocks or 1)), args.passes, target.profile
    )
    if args.show:
        return _show_stage(launch, target.profile, args)
    done = [str(each) for each in changes]
    data: dict[str, Any] = {"passes": args.passes, "changes": done, "blocks": launch.blocks}
    return _shown(launch, "".join(f"{each}\n" for each in done), data, str(target), args)


def _show_stage(launch: ProgramLaunch, profile: Profile, args: argparse.Namespace) -> int:
    """Print a stage of the compiled engine."""
    from pto.run.jit.show import show

    functions = entry_functions(launch.module, args.entry)
    text = show(args.show, launch.module, functions, profile)
    if not findings.is_text(args):
        findings.data(args, stage=args.show, text=text)
    elif args.out:
        write_whole(args.out, text)
    else:
        sys.stdout.write(text)
    return 0


def _search(args: argparse.Namespace) -> int:
    """Search the fastest program, and print it."""
    with progress.stage("searching", args):
        launch, report = _searched(args)
    return _shown(launch, f"{report}\n", report.to_json(), report.device, args)


def _searched(args: argparse.Namespace) -> tuple[ProgramLaunch, Optimization]:
    if program.is_python(args.file):
        kernel, values = program.kernel_call(args.file, args)
        grid, chip = args.blocks, args.device
        fast = kernel.optimize(*values, blocks=grid, device=chip, data=args.data, again=args.again)
        return fast.launch, fast.report
    return _searched_text(args)


def _searched_text(args: argparse.Namespace) -> tuple[ProgramLaunch, Optimization]:
    """The fastest program for a launch of text; bits are compared if the launch is small."""
    loaded = program.read_launch(args)
    profile = legal_target(loaded.module, profile=args.profile, device=args.device).profile
    chip = bench(args.device, profile.name)
    launch = ProgramLaunch(loaded.module, 1)
    numbers = dict(zip((p.name for p in loaded.params), loaded.values, strict=True))
    grid = args.blocks or grid_of(launch.module, numbers, cores_of(launch, chip)) or 1
    launch.blocks = count_of(grid)
    arrays = [each for each in loaded.values if isinstance(each, np.ndarray)]

    def compare(point: Point) -> list[Comparison]:
        if sum(each.nbytes for each in arrays) > _SMALL:
            return []
        given = [
            random_array(v, max(v.shape)) if isinstance(v, np.ndarray) else v for v in loaded.values
        ]
        return [Comparison(launch, scheduled(launch, point.schedule)[0], given)]

    (name, *_) = (function.symbol for function in launch.functions)
    written = Program(launch, loaded.values)
    task = Task(name, lambda constants: written, {}, dict, chip, compare, args.data)
    found, report = task.outcome(again=args.again)
    return found.launch, report


def _shown(
    launch: ProgramLaunch,
    words: str,
    data: dict[str, Any],
    target: str,
    args: argparse.Namespace,
) -> int:
    """Print or write a program, and what was done to it."""
    text = print_module(launch.module)
    if args.out:
        write_whole(args.out, text)
    elif findings.is_text(args):
        sys.stdout.write(text)
    if not findings.is_text(args):
        findings.data(args, target=target, **data, program=text)
    elif args.explain:
        lines: list[Piece] = [("", words)]
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
            launch, done = scheduled(launch, [schedule.step(name)])
            changes += [change for each in done for change in each]
    return launch, changes
