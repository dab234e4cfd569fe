"""`pto judge`: is a kernel right, safe and fast for a task?"""

from __future__ import annotations

import argparse
import sys

from pto.cli import console, findings, options
from pto.cli.command_line import CommandLine
from pto.core.errors import fail
from pto.core.processors import usable
from pto.judging.judgement import Judgement

EXAMPLES = """\
  pto judge softmax_task.py softmax.py              a kernel, or a function that launches kernels
  pto judge softmax_task.py k.py:fast --device 910b1
  pto judge softmax_task.py k.pto --blocks "cdiv(m, 16)"
                                                    the grid, by the sizes of the task
  pto judge softmax_task.py candidates/*.py -j 8 --format lines
                                                    many; one JSON object per line, immediately
  pto judge softmax_task.py k.py --seed 7           repeat a verdict: it names its seed

A task is a Python file, or a folder in the form of cann-bench; docs/guide/judge.md shows both.
"""
_SECONDS = 60.0


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("task", metavar="TASK", help=_TASK)
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="+", help=_CANDIDATE)
    parser.add_argument("--device", metavar="D", help="judge for this chip: 910b1, 950pr, ...")
    parser.add_argument("--blocks", metavar="EXPR", help=_BLOCKS)
    parser.add_argument("--seed", type=int, metavar="N", help="draw the values of this seed again")
    options.add_timeout(parser, "a candidate", _SECONDS)
    parser.add_argument("--memory", type=int, default=8192, metavar="MB", help=_MEMORY)
    options.add_jobs(parser)
    findings.add_format(parser)


_TASK = "a Python file with a reference and cases, or a folder in the form of cann-bench"
_CANDIDATE = "a kernel of a Python file (k.py, k.py:softmax) or a .pto program; it is untrusted"
_BLOCKS = "launch a kernel on this grid, an expression of the sizes of the task; default: 1"
_MEMORY = "limit the memory of a candidate to this many MB; default: 8192"


def run(args: argparse.Namespace) -> int:
    from pto.judging.pool import judge_all

    if args.j is not None and args.j < 1:
        raise fail("PTO-U061", f"-j {args.j}: at least one process is needed")
    if not args.timeout > 0 or args.memory < 1:
        raise fail("PTO-U061", "--timeout and --memory must be positive")
    total = len(args.candidates)

    def done(number: int, judgement: Judgement) -> None:
        if args.format == "lines":
            findings.line(judgement.to_json())
        elif args.format == "text":
            console.write(judgement.pieces())
            console.show([d for c in judgement.failed for d in c.findings], stream=sys.stdout)

    judged = judge_all(
        args.task,
        args.candidates,
        device=args.device,
        blocks=args.blocks,
        seed=args.seed,
        timeout=args.timeout,
        memory=args.memory,
        processes=args.j or usable(),
        done=done,
    )
    accepted = sum(map(bool, judged))
    if args.format == "json":
        findings.data(args, (), judgements=[judgement.to_json() for judgement in judged])
    elif args.format == "text" and total > 1:
        console.write([("title", f"{accepted} of {total} candidates accepted\n")])
    return 0 if accepted == total else 1
