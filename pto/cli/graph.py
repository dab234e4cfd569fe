"""`pto graph`: run, judge, sanitize and time graphs of tasks."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pto.cli import findings, options, suite
from pto.cli.command_line import CommandLine
from pto.core.errors import fail
from pto.core.output import write_whole
from pto.graphs import extract, shadow, swimlane
from pto.graphs.diff import compare
from pto.graphs.program import PythonGraph
from pto.graphs.suite import Graph, Outcome, opened

EXAMPLES = """\
  pto graph run model.py                          every pto.graph() of a Python file
  pto graph run tests/st/a2a3/paged_attention     scene tests too, as `pto suite scenes` does
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
    run.add_argument("--orders", metavar="N", type=int, default=0, help=options.ORDERS)
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
    for verb in (run, check, time, diff):
        verb.add_argument("path", metavar="PATH", type=Path, nargs="+", help="files or folders")
        options.add_selection(verb, "scenes")
        options.add_timeout(verb, "a run of a graph", 300.0)
        options.add_scene(verb)
        findings.add_format(verb)
    for verb in (run, check):
        options.add_jobs(verb)
        options.add_on(verb)


_DRY = "run only the orchestration, without kernels and values; for real sizes of a model"
_EDGES = "also run every task, and list edges that no data needs, with their cost"
_RECORD = "write the results of every task to a folder, for a later --recorded"
_GOLDEN = "compare with f64: functions of this Python file, one for each kernel by its name"
_EXTRACT = "write the first task with different results as a folder that runs alone"


def run(args: argparse.Namespace) -> int:
    if args.what == "run":
        suite.require_possible(args)
        plan = suite.plan_scenes(args, is_watched=args.sanitize, orders=args.orders)
        return suite.run_plan(plan, args)
    if args.what == "check":
        suite.require_possible(args)
        plan = suite.plan_scenes(args, is_watched=True, is_dry=args.dry)
        return suite.run_plan(plan, args)
    graphs = list(options.chosen_scenes(args).find())
    if not graphs:
        raise fail("PTO-U320", f"{args.path[0]} has no scene test or graph that matches")
    return (_time if args.what == "time" else _diff)(args, _only(graphs))


def _only(graphs: Sequence[Graph | Outcome]) -> Graph:
    """The only scene, for commands that accept one."""
    first = graphs[0]
    if isinstance(first, Outcome):
        raise fail("PTO-U322", first.why)
    if len(graphs) > 1:
        names = ", ".join(graph.name for graph in graphs[:3])
        raise fail("PTO-U320", f"{len(graphs)} scenes match: {names}", help="choose one with -k")
    return first


def _diff(args: argparse.Namespace, case: Graph) -> int:
    is_python = isinstance(case, PythonGraph)
    if args.extract is not None and (args.record or args.golden or is_python):
        raise fail("PTO-U061", "--extract needs two runs of kernels in C++")
    rtol, atol = case.tolerances
    rtol = rtol if args.rtol is None else args.rtol
    atol = atol if args.atol is None else args.atol
    with tempfile.TemporaryDirectory(prefix="pto-graph-") as scratch:
        ours = Path(scratch) if args.record is None else args.record
        tasks = _record(case, ours, args.timeout, inputs=args.golden is not None)
        if args.record is not None:
            print(f"{case.name}: {tasks:,} tasks recorded in {args.record}")
            return 0
        other = args.recorded
        if args.against is not None:
            if isinstance(case, PythonGraph):
                raise fail("PTO-U061", f"the kernels of {case.name} name their own profile")
            other = Path(scratch) / "against"
            _record(replace(case, profile=args.against), other, args.timeout)
        if args.golden is not None:
            report = shadow.compare(ours, args.golden, rtol, atol)
        else:
            report = compare(ours, other, rtol, atol)
        if report.first is not None and args.extract is not None:
            assert not isinstance(case, PythonGraph)
            _record(case, ours, args.timeout, report.first.number)
            extract.write(args.extract, case.source(), ours, other, rtol, atol)
    finding = report.finding()
    if args.format == "text" and finding is None:
        print(f"{case.name}: {report.tasks:,} tasks, all within rtol {rtol:g} and atol {atol:g}")
    else:
        findings.show([] if finding is None else [finding], args)
    return 0 if finding is None else 1


def _record(
    case: Graph,
    folder: Path,
    seconds: float,
    kept: int | None = None,
    inputs: bool = False,
) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with opened(case, seconds) as ready:
        return ready.record(str(folder), kept, inputs).tasks


def _time(args: argparse.Namespace, case: Graph) -> int:
    with opened(case, args.timeout, "all" if args.edges else "some", args.edges) as ready:
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
