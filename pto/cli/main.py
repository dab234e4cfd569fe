"""The `pto` command: picks a verb, imports only its module, and prints errors as findings.

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
from pto.cli import findings, place
from pto.core.errors import Diagnostic, PtoError, fail, nearest

CLEAN, FINDINGS, USAGE, BROKEN = 0, 1, 2, 3
_INTERRUPTED, _READER_GONE = 130, 141  # what a shell reports for SIGINT and SIGPIPE

VERBS = {
    "check": "is a program well formed, and legal on a profile",
    "isa": "the instruction table: operands, types per profile, rules, meaning",
    "run": "execute a kernel and say what it changed",
    "time": "how long a kernel takes on a chip, what bounds it, where it waits",
    "tune": "which constants make a kernel fastest on a chip: every configuration in a table",
    "prove": "does a property of a kernel hold for every size and grid, or for which numbers not",
    "view": "a kernel on one page: source, program, C++, tiles and timeline, linked by lines",
    "plan": "where each tile lies in its buffer, how full that makes it, which ids are in use",
    "sync": "put flags and barriers into a program that leaves them to a compiler",
    "diff": "do two compilers' outputs of one program order the same accesses",
    "fmt": "print a program in one stable form, or as generic MLIR",
    "export": "a launch as a folder for a board: kernel, host program, data, build file",
    "lsp": "a language server: findings, pages and completion in an editor",
    "mcp": "a server for coding agents: check, run, sanitize, time, isa, explain, layout as tools",
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
        if not sys.stdout.closed:  # a language server closes it
            sys.stdout.flush()  # a reader that left shows up here, not at interpreter exit
        if argv is None:
            gc.freeze()  # the process ends: skip the last collection
    except PtoError as error:  # before the command line is known
        return _told(error, argparse.Namespace())
    except SystemExit as stop:  # argparse has already said what it had to say
        return stop.code if isinstance(stop.code, int) else USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return _READER_GONE
    except OSError as error:  # of standard output
        _drop_output()
        return _told(error, argparse.Namespace())
    return code


def _drop_output() -> None:
    """Discard output that is not written yet: Python would report it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception, args: argparse.Namespace) -> int:
    """Print an error as findings in the format of the command; return the exit status."""
    if _traceback_is_wanted():
        raise error
    found, status = _findings_of(error)
    findings.show(found, args, stream=sys.stderr)
    return status


def _findings_of(error: Exception) -> tuple[Sequence[Diagnostic], int]:
    if isinstance(error, PtoError):
        found = error.diagnostics
        return found, USAGE if all(d.is_request for d in found) else FINDINGS
    if isinstance(error, MemoryError):
        message = f"there is no memory left for this: {error}".rstrip(": ")
        return [Diagnostic("PTO-U008", message)], USAGE
    if isinstance(error, OSError) and not _is_of_the_user(error):
        where, why = error.filename or "standard output", error.strerror or error
        return [Diagnostic("PTO-U011", f"{where} cannot be used: {why}")], USAGE
    from pto.cli.raised import raised  # only here: most commands do not fail

    found = raised(error)
    return [found], BROKEN if found.code == "PTO-U009" else FINDINGS


def _is_of_the_user(error: Exception) -> bool:
    from pto.lang.call.place import user_step

    return user_step(error) is not None


def _traceback_is_wanted() -> bool:
    return os.environ.get("PTO_TRACEBACK", "") not in ("", "0")


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
    try:
        with findings.collected_warnings(args), place.chosen(args):
            return verb.run(args)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _told(error, args)


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
        "Exit codes: 0 clean, 1 a mistake in a program, 2 a mistake in the command line,\n"
        "3 a defect of pto itself; PTO_TRACEBACK=1 shows its traceback."
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
