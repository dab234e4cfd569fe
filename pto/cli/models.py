"""`pto models`: runs the kernels of whole models on both engines, against golden data."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pto import __version__
from pto.cli import console, findings, options, place
from pto.cli.command_line import CommandLine
from pto.cli.gym import require_possible, run_cases, show_results
from pto.core.errors import fail
from pto.core.render import Piece
from pto.core.selection import select
from pto.gym import report
from pto.gym.models.kernels import find_kernels
from pto.gym.models.runner import BOTH
from pto.gym.pool import ENGINE, MODELS, SANITIZED, Options
from pto.gym.result import GymResult
from pto.run.launch.engine import chosen_engine, cluster_target, wants_sanitizer

EXAMPLES = """\
  pto models PTOAS                         every kernel of every model of a checkout
  pto models PTOAS/test/samples/Qwen3DecodeA5
  pto models PTOAS -k "DeepseekV4 and rms" and, or, not, parentheses
  pto models PTOAS --sanitize              with synchronisation inserted, looked at for races
  pto models PTOAS -j 8 --format json > models.json
""" + place.RIGHTS.format(what="golden scripts")


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("path", metavar="PATH", help="a checkout of PTOAS, or a folder inside")
    options.add_selection(parser, "kernels")
    options.add_jobs(parser)
    parser.add_argument("--engine", metavar="E", default=BOTH, help=_ENGINE)
    options.add_profile(parser)
    options.add_timeout(parser, "a kernel", 600.0)
    parser.add_argument("--sanitize", action="store_true", help="also report races and bad flags")
    options.add_on(parser)
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep work directories in DIR")
    findings.add_format(parser)


_ENGINE = "run on reference, jit, or both (default): then results must have the same bits"
_HOW = {"golden": "by a golden", "engines": "alike on both engines", "ran": "ran to their end"}


def run(args: argparse.Namespace) -> int:
    require_possible(args)
    if args.engine != BOTH:
        args.engine = chosen_engine(args.engine)
    watched = wants_sanitizer(args.sanitize)
    path = Path(args.path) if cluster_target() is None else Path(args.path).resolve()
    kernels = find_kernels(path, select(args.k))
    if not kernels:
        raise fail("PTO-U061", f"no kernel below {args.path} matches -k {args.k!r}")
    options = Options(
        engine=args.engine,
        profile=args.profile,
        expression=args.k,
        seconds=args.timeout,
        keep=args.keep,
        launch=SANITIZED if watched else ENGINE,
        runner=MODELS,
        sync=True,
    )
    results, wall = run_cases(kernels, options, args, len(kernels))
    engine = "reference" if watched else args.engine
    if args.format == "json":
        header = {"version": __version__, "path": args.path, "engine": engine, "select": args.k}
        print(report.as_json(results, wall, **header))
    elif findings.is_text(args):
        _show(results, engine, wall)
    return 0 if all(r.status == "passed" for r in results) else 1


def _show(results: Sequence[GymResult], engine: str, wall: float) -> None:
    show_results(results, engine, wall)
    counts = Counter(r.judged for r in results if r.judged)
    parts = [f"{counts[how]} {words}" for how, words in _HOW.items() if counts[how]]
    passed: list[Piece] = [("dim", f"passed: {', '.join(parts)}\n")]
    console.write(passed if parts else [])
