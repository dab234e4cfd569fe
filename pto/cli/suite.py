"""`pto suite`: runs test suites of other projects, case by case, by the cases' own checks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pto import __version__
from pto.cli import console, findings, options
from pto.cli.command_line import CommandLine
from pto.cli.progress import progress
from pto.core.errors import fail
from pto.core.processors import usable
from pto.core.render import Piece, Sources
from pto.core.selection import sampled, select
from pto.cxx import compiler, st
from pto.graphs import suite as scenes
from pto.gym import mutate, timed
from pto.gym import runner as gym
from pto.gym.cases import find_programs
from pto.gym.models import runner as models
from pto.gym.models.kernels import find_kernels
from pto.run.launch.engine import DEFAULT, ENGINES, chosen_engine, cluster_target, wants_sanitizer
from pto.run.order.schedule import parse_schedule
from pto.suite import pool, report
from pto.suite.case import Suite
from pto.suite.result import Result
from pto.target.profile import profile

EXAMPLES = """\
  pto suite gym PTO-Gym                    every case of a checkout
  pto suite gym PTO-Gym -k "vcvt and not bf16"   and, or, not, parentheses
  pto suite gym PTO-Gym --sync --sanitize  tile programs with flags inserted, checked for races
  pto suite gym PTO-Gym --on ray --format lines  on a cluster, a line as each case ends
  pto suite gym PTO-Gym -k f32_16x64 --keep work keeps data, outputs and goldens in work/
  pto suite models PTOAS -k "DeepseekV4 and rms" kernels of whole models, on both engines
  pto suite cxx tests/st -k "tadd or tsub" C++ system tests: kernel, main.cpp, generator
  pto suite scenes tests/st --at-most batch=4    scene tests of graphs, by their goldens
  pto suite scenes tests/st -j 8 --format json > scenes.json
"""

_RIGHTS = """\
Generators, goldens, judges, host programs and native tests of the checkout are executed with your
rights, in child processes with limits. That is no protection from malicious code: run only a
checkout that you trust.
"""
_SYNC = "first insert flags into programs without any, as a compiler does"
_MUTATE = "remove each flag, barrier and signal in turn, and test that the sanitizer reports it"
_TIME = "also time every case on the chip; a case with unknown or zero time fails"
_BOTH = "run on reference, jit, or both (default): then results must have the same bits"
_RANKS = "run each test with N ranks; default: the first number with which it passes"


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite that is ready to run, and how its results are shown."""

    suite: Suite
    title: str  # what a row of the table is
    engine: str = ""
    is_mutated: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of suite: its options and the plan for a command line."""

    summary: str
    add_options: Callable[[CommandLine], None]
    plan: Callable[[argparse.Namespace], Plan]
    seconds: float


# ---- the command line


def add_arguments(parser: CommandLine) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(KINDS))
    for name, kind in KINDS.items():
        verb = verbs.add_parser(name, help=kind.summary, description=_RIGHTS)
        path = "checkouts, or folders and files inside"
        verb.add_argument("path", metavar="PATH", type=Path, nargs="+", help=path)
        options.add_selection(verb, "cases")
        sample = "run only N programs, drawn at random"
        verb.add_argument("--sample", metavar="N[:SEED]", help=sample)
        options.add_jobs(verb)
        options.add_timeout(verb, "a case", kind.seconds)
        verb.add_argument("-x", action="store_true", help="stop at the first case that fails")
        verb.add_argument("-v", action="store_true", help="show every reason of failures")
        kind.add_options(verb)
        options.add_on(verb)
        findings.add_format(verb)


def _add_gym(parser: CommandLine) -> None:
    options.add_engine(parser, ENGINES, DEFAULT)
    options.add_profile(parser)
    parser.add_argument("--sync", action="store_true", help=_SYNC)
    watch = parser.add_mutually_exclusive_group()
    watch.add_argument("--sanitize", action="store_true", help="also report races and bad flags")
    watch.add_argument("--mutate", action="store_true", help=_MUTATE)
    watch.add_argument("--schedule", metavar="S", default="", help=options.SCHEDULE)
    watch.add_argument("--time", action="store_true", help=_TIME)
    _add_keep(parser)


def _add_models(parser: CommandLine) -> None:
    parser.add_argument("--engine", metavar="E", default=models.BOTH, help=_BOTH)
    options.add_profile(parser)
    parser.add_argument("--sanitize", action="store_true", help="also report races and bad flags")
    _add_keep(parser)


def _add_cxx(parser: CommandLine) -> None:
    parser.add_argument("--ranks", metavar="N", type=int, help=_RANKS)
    text = "use this profile: cpu, a2a3 or a5; default: the one in the path"
    parser.add_argument("--profile", metavar="P", help=text)
    _add_keep(parser)
    options.add_cpp(parser)


def _add_scenes(parser: CommandLine) -> None:
    parser.add_argument("--orders", metavar="N", type=int, default=0, help=options.ORDERS)
    parser.add_argument("--sanitize", action="store_true", help="also report races between tasks")
    options.add_scene(parser)


def _add_keep(parser: CommandLine) -> None:
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep work directories in DIR")


# ---- plans


def _plan_gym(args: argparse.Namespace) -> Plan:
    engine = chosen_engine(args.engine)
    parse_schedule(args.schedule)
    if cluster_target() is None:
        compiler.find()  # one finding instead of one for each program
    selection = select(args.k)
    programs = [program for path in _paths(args) for program in find_programs(path, selection)]
    if args.mutate:
        programs = mutate.worth_mutating(programs)
    settings = gym.Options(
        engine=engine,
        profile=args.profile,
        expression=args.k,
        seconds=args.timeout,
        launch=_launcher(args),
        schedule=args.schedule,
        sync=args.sync,
    )
    if args.sanitize or args.schedule:
        engine = "reference"
    order = f", schedule {args.schedule}" if args.schedule else ""
    return Plan(
        gym.suite(programs, settings, args.keep), "family", engine + order, is_mutated=args.mutate
    )


def _launcher(args: argparse.Namespace) -> str:
    if args.mutate:
        return gym.MUTATED
    if args.time:
        return gym.TIMED
    return gym.SANITIZED if wants_sanitizer(args.sanitize) else gym.ENGINE


def _plan_models(args: argparse.Namespace) -> Plan:
    engine = args.engine if args.engine == models.BOTH else chosen_engine(args.engine)
    is_watched = wants_sanitizer(args.sanitize)
    settings = gym.Options(
        engine=engine,
        profile=args.profile,
        expression=args.k,
        seconds=args.timeout,
        launch=gym.SANITIZED if is_watched else gym.ENGINE,
        sync=True,
    )
    selection = select(args.k)
    kernels = [kernel for path in _paths(args) for kernel in find_kernels(path, selection)]
    engine_name = "reference" if is_watched else engine
    return Plan(models.suite(kernels, settings, args.keep), "model", engine_name)


def _plan_cxx(args: argparse.Namespace) -> Plan:
    if args.ranks is not None and args.ranks < 1:
        raise fail("PTO-U061", f"--ranks {args.ranks}: at least one host is needed")
    ranks = st.RANKS if args.ranks is None else (args.ranks,)
    how = st.TestOptions(args.profile, tuple(map(Path, args.include)), tuple(args.define), ranks)
    folders = st.find(_paths(args), how)
    select(args.k)  # reports a wrong expression before anything runs
    return Plan(st.suite(folders, args.k, args.timeout, args.keep), "folder")


def _plan_scenes(args: argparse.Namespace) -> Plan:
    return plan_scenes(args, is_watched=args.sanitize, orders=args.orders)


def plan_scenes(
    args: argparse.Namespace, *, is_watched: bool = False, orders: int = 0, is_dry: bool = False
) -> Plan:
    """The plan for scene tests and graphs, also of `pto graph run` and `pto graph check`."""
    if orders < 0:
        raise fail("PTO-U061", f"--orders {orders}: the number must not be negative")
    chosen = options.chosen_scenes(args)
    graphs = list(chosen.find())
    if not graphs:
        matching = f" that matches -k {args.k!r}" if args.k else ""
        raise fail("PTO-U320", f"{args.path[0]} has no scene test or graph{matching}")
    settings = scenes.RunOptions(is_watched, orders, args.timeout, is_dry)
    return Plan(scenes.suite(graphs, chosen, settings), "graph")


def _paths(args: argparse.Namespace) -> Sequence[Path]:
    """The paths of the command line; workers of a cluster need absolute ones."""
    return args.path if cluster_target() is None else [path.resolve() for path in args.path]


KINDS = {
    "gym": Kind(
        "a checkout of PTO-Gym: generators, host programs, judges", _add_gym, _plan_gym, 600
    ),
    "models": Kind(
        "kernels of whole models (PTOAS), on both engines, by goldens",
        _add_models,
        _plan_models,
        600,
    ),
    "cxx": Kind("C++ system tests: folders with a main.cpp", _add_cxx, _plan_cxx, 300),
    "scenes": Kind("scene tests of graphs of tasks, by goldens", _add_scenes, _plan_scenes, 300),
}


# ---- running


def run(args: argparse.Namespace) -> int:
    require_possible(args)
    plan = KINDS[args.what].plan(args)
    if args.sample:
        cases = sampled(plan.suite.cases, args.sample)
        plan = replace(plan, suite=replace(plan.suite, cases=cases))
    return run_plan(plan, args)


def require_possible(args: argparse.Namespace) -> None:
    """Report a wrong number of processes, timeout or profile before anything runs."""
    if args.j is not None and args.j < 1:
        raise fail("PTO-U061", f"-j {args.j}: at least one process is needed")
    if not args.timeout > 0:
        raise fail("PTO-U061", f"--timeout {args.timeout:g}: the time must be positive")
    if args.profile is not None:
        profile(args.profile)


def run_plan(plan: Plan, args: argparse.Namespace) -> int:
    """Run all cases, and show each as it ends and all of them at the end; return the status."""
    began = time.perf_counter()
    with progress(sum(case.results for case in plan.suite.cases), args) as advance:

        def show(result: Result) -> bool:
            """Show a result; True if the run must stop after it."""
            advance(result.is_good)
            if args.format == "lines":
                findings.line(result.data())
            return getattr(args, "x", False) and not result.is_good

        results = pool.run(plan.suite, args.j or usable(), show)
    seconds = time.perf_counter() - began
    if not results:
        raise fail("PTO-U061", f"no case below {args.path[0]} matches -k {args.k!r}")
    if args.format == "json":
        print(_json(plan, results, args, seconds))
    elif findings.is_text(args):
        _show(plan, results, args, seconds)
    is_good = mutate.is_good(results) if plan.is_mutated else all(r.is_good for r in results)
    return 0 if is_good else 1


def _json(plan: Plan, results: Sequence[Result], args: argparse.Namespace, seconds: float) -> str:
    if plan.is_mutated:
        return mutate.as_json(results, seconds)
    header = {
        "version": __version__,
        "path": [str(path) for path in args.path],
        "engine": plan.engine,
        "select": args.k,
        "schedule": str(parse_schedule(getattr(args, "schedule", ""))),
    }
    return report.as_json(results, seconds, **header)


def _show(plan: Plan, results: Sequence[Result], args: argparse.Namespace, seconds: float) -> None:
    sources = Sources()
    console.write(mutate.table(results) if plan.is_mutated else report.table(results, plan.title))
    if plan.is_mutated:
        console.write(mutate.unfound(results))
    most = None if getattr(args, "v", True) else report.MOST_REASONS
    for block in report.failures(results, sources, most):
        console.write(block)
    for block in report.warnings(results, sources):
        console.write(block)
    console.write(_summary(plan, results, seconds))
    if getattr(args, "time", False):
        console.write(timed.summary(results))
    console.write(report.by_node(results))


def _summary(plan: Plan, results: Sequence[Result], seconds: float) -> list[Piece]:
    if plan.is_mutated:
        return mutate.summary(results, seconds)
    return report.summary(results, plan.engine, seconds)
