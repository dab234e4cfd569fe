"""`pto gym`: runs a checkout of PTO-Gym, case by case, with the cases' own checks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from pto import __version__
from pto.cli import console, findings, options, place
from pto.cli.command_line import CommandLine
from pto.cli.progress import progress
from pto.core.errors import fail
from pto.core.processors import usable
from pto.core.render import Sources
from pto.core.selection import sampled, select
from pto.cxx import compiler
from pto.gym import mutate, report, timed
from pto.gym.cases import expected_cases, find_programs
from pto.gym.pool import ENGINE, MUTATED, SANITIZED, TIMED, Options, Programs, run_programs
from pto.gym.result import GymResult
from pto.run.launch.engine import DEFAULT, ENGINES, chosen_engine, cluster_target, wants_sanitizer
from pto.run.order.schedule import parse_schedule
from pto.target.profile import profile

EXAMPLES = """\
  pto gym PTO-Gym                          every case of a checkout
  pto gym PTO-Gym -k tadd                  the cases with tadd in their name
  pto gym PTO-Gym -k "vcvt and not bf16"   and, or, not, parentheses
  pto gym PTO-Gym/examples/pto -j 8 --format json > gym.json
  pto gym PTO-Gym --sync --sanitize        tile programs with flags inserted, checked for races
  pto gym PTO-Gym --on ray --format lines   on all processors of a cluster, a line as each case ends
  pto gym PTO-Gym -k f32_16x64 --keep work keeps data, outputs and goldens in work/
""" + place.RIGHTS.format(what="host programs, generators and judges")


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("path", metavar="PATH", help="a checkout of PTO-Gym, or a folder inside")
    options.add_selection(parser, "cases")
    parser.add_argument("--sample", metavar="N[:SEED]", help="run only N programs, drawn at random")
    options.add_jobs(parser)
    options.add_engine(parser, ENGINES, DEFAULT)
    options.add_profile(parser)
    options.add_timeout(parser, "a case", 600.0)
    parser.add_argument("--sync", action="store_true", help=_SYNC)
    watch = parser.add_mutually_exclusive_group()
    watch.add_argument("--sanitize", action="store_true", help="also report races and bad flags")
    watch.add_argument("--mutate", action="store_true", help=_MUTATE)
    watch.add_argument("--schedule", metavar="S", default="", help=options.SCHEDULE)
    watch.add_argument("--time", action="store_true", help=_TIME)
    parser.add_argument("-x", action="store_true", help="stop at the first case that fails")
    options.add_on(parser)
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep work directories in DIR")
    findings.add_format(parser)


_SYNC = "first insert flags into programs without any, as a compiler does"
_MUTATE = "remove each flag, barrier and signal in turn, and test that the sanitizer reports it"
_TIME = "also time every case on the chip; a case with unknown or zero time fails"


def run(args: argparse.Namespace) -> int:
    require_possible(args)
    args.engine = chosen_engine(args.engine)
    parse_schedule(args.schedule)
    path = Path(args.path) if cluster_target() is None else Path(args.path).resolve()
    if cluster_target() is None:
        compiler.find()  # one finding instead of one for each program
    selection = select(args.k)
    programs = find_programs(path, selection)
    if args.mutate:
        programs = mutate.worth_mutating(programs)
    if args.sample:
        programs = sampled(programs, args.sample)
    options = Options(
        engine=args.engine,
        profile=args.profile,
        expression=args.k,
        seconds=args.timeout,
        keep=args.keep,
        launch=_launcher(args),
        schedule=args.schedule,
        sync=args.sync,
    )
    expected = sum(expected_cases(p, selection) for p in programs)
    results, wall = run_cases(programs, options, args, expected)
    if not results:
        raise fail("PTO-U061", f"no case below {path} matches -k {args.k!r}")
    if args.mutate:
        return _show_mutants(results, args, wall)
    _show(results, args, wall)
    return 0 if all(r.status == "passed" for r in results) else 1


def require_possible(args: argparse.Namespace) -> None:
    """Report a wrong number of processes, timeout or profile before anything runs."""
    if args.j is not None and args.j < 1:
        raise fail("PTO-U061", f"-j {args.j}: at least one process is needed")
    if not args.timeout > 0:
        raise fail("PTO-U061", f"--timeout {args.timeout:g}: the time must be positive")
    if args.profile is not None:
        profile(args.profile)


def run_cases(
    programs: Programs, options: Options, args: argparse.Namespace, expected: int
) -> tuple[list[GymResult], float]:
    """Run all cases and show each as it ends: the results, and the seconds that it took."""

    def told(result: GymResult) -> bool:
        """Show a finished case; True if the run must stop after it."""
        seen(result.status == "passed")
        if args.format == "lines":
            findings.line(report.as_data(result))
        return getattr(args, "x", False) and result.status != "passed"

    began = time.perf_counter()
    with progress(expected) as seen:
        results = run_programs(programs, options, args.j or usable(), told)
    return results, time.perf_counter() - began


def _launcher(args: argparse.Namespace) -> str:
    if args.mutate:
        return MUTATED
    if args.time:
        return TIMED
    return SANITIZED if wants_sanitizer(args.sanitize) else ENGINE


def _show_mutants(results: list[GymResult], args: argparse.Namespace, wall: float) -> int:
    if not findings.is_text(args):
        if args.format == "json":
            print(mutate.as_json(results, wall))
        return 0 if mutate.is_good(results) else 1
    console.write(mutate.table(results))
    console.write(mutate.unfound(results))
    for block in report.failures(results, Sources()):
        console.write(block)
    console.write(mutate.summary(results, wall))
    return 0 if mutate.is_good(results) else 1


def _show(results: list[GymResult], args: argparse.Namespace, wall: float) -> None:
    if args.format == "lines":
        return
    if args.format == "json":
        header = {
            "version": __version__,
            "path": args.path,
            "engine": _engine(args),
            "select": args.k,
            "schedule": str(parse_schedule(args.schedule)),
        }
        print(report.as_json(results, wall, **header))
        return
    how = f", schedule {args.schedule}" if args.schedule else ""
    show_results(results, f"{_engine(args)}{how}", wall)
    if args.time:
        console.write(timed.summary(results))


def show_results(results: Sequence[GymResult], how: str, wall: float) -> None:
    console.write(report.table(results))
    for block in report.failures(results, Sources()):
        console.write(block)
    console.write(report.summary(results, how, wall))
    console.write(place.by_node([(r.node, r.seconds) for r in results]))


def _engine(args: argparse.Namespace) -> str:
    """The engine: the reference engine if a run is watched or scheduled."""
    return "reference" if args.sanitize or args.schedule else args.engine
