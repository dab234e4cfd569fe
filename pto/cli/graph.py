"""`pto graph`: run, judge, sanitize and time graphs of tasks."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pto.cli import console, findings, options, place
from pto.cli.command_line import CommandLine
from pto.cli.progress import progress
from pto.core.errors import fail
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.graphs import extract, shadow, suite, swimlane
from pto.graphs.diff import compare
from pto.graphs.program import PythonGraph

EXAMPLES = """\
  pto graph run tests/st/a2a3/paged_attention     scene tests, compared with their goldens
  pto graph run tests/st -k "paged and small" -j 2
  pto graph run tests/st --on ray                 on all processors of a cluster
  pto graph run model.py                          every pto.graph() of a Python file
  pto graph run tests/st --at-most batch=4 --at-most context_len=1024   cases of boards, smaller
  pto graph run tests/st/vector_example --orders 20   every order that the edges allow: same bytes
  pto graph check tests/st/vector_example         races between tasks, undefined reads
  pto graph check examples/qwen3_14b_decode --dry the orchestration alone, at its real size
  pto graph diff tests/st/vector_example --against a5        the first task that differs
  pto graph diff tests/st/vector_example --golden f64.py     ... from functions of its kernels
  pto graph diff tests/st/vector_example --recorded before --extract alone   this task as a folder
  pto graph time tests/st/vector_example --page lanes.html   when each task runs, on which core

A scene test names an orchestration and its kernels in C++. Its Python is imported, its C++ compiled
and run with your rights, in child processes with limits of time and memory. Run what you trust.
"""


def add_arguments(parser: CommandLine) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="run|check|time|diff")
    run = verbs.add_parser("run", help="run scenes and compare with their goldens")
    run.add_argument("--orders", metavar="N", type=int, default=0, help=_ORDERS)
    run.add_argument("--sanitize", action="store_true", help="also report races between tasks")
    check = verbs.add_parser("check", help="report races between tasks and undefined reads")
    check.add_argument("--dry", action="store_true", help=_DRY)
    time = verbs.add_parser("time", help="time the tasks of a scene on the cores of a chip")
    time.add_argument("--device", metavar="D", help="use this chip: 910b1, 950pr, ...")
    time.add_argument("--edges", action="store_true", help=_EDGES)
    time.add_argument("--trace", metavar="FILE", type=Path, help=options.TRACE)
    time.add_argument("--html", "--page", metavar="FILE", type=Path, dest="page", help=options.HTML)
    diff = verbs.add_parser("diff", help="find the first task with different results")
    other = diff.add_mutually_exclusive_group(required=True)
    other.add_argument("--against", choices=("a2a3", "a5"), help="compare with another profile")
    other.add_argument("--record", metavar="DIR", type=Path, help=_RECORD)
    other.add_argument("--recorded", metavar="DIR", type=Path, help="compare with such a folder")
    other.add_argument("--golden", metavar="FILE", type=Path, help=_GOLDEN)
    diff.add_argument("--extract", metavar="DIR", type=Path, help=_EXTRACT)
    for name in ("rtol", "atol"):
        text = f"allow differences up to this {name}; default: that of the test"
        diff.add_argument(f"--{name}", metavar=name[0].upper(), type=float, help=text)
    for each in (run, check, time, diff):
        each.add_argument("path", metavar="PATH", type=Path, nargs="+", help="files or folders")
        options.add_selection(each, "scenes")
        each.add_argument("--profile", choices=("a2a3", "a5"), help=_PROFILE)
        options.add_timeout(each, "a run of a graph", 300.0)
        each.add_argument("--at-most", metavar="NAME=N", action="append", default=[], help=_MOST)
        findings.add_format(each)
    for each in (run, check):
        each.add_argument("-j", metavar="N", type=int, default=1, help="run N scenes at a time")
        options.add_on(each)


_ORDERS = "run again in N random orders that the edges allow, and compare every byte"
_MOST = "limit a parameter of the cases to N; the name of a case then shows the limit"
_DRY = "run only the orchestration, without kernels and values; for real sizes of a model"
_EDGES = "also run every task, and list edges that no data needs, with their cost"
_RECORD = "write the results of every task to a folder, for a later --recorded"
_GOLDEN = "compare with f64: functions of this Python file, one for each kernel by its name"
_EXTRACT = "write the first task with different results as a folder that runs alone"
_PROFILE = "use this profile; default: the one of the test"


def run(args: argparse.Namespace) -> int:
    chosen = _selection(args)
    found = list(chosen.find())
    if not found:
        which = f" that matches -k {args.k!r}" if args.k else ""
        raise fail("PTO-U320", f"{args.path[0]} has no scene test or graph{which}")
    if args.what in ("time", "diff"):
        return (_time if args.what == "time" else _diff)(args, _only(found))
    if args.j < 1:
        raise fail("PTO-U061", f"-j {args.j}: at least one process is needed")
    if getattr(args, "orders", 0) < 0:
        raise fail("PTO-U061", f"--orders {args.orders}: the number must not be negative")
    watched = args.what == "check" or args.sanitize
    is_dry = getattr(args, "dry", False)
    how = suite.RunOptions(watched, getattr(args, "orders", 0), args.timeout, is_dry)
    began = time.perf_counter()
    with progress(len(found)) as seen:

        def told(outcome: suite.SceneResult) -> None:
            seen(outcome.status in suite.GOOD)
            if args.format == "lines":
                findings.line(outcome.data())

        outcomes = suite.run_all(found, chosen, how, args.j, told)
    if args.format == "json":
        findings.data(args, scenes=[o.data() for o in outcomes])
    elif args.format == "text":
        _show(outcomes, time.perf_counter() - began)
    return 0 if all(o.status in suite.GOOD for o in outcomes) else 1


def _selection(args: argparse.Namespace) -> suite.CaseSelection:
    missing = next((p for p in args.path if not p.exists()), None)
    if missing is not None:
        raise fail("PTO-U248", f"there is no file or folder {missing}")
    paths = tuple(path.resolve() for path in args.path)
    return suite.CaseSelection(paths, args.profile, args.k, tuple(map(_limit, args.at_most)))


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise fail("PTO-U061", f"--at-most {text}: give a name and a number, such as batch=4")
    return name, int(number)


def _only(found: Sequence[suite.Case | suite.SceneResult]) -> suite.Case:
    """The only scene, for commands that accept one."""
    first = found[0]
    if isinstance(first, suite.SceneResult):
        raise fail("PTO-U322", first.why)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:3])
        raise fail("PTO-U320", f"{len(found)} scenes match: {names}", help="choose one with -k")
    return first


def _diff(args: argparse.Namespace, case: suite.Case) -> int:
    is_python = isinstance(case, PythonGraph)
    if args.extract is not None and (args.record or args.golden or is_python):
        raise fail("PTO-U061", "--extract needs two runs of kernels in C++")
    rtol, atol = case.tolerances
    rtol = rtol if args.rtol is None else args.rtol
    atol = atol if args.atol is None else args.atol
    with tempfile.TemporaryDirectory(prefix="pto-graph-") as own:
        ours = Path(own) if args.record is None else args.record
        tasks = _record(case, ours, args.timeout, inputs=args.golden is not None)
        if args.record is not None:
            print(f"{case.name}: {tasks:,} tasks recorded in {args.record}")
            return 0
        other = args.recorded
        if args.against is not None:
            if isinstance(case, PythonGraph):
                raise fail("PTO-U061", f"the kernels of {case.name} name their own profile")
            other = Path(own) / "against"
            _record(replace(case, profile=args.against), other, args.timeout)
        if args.golden is not None:
            report = shadow.compare(ours, args.golden, rtol, atol)
        else:
            report = compare(ours, other, rtol, atol)
        if report.first is not None and args.extract is not None:
            assert not isinstance(case, PythonGraph)
            _record(case, ours, args.timeout, report.first.number)
            extract.write(args.extract, case.source(), ours, other, rtol, atol)
    found = report.finding()
    if args.format == "text" and found is None:
        print(f"{case.name}: {report.tasks:,} tasks, all within rtol {rtol:g} and atol {atol:g}")
    else:
        findings.show([] if found is None else [found], args)
    return 0 if found is None else 1


def _record(
    case: suite.Case,
    folder: Path,
    seconds: float,
    kept: int | None = None,
    inputs: bool = False,
) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with suite.opened(case, seconds) as ready:
        return ready.record(str(folder), kept, inputs).tasks


def _time(args: argparse.Namespace, case: suite.Case) -> int:
    with suite.opened(case, args.timeout, "all" if args.edges else "some", args.edges) as ready:
        times = ready.time(args.device, args.edges)
    if args.trace is not None:
        write_whole(args.trace, json.dumps(swimlane.chrome(times)))
    if args.page is not None:
        write_whole(args.page, swimlane.page(times, case.name))
    if args.format == "text":
        print(f"{case.name}\n" + "\n".join(swimlane.summary(times)))
    else:
        findings.data(args, scene=case.name, **times)
    return 0


def _show(outcomes: Sequence[suite.SceneResult], seconds: float) -> None:
    width = max(len(o.name) for o in outcomes)
    for o in outcomes:
        style = "dim" if o.status == "skipped" else "value" if o.status in suite.GOOD else "error"
        facts = f"{o.tasks:6,} tasks {o.edges:6,} edges {o.seconds:7.1f} s" if o.tasks else ""
        why = f"  {o.why.splitlines()[0][:90]}" if o.why else ""
        row: list[Piece] = [
            (style, f"{o.status:8}"),
            ("", f" {o.name:<{width}} {o.profile:5}{facts}"),
        ]
        console.write([*row, ("dim", f"{why}\n")])
    told: set[str] = set()
    for o in outcomes:
        fresh = [d for d in o.findings if str(d) not in told]
        told |= {str(d) for d in fresh}
        if fresh:
            print(f"\n{o.name}")
            console.show(fresh, stream=sys.stdout)
    counts = Counter(o.status for o in outcomes)
    parts = [f"{counts[s]} {s}" for s in suite.STATUSES if counts[s]]
    tasks = sum(o.tasks for o in outcomes)
    console.write([("title", f"{', '.join(parts)}; {tasks:,} tasks, {seconds:.0f} s\n")])
    console.write(place.by_node([(o.node, o.seconds) for o in outcomes]))
