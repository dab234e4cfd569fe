"""The `pto` command: selects a verb, imports only its module, and prints errors as findings.

A verb is implemented in `pto/cli/<verb>.py`; a new verb is that file and one line in `VERBS`.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import pairwise
from typing import Protocol, cast

from pto import __version__
from pto.cli import findings, settings
from pto.cli.command_line import CommandLine
from pto.core.errors import Diagnostic, PtoError, fail, nearest

CLEAN = 0
FINDINGS = 1
USAGE = 2
BROKEN = 3
_INTERRUPTED, _READER_GONE = 130, 141  # what a shell reports for SIGINT and SIGPIPE

VERBS = {
    "check": "check that a program is well formed and legal on a profile",
    "isa": "show the instruction table: operands, types per profile, rules, meaning",
    "sanitize": "run a kernel and report races, deadlocks and undefined reads",
    "run": "execute a kernel and show the arrays that it changed",
    "time": "estimate how long a kernel takes on a chip, what limits it, where it waits",
    "tune": "find the constants that make a kernel fastest on a chip",
    "judge": "judge kernels for a task: right, safe, deterministic, and how fast",
    "prove": "prove properties of a kernel for every size and grid, or find a counterexample",
    "view": "show a kernel on one page: source, program, C++, tiles, layouts and timeline",
    "plan": "show the address of each tile, the use of each buffer, and the event ids",
    "sync": "insert flags and barriers into a program without any, as a compiler does",
    "opt": "apply passes to a program and print it: tidy, reuse, scratch, addresses, sync",
    "diff": "compare the order of accesses in two compilers' outputs of one program",
    "fmt": "print a program in one stable form, as generic MLIR or as C++",
    "export": "write a launch as a folder for hardware: kernel, host program, data, build file",
    "lsp": "serve findings, documentation and completion to an editor (language server)",
    "mcp": "serve check, run, sanitize, time, isa, explain and layout to coding agents",
    "graph": "run, check, time and compare graphs of tasks (whole models)",
    "suite": "run test suites of other projects: PTO-Gym, models, C++ system tests, scenes",
    "header": "write the header that kernels in C++ include",
    "layout": "show the memory position of each element of a tile, as text or a picture",
    "cache": "show or clear the disk cache of compiled code, tuning results and C++ builds",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
    "explain": "explain the code of a finding, with a wrong and a right program",
}


class Verb(Protocol):
    """The interface of `pto/cli/<verb>.py`."""

    EXAMPLES: str

    def add_arguments(self, parser: CommandLine) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the result is the exit code."""
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        if not sys.stdout.closed:  # a language server closes it
            sys.stdout.flush()  # a closed pipe is reported here, not at interpreter exit
        if argv is None:
            gc.freeze()  # the process ends: skip the last collection
    except PtoError as error:  # of the command line itself
        return _told(error, argparse.Namespace(format=_format_of(argv or sys.argv[1:])))
    except SystemExit as stop:  # argparse has printed its message
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


def _format_of(words: Sequence[str]) -> str:
    """The format option of a command line that may have other errors."""
    if "--json" in words:
        return "json"
    after = [next_ for word, next_ in pairwise(words) if word == "--format"]
    formats = [*after, *(word.partition("=")[2] for word in words if word.startswith("--format="))]
    return formats[0] if formats and formats[0] in findings.FORMATS else "text"


def _drop_output() -> None:
    """Discard buffered output: otherwise Python would report an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception, args: argparse.Namespace) -> int:
    """Print an error as findings in the format of the command; return the exit status."""
    if _traceback_is_wanted():
        raise error
    diagnostics, status = _findings_of(error)
    findings.show(diagnostics, args, stream=sys.stderr)
    return status


def _findings_of(error: Exception) -> tuple[Sequence[Diagnostic], int]:
    if isinstance(error, PtoError):
        diagnostics = error.diagnostics
        return diagnostics, USAGE if all(d.is_request for d in diagnostics) else FINDINGS
    if isinstance(error, MemoryError):
        message = f"there is no memory left for this: {error}".rstrip(": ")
        return [Diagnostic("PTO-U008", message)], USAGE
    if isinstance(error, OSError) and not _is_of_the_user(error):
        where, why = error.filename or "standard output", error.strerror or error
        return [Diagnostic("PTO-U011", f"{where} cannot be used: {why}")], USAGE
    from pto.lang.raised import raised  # only here: most commands do not fail

    diagnostics = raised(error)
    return [diagnostics], BROKEN if diagnostics.code == "PTO-U009" else FINDINGS


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
    settings.apply()
    try:
        with findings.collected_warnings(args), _on(args):
            return verb.run(args)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _told(error, args)


def _on(args: argparse.Namespace) -> AbstractContextManager[object]:
    """A context in which the command runs on the cluster that `--on` names."""
    where = getattr(args, "on", "")
    if not where:
        return nullcontext()
    from pto.cluster.on import on  # only here: most commands need no cluster

    return on(where)


def load(name: str) -> Verb:
    """Import the module of one verb only."""
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


def verb_parser(name: str, verb: Verb) -> CommandLine:
    """The parser of one verb, with its examples at the end of the help."""
    parser = CommandLine(
        prog=f"pto {name}",
        description=VERBS[name][0].upper() + VERBS[name][1:] + ".",
        epilog=f"examples:\n{verb.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_arguments(parser)
    return parser


_MOVED = {
    "gym": "pto suite gym",
    "models": "pto suite models",
    "cxx": "pto suite cxx` and `pto header",
    "st": "pto suite cxx",
    "scenes": "pto suite scenes",
}


def _advice(word: str) -> str:
    if word in _MOVED:
        return f"write `{_MOVED[word]}`"
    return nearest(word, VERBS) or "`pto --help` lists the commands"


if __name__ == "__main__":
    sys.exit(main())
