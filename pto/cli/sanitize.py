"""`pto sanitize`: runs a kernel and reports races, deadlocks and undefined reads."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli import findings, options
from pto.cli.command_line import PYTHON, TEXT, CommandLine
from pto.cli.program import ModuleLaunch, load_launch
from pto.cli.run import copies
from pto.core.errors import fail
from pto.run.launch.engine import DEFAULT, ENGINES

EXAMPLES = """\
  pto sanitize add.pto --arg a=rand --arg b=rand --arg c=zeros
                                 races, deadlocks, undefined reads, each at its line
  pto sanitize k.py:softmax --blocks 7 --arg x=rand:100x128 --arg y=zeros:100x128
                                 a kernel in Python; the file is executed, with your rights
  pto sanitize add.pto --arg a=rand --arg b=rand --arg c=zeros --fix
                                 write add.fixed.pto, with the flags that were missing
  pto sanitize add.pto --arg a=rand --arg b=rand --arg c=zeros --format sarif > out.sarif
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_launch(parser, "run", options.VALUES, f"{options.FILE}, or a C++ kernel")
    options.add_target(parser)
    options.add_engine(parser, ENGINES, DEFAULT)
    automatic = parser.add_argument("--automatic", action="store_true", help=_AUTOMATIC)
    fix = parser.add_argument("--fix", action="store_true", help=_FIX)
    fixed = parser.add_argument("-o", "--out", metavar="FILE", help=options.FIXED)
    options.add_timeout(parser, "the run")
    options.add_on(parser)
    options.add_cpp(parser)
    findings.add_format(parser, "sarif")
    parser.only_for(automatic, languages=(TEXT, PYTHON))
    parser.only_for(fix, languages=(TEXT,))
    parser.only_with(fixed, fix, why="it names the fixed program")


_AUTOMATIC = "assume that a compiler inserts the flags and barriers"
_FIX = "write a program with the missing flags, each confirmed by a run"


def run(args: argparse.Namespace) -> int:
    if args.fix and not findings.is_text(args):
        raise fail("PTO-U232", "--fix writes a program and prints what it changed: no --format")
    called = load_launch(args)
    before = copies(called.values)
    _, code = called.sanitize(args)
    if not args.fix or not isinstance(called, ModuleLaunch):
        return code
    from pto.cli.fix import write_fixed
    from pto.observe.replay import TrialRun

    names = ("entry", "blocks", "profile", "device")
    trial = TrialRun(before, {name: getattr(args, name) for name in names})
    return write_fixed(Path(args.file), called.module, [trial], args.out)
