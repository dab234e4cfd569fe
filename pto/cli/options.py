"""Options that several commands share: one spelling and one help text each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pto.core.errors import fail

FILE = "a .pto program, or a kernel of a Python file: k.py:softmax (the file is executed)"
FILES = ".pto files, folders of them, or a kernel of a Python file: k.py:softmax (executed)"
SCHEDULE = "let effects happen in program order (default), early, late or random:SEED"
TRACE = "write the timeline in Chrome's trace format"
HTML = "write the timeline as an HTML page"
_ON = "run on a cluster: ray, or ray://HOST:10001; default: PTO_ON, else this machine"
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


def add_profile(parser: argparse.ArgumentParser, *, chips: bool = False) -> None:
    names = "a2a3 or a5" if chips else "cpu, a2a3 or a5"
    text = f"use this profile: {names}; default: the one that the program declares"
    parser.add_argument("--profile", metavar="P", help=text)


def add_target(parser: argparse.ArgumentParser, *, chips: bool = False, more: str = "") -> None:
    """`--profile` and `--device`; `chips`: only profiles of chips, not cpu."""
    add_profile(parser, chips=chips)
    text = f"use this chip and its limits: 910b1, 950pr, ...{more}"
    parser.add_argument("--device", metavar="D", help=text)


def add_output(parser: argparse.ArgumentParser) -> None:
    """`-o` of commands that print a program."""
    text = "write the program here; default: print it"
    parser.add_argument("-o", dest="out", metavar="FILE", type=Path, help=text)


def add_values(parser: argparse.ArgumentParser, text: str) -> None:
    """`--arg` and `--seed`."""
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=text)
    parser.add_argument("--seed", type=int, default=0, help="set the seed of `rand`; default: 0")


def add_launch(parser: argparse.ArgumentParser, verb: str, values: str, file: str = FILE) -> None:
    """The program, `--entry`, `--arg`, `--seed` and `--blocks` of commands that launch."""
    parser.add_argument("file", metavar="FILE", help=file)
    parser.add_argument("--entry", metavar="F", help=f"{verb} this function")
    add_values(parser, values)
    blocks = "launch this many blocks: 24, or 24,8 for a grid with two axes; default: 1"
    parser.add_argument("--blocks", type=grid, default=1, metavar="N[,N]", help=blocks)


def add_python(parser: argparse.ArgumentParser) -> None:
    """`--arg` and `--seed` of commands that only read a program: shapes decide how it is traced."""
    group = parser.add_argument_group("Python kernels")
    group.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=_PYTHON_ARG)
    group.add_argument("--seed", type=int, default=0, help="set the seed of `rand`; default: 0")


def add_cpp(parser: argparse.ArgumentParser) -> None:
    """Options of the C++ compiler."""
    group = parser.add_argument_group("C++ kernels")
    folder, macro = "search this folder for headers", "define a macro"
    group.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help=folder
    )
    group.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help=macro
    )


def add_engine(parser: argparse.ArgumentParser, names: Sequence[str], default: str) -> None:
    text = f"execute with {' or '.join(names)}; default: PTO_ENGINE, else {default}"
    parser.add_argument("--engine", metavar="E", help=text)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    text = "use N processes; default: the number of processors"
    parser.add_argument("-j", type=int, metavar="N", help=text)


def add_selection(parser: argparse.ArgumentParser, what: str) -> None:
    text = f"run only {what} with names that match: words, and, or, not, parentheses"
    parser.add_argument("-k", metavar="EXPR", default="", help=text)


def add_timeout(parser: argparse.ArgumentParser, what: str, seconds: float) -> None:
    text = f"stop {what} after this many seconds; default: {seconds:.0f}"
    parser.add_argument("--timeout", metavar="S", type=float, default=seconds, help=text)


def add_timeline(parser: argparse.ArgumentParser) -> None:
    """Options for the timeline, of `pto time` and `pto run --time`."""
    parser.add_argument("--trace", metavar="FILE", help=TRACE)
    parser.add_argument("--html", metavar="FILE", help=HTML)


def add_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on", metavar="WHERE", default="", help=_ON)
