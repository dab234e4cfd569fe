"""The `pto` command: picks a verb, imports its module alone, turns errors into findings.

What a verb does lives in `pto/cli/<verb>.py`; a new verb is that file and one line in `VERBS`.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from pto import __version__
from pto.cli import console, place
from pto.core.errors import Diagnostic, PtoError, fail, nearest

CLEAN, FINDINGS, USAGE = 0, 1, 2
_INTERRUPTED, _READER_GONE = 130, 141  # what a shell reports for SIGINT and SIGPIPE

VERBS = {
    "check": "is a program well formed, and legal on a profile",
    "isa": "the instruction table: operands, types per profile, rules, meaning",
    "run": "execute a kernel and say what it changed",
    "time": "how long a kernel takes on a chip, what bounds it, where it waits",
    "tune": "which constants make a kernel fastest on a chip: every configuration in a table",
    "plan": "where each tile lies in its buffer, and how full that makes it",
    "sync": "put flags and barriers into a program that leaves them to a compiler",
    "fmt": "print a program in one stable form, or as generic MLIR",
    "lsp": "a language server: findings, pages and completion in an editor",
    "cxx": "C++ kernels: the header, and system tests of C++ projects",
    "gym": "run a checkout of PTO-Gym by its own generators and judges",
    "graph": "run, judge and sanitize graphs of tasks: whole models",
    "models": "run the kernels of whole models, on both engines, by their goldens",
    "layout": "show where each element of a tile lives in memory, as text or a picture",
    "cache": "compiled code and tuning kept on disk: how much there is, and forgetting it",
    "explain": "what a finding's code means, with a wrong and a right program",
}


class Verb(Protocol):
    """What `pto/cli/<verb>.py` holds."""

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the result is the exit code."""
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # a reader that left shows up here, not at interpreter exit
        if argv is None:
            gc.freeze()  # the process ends: nobody needs to look through what it has
    except PtoError as error:
        console.show(error.diagnostics)
        return USAGE if error.code.startswith(("PTO-U", "PTO-P004")) else FINDINGS
    except SystemExit as stop:  # argparse has already said what it had to say
        return stop.code if isinstance(stop.code, int) else USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _READER_GONE
    except MemoryError as error:
        return _refused("PTO-U008", f"there is no memory left for this: {error}".rstrip(": "))
    except OSError as error:
        _drop_output()
        where, why = error.filename or "standard output", error.strerror or error
        return _refused("PTO-U011", f"{where} cannot be used: {why}")
    return code


def _drop_output() -> None:
    """What is still to be written goes nowhere: Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refused(code: str, message: str) -> int:
    """What the machine under us does not do."""
    console.show([Diagnostic(code, message)])
    return USAGE


def _dispatch(words: list[str]) -> int:
    first = words[0] if words else ""
    if first == "help":
        words = [*words[1:], "--help"]
        first = words[0]
    if first in ("-h", "--help"):
        print(overview())
        return CLEAN
    if first in ("-V", "--version"):
        print(f"pto {__version__}")
        return CLEAN
    if not first:
        print(overview(), file=sys.stderr)
        return USAGE
    if first not in VERBS:
        raise fail("PTO-U001", f"there is no command `{first}`", help=_advice(first))
    verb = load(first)
    args = verb_parser(first, verb).parse_args(words[1:])
    with place.chosen(args):
        return verb.run(args)


def load(name: str) -> Verb:
    """The module of one verb, and nothing else."""
    return cast(Verb, import_module(f"pto.cli.{name}"))


def overview() -> str:
    """The text of `pto --help`."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {line}" for name, line in VERBS.items())
    return (
        f"pto {__version__}: a PTO machine, without the accelerator\n\n"
        f"usage: pto COMMAND [options]\n\n{verbs}\n\n"
        "`pto COMMAND --help` shows options and examples.\n"
        "Exit codes: 0 clean, 1 findings, 2 usage."
    )


def verb_parser(name: str, verb: Verb) -> argparse.ArgumentParser:
    """The parser of one verb, its examples at the foot of its help."""
    parser = argparse.ArgumentParser(
        prog=f"pto {name}",
        description=VERBS[name][0].upper() + VERBS[name][1:] + ".",
        epilog=f"examples:\n{verb.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_arguments(parser)
    return parser


def _advice(word: str) -> str:
    return nearest(word, VERBS) or "`pto --help` lists the commands"


if __name__ == "__main__":
    sys.exit(main())
