"""Printing of findings: the option `--format`, and functions that print in that format.

JSON is one object with all findings under `findings`; `lines` is one object per line, printed
immediately.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from pto import __version__
from pto.cli import console
from pto.cli.command_line import CommandLine
from pto.core import render
from pto.core.errors import Diagnostic
from pto.core.render import Piece

if TYPE_CHECKING:
    from pto.observe import Verdict

FORMATS = ("text", "json", "lines")
_HELP = "print text (default), json (one object), or lines (one JSON object per line, immediately)"
_warned: list[Diagnostic] = []  # warnings of this command, not yet printed


def add_format(parser: CommandLine, *more: str) -> None:
    """`--format`, with further formats of one command; `--json` is short for it."""
    group = parser.add_argument_group("output")
    choices = (*FORMATS, *more)
    group.add_argument("--format", choices=choices, default="text", help=_HELP)
    short = "short for --format json"
    group.add_argument("--json", dest="format", action="store_const", const="json", help=short)
    quiet = "print findings and results only: no summary, no notes, no progress"
    group.add_argument("-q", "--quiet", action="store_true", help=quiet)


def is_text(args: argparse.Namespace) -> bool:
    """True for output that a person reads (text, html)."""
    return getattr(args, "format", "text") in ("text", "html")


def is_quiet(args: argparse.Namespace) -> bool:
    """True if only findings and results are wanted."""
    return getattr(args, "quiet", False)


def show(
    diagnostics: Sequence[Diagnostic],
    args: argparse.Namespace,
    summary: Iterable[Piece] = (),
    *,
    stream: TextIO | None = None,
    **header: Any,
) -> int:
    """Print findings and a summary by `--format`; 1 when one of them is an error."""
    if is_text(args):
        console.show(diagnostics, stream=stream or sys.stdout)
        console.write(() if is_quiet(args) else summary, stream)
    elif args.format == "sarif":
        print(render.as_sarif([*diagnostics, *_warned], __version__))
    else:
        data(args, diagnostics, (), **header)
    return 1 if any(d.severity == "error" for d in diagnostics) else 0


def data(
    args: argparse.Namespace,
    diagnostics: Sequence[Diagnostic] = (),
    lines: Iterable[Any] | None = None,
    **header: Any,
) -> None:
    """Print results as JSON: one object, or a line for each object of `lines` and each finding."""
    every = [*diagnostics, *_warned]
    if args.format == "json":
        print(render.as_json(every, **header))
        return
    for group in ([header] if lines is None else lines, map(render.plain, every)):
        for value in group:
            line(value)


def line(value: Any) -> None:
    """Print a value as one line of JSON, in one write: lines of several threads do not mix."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


@contextmanager
def collected_warnings(args: argparse.Namespace) -> Generator[None]:
    """A context that converts warnings to findings: printed at once as text, else kept for JSON."""
    _warned.clear()
    before = warnings.showwarning

    def heard(message: Warning | str, *rest: Any, **named: Any) -> None:
        finding = getattr(message, "finding", None)
        if not isinstance(finding, Diagnostic):
            before(message, *rest, **named)
        elif is_text(args):
            console.show([finding])
        else:
            _warned.append(finding)

    with warnings.catch_warnings():
        # PtoWarning is a finding; warning filters of the environment do not hide it
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = heard
        yield


def show_verdict(verdict: Verdict, args: argparse.Namespace) -> int:
    """Print the findings of a sanitized run and its assumptions."""
    target = str(verdict.report.target) if verdict.report else ""
    summary = counted(verdict.findings, f"; {verdict.about}\n", "sanitizer: ")
    return show(list(verdict.findings), args, summary, target=target, mode=verdict.mode)


def counted(diagnostics: Sequence[Diagnostic], rest: str, first: str = "") -> list[Piece]:
    """The last line of a report: the numbers of errors and warnings, and the target."""
    errors = sum(d.severity == "error" for d in diagnostics)
    numbers = (errors, "error"), (len(diagnostics) - errors, "warning")
    words = [f"{n} {word}{'s' * (n != 1)}" for n, word in numbers if n]
    style = "error" if errors else "warning" if diagnostics else "value"
    gap: list[Piece] = [("", "\n")] if diagnostics else []
    return [*gap, (style, f"{first}{', '.join(words) or 'no findings'}"), ("dim", rest)]
