"""`pto sync`: inserts flags and barriers into a program that leaves them to a compiler."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pto.cli import findings, options, program
from pto.cli.command_line import CommandLine
from pto.core.errors import Diagnostic, PtoError
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.plan.sync import insert
from pto.target.profile import Target
from pto.transform.separate import separate_all
from pto.verify.program import declare, legal_target

EXAMPLES = """\
  pto sync add.pto                          the program with flags, for the profile it declares
  pto sync add.pto --profile a2a3 -o out.pto
  pto sync k.py:softmax --arg x=zeros:100x128 --arg y=zeros:100x128
"""
_ORDER = ("PTO-R", "PTO-D")  # findings about order
_NEEDLESS = ("PTO-R014", "PTO-R015")  # unused fences: for paths that this run did not take


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("file", metavar="FILE", help=f"{options.FILE}, without flags")
    options.add_target(parser)
    options.add_output(parser)
    options.add_python(parser)
    findings.add_format(parser)


def run(args: argparse.Namespace) -> int:
    module = program.read_program(args.file, args)
    target = legal_target(module, profile=args.profile, device=args.device)
    split = separate_all(module, target.profile)
    ordered = insert(split.module, target.profile)
    declare(ordered, target.profile.name)  # flags are for one profile
    text = print_module(ordered)
    findings_list, reasons = _proof(parse(text, str(args.out or args.file)), target)
    if split.refused is not None:
        findings_list.append(replace(split.refused, severity="warning"))
    if any(d.severity == "error" for d in findings_list):  # a defect of pto: nothing is written
        return findings.show(findings_list, args, stream=sys.stderr)
    if findings.is_text(args):
        _deliver(text, args.out)
        return findings.show(
            findings_list,
            args,
            _summary(ordered, target, findings_list, reasons),
            stream=sys.stderr,
        )
    if args.out:
        _deliver(text, args.out)
    findings.data(args, findings_list, target=str(target), program=text, not_proven=reasons)
    return 0


def _proof(module: Module, target: Target) -> tuple[list[Diagnostic], list[str]]:
    """The sanitizer's findings in the result, and reasons for parts that it could not check."""
    from pto.observe.deep import deep

    findings_list: list[Diagnostic] = []
    reasons: list[str] = []
    profile = target.profile
    try:
        for looked in deep(module, profile=profile.name, device=profile.device):
            findings_list += [d for d in looked.verdict.findings if _is_about_order(d)]
            if looked.stopped is not None:
                reasons.append(looked.stopped.message)
    except PtoError as error:
        reasons.append(f"it cannot be run: {error.diagnostics[0].message} [{error.code}]")
    return findings_list, reasons


def _is_about_order(finding: Diagnostic) -> bool:
    return finding.code.startswith(_ORDER) and finding.code not in _NEEDLESS


def _deliver(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text)


def _summary(
    module: Module, target: Target, findings_list: list[Diagnostic], reasons: list[str]
) -> list[Piece]:
    count = Counter(op.name for op in module.walk())
    flags = count["pto.wait_flag"]
    words = f"{flags} wait{'s' * (flags != 1)}, {count['pto.barrier']} barriers on {target}"
    out: list[Piece] = [("title", f"{words}\n")]
    for reason in reasons:
        out.append(("warning", f"not proven: {reason}\n"))
    if not reasons and not findings_list:
        out.append(
            ("value", "proven: a watched run on made-up inputs finds no race, no bad flag\n")
        )
    return out
