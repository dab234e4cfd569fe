"""Options that several commands share: one spelling and one help text each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pto.cli.command_line import CPP, PYTHON, CommandLine
from pto.core.errors import fail

if TYPE_CHECKING:
    from pto.graphs.suite import CaseSelection

FILE = "a .pto program, or a kernel of a Python file: k.py:softmax (the file is executed)"
FILES = ".pto files, folders of them, or a kernel of a Python file: k.py:softmax (executed)"
SCHEDULE = "let effects happen in program order (default), early, late or random:SEED"
FIXED = "write the program of --fix here; default: FILE.fixed.pto"
TRACE = "write the timeline in Chrome's trace format"
HTML = "write the timeline as an HTML page"
_ON = "run on a cluster: ray, or ray://HOST:10001; default: PTO_ON, else this machine"
VALUES = "set an argument: data.npy, rand[:1024xf32], zeros, ones, range, full(1.5), or a number"
_SEED = "set the seed of `rand`; default: 0"
ORDERS = "run again in N random orders that the edges allow, and compare every byte"
_MOST = "limit a parameter of the cases to N; the name of a case then shows the limit"
_SCENE_PROFILE = "use this profile; default: the one of the test"
_PYTHON_ARG = "give a Python kernel an array (x=zeros:100x128), a number or a constant"


def grid(text: str) -> int | tuple[int, ...]:
    """`24` blocks, or `4,8` blocks along two axes."""
    try:
        sizes = tuple(map(int, text.split(",")))
    except ValueError:
        raise fail(
            "PTO-U039",
            f"a grid is a number of blocks, or numbers with commas, not `{text}`",
            help="--blocks 24, --blocks 4,8 or --blocks 4,8,2",
        ) from None
    return sizes[0] if len(sizes) == 1 else sizes


def add_profile(parser: CommandLine, *, chips: bool = False) -> None:
    names = "a2a3 or a5" if chips else "cpu, a2a3 or a5"
    text = f"use this profile: {names}; default: the one that the program declares"
    parser.add_argument("--profile", metavar="P", help=text)


def add_target(parser: CommandLine, *, chips: bool = False, more: str = "") -> None:
    """`--profile` and `--device`; `chips`: only profiles of chips, not cpu."""
    add_profile(parser, chips=chips)
    text = f"use this chip and its limits: 910b1, 950pr, ...{more}"
    parser.add_argument("--device", metavar="D", help=text)


def add_output(parser: CommandLine) -> None:
    """`-o` of commands that print a program."""
    text = "write the program here; default: print it"
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help=text)


def add_values(parser: CommandLine, text: str) -> tuple[argparse.Action, argparse.Action]:
    """`--arg` and `--seed`."""
    values = parser.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help=text
    )
    seed = parser.add_argument("--seed", type=int, default=0, help=_SEED)
    return values, seed


def add_launch(parser: CommandLine, verb: str, values: str, file: str = FILE) -> None:
    """The program, `--entry`, `--arg`, `--seed` and `--blocks` of commands that launch."""
    parser.add_argument("file", metavar="FILE", help=file)
    parser.add_argument("--entry", metavar="F", help=f"{verb} this function")
    add_values(parser, values)
    blocks = "launch this many blocks: 24, or 24,8 for a grid with two axes; default: 1"
    parser.add_argument("--blocks", type=grid, default=1, metavar="N[,N]", help=blocks)


def add_python(parser: CommandLine) -> None:
    """`--arg` and `--seed` of commands that only read a program: shapes decide how it is traced."""
    group = parser.add_argument_group("Python kernels")
    values = group.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help=_PYTHON_ARG
    )
    seed = group.add_argument("--seed", type=int, default=0, help=_SEED)
    parser.only_for(values, seed, languages=(PYTHON,))


def add_cpp(parser: CommandLine) -> None:
    """Options of the C++ compiler."""
    group = parser.add_argument_group("C++ kernels")
    folder, macro = "search this folder for headers", "define a macro"
    include = group.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help=folder
    )
    define = group.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help=macro
    )
    parser.only_for(include, define, languages=(CPP,))


def add_engine(parser: CommandLine, names: Sequence[str], default: str) -> None:
    text = f"execute with {' or '.join(names)}; default: PTO_ENGINE, else {default}"
    parser.add_argument("--engine", metavar="E", help=text)


def add_jobs(parser: CommandLine) -> None:
    text = "use N processes; default: the number of processors"
    parser.add_argument("-j", type=int, metavar="N", help=text)


def add_selection(parser: CommandLine, subject: str) -> None:
    text = f"run only {subject} with names that match: words, and, or, not, parentheses"
    parser.add_argument("-k", metavar="EXPR", default="", help=text)


def add_timeout(parser: CommandLine, subject: str, seconds: float | None = None) -> None:
    default = "" if seconds is None else f"; default: {seconds:.0f}"
    text = f"stop {subject} after this many seconds{default}"
    parser.add_argument("--timeout", metavar="S", type=float, default=seconds, help=text)


def add_timeline(parser: CommandLine) -> tuple[argparse.Action, argparse.Action]:
    """Options for the timeline, of `pto time` and `pto run --time`."""
    trace = parser.add_argument("--trace", metavar="FILE", help=TRACE)
    html = parser.add_argument("--html", metavar="FILE", help=HTML)
    return trace, html


def add_model(parser: CommandLine) -> None:
    """Options of the timing model."""
    parser.add_argument("--cache", choices=("cold", "warm", "clean"), default="cold", help=_CACHE)
    parser.add_argument("--costs", metavar="FILE", help=_COSTS)
    parser.add_argument("--costs-template", metavar="FILE", help=_TEMPLATE)


_CACHE = (
    "set the state of the L2 cache: earlier launches had other inputs (cold), the same arrays"
    " (warm), or other kernels ran before (clean)"
)
_COSTS = "replace numbers of the chip by those in a file, such as measured rates"
_TEMPLATE = "write the numbers that the launch uses, as a file for --costs"


def add_on(parser: CommandLine) -> None:
    parser.add_argument("--on", metavar="WHERE", default="", help=_ON)


def add_scene(parser: CommandLine) -> None:
    """`--profile` and `--at-most` of commands that run scenes and graphs."""
    parser.add_argument("--profile", choices=("a2a3", "a5"), help=_SCENE_PROFILE)
    parser.add_argument("--at-most", metavar="NAME=N", action="append", default=[], help=_MOST)


def chosen_scenes(args: argparse.Namespace) -> CaseSelection:
    """The scenes and graphs that the command line selects."""
    from pto.graphs.suite import CaseSelection  # only here: most commands have no graphs

    missing = next((p for p in args.path if not p.exists()), None)
    if missing is not None:
        raise fail("PTO-U248", f"there is no file or folder {missing}")
    paths = tuple(path.resolve() for path in args.path)
    return CaseSelection(paths, args.profile, args.k, tuple(map(_limit, args.at_most)))


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise fail("PTO-U061", f"--at-most {text}: give a name and a number, such as batch=4")
    return name, int(number)
