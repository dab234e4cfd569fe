"""`pto run`: executes a kernel and shows the arrays that it changed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pto.cli import compiled, console, findings, options
from pto.cli.command_line import PYTHON, TEXT, CommandLine
from pto.cli.program import LoadedLaunch, ModuleLaunch, load_launch
from pto.core.errors import fail
from pto.core.output import write_whole
from pto.core.render import Piece
from pto.isa.row.attributes import Str
from pto.run.launch.arguments import LaunchParameter
from pto.run.launch.engine import DEFAULT, ENGINES, cluster_target, wants_sanitizer
from pto.run.launch.host import Report, launch
from pto.run.order.schedule import parse_schedule
from pto.target.facts import EDITIONS

EXAMPLES = """\
  pto run add.pto --arg a=rand --arg b=rand --arg c=zeros
                                 sizes are taken from the views of the program
  pto run add.pto --arg a=a.npy --arg b=rand:1024xf32 --arg c=zeros:1024xf32 --arg n=17
  pto run add.pto --arg a=rand --arg b=rand --arg c=zeros --sanitize
  pto run add.pto --arg a=rand --arg b=rand --arg c=zeros --schedule late
                                 effects as late as flags and barriers allow
  pto run mm.pto --entry kernel --blocks 24 --out results/
  pto run mm.pto --blocks 4096 --arg a=a.npy --arg b=b.npy --arg c=zeros --on ray
                                 blocks on all processors of a cluster, the same bits
  pto run mm.pto --blocks 24 --arg a=zeros --arg b=zeros --arg c=zeros --time --device 910b1
                                 how long that takes on the chip; nothing is computed
  pto run add.pto --arg a=rand --arg b=rand --arg c=zeros --step 14
                                 stop before line 14 and show its operands
  pto run k.py:softmax --blocks 7 --arg x=rand:100x128 --arg y=zeros:100x128
                                 a kernel in Python; the file is executed, with your rights
  pto run add.cpp --entry "add<float, 16, 64>" --arg out=zeros:16x64xf32 --arg x=rand:16x64xf32
                                 a C++ kernel: compiled and run natively, with your rights
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_launch(parser, "run", options.VALUES, f"{options.FILE}, or a C++ kernel")
    options.add_target(parser)
    text = "apply the rules of this edition, if the program declares none"
    edition = parser.add_argument("--edition", choices=EDITIONS, help=text)
    options.add_engine(parser, ENGINES, DEFAULT)
    watch = parser.add_mutually_exclusive_group()
    step = watch.add_argument("--step", nargs="?", const="+1", metavar="LINE|+N", help=_STEP)
    watch.add_argument("--sanitize", action="store_true", help=_SANITIZE)
    schedule = watch.add_argument("--schedule", metavar="S", help=options.SCHEDULE)
    time = watch.add_argument(
        "--time", nargs="?", const="shapes", choices=("shapes", "data"), help=_TIME
    )
    for action in options.add_timeline(parser):
        parser.only_with(action, time, why="it shows when each pipe was busy")
    options.add_timeout(parser, "the run")
    options.add_on(parser)
    arrays = "write every array to this folder, as NAME.npy"
    parser.add_argument("-o", "--out", metavar="DIR", help=arrays)
    parser.add_argument("--verbose", action="store_true", help=_VERBOSE)
    parser.add_argument("--print", action="store_true", help="print the arrays that changed")
    options.add_cpp(parser)
    findings.add_format(parser, "sarif", "html")
    parser.only_for(edition, step, schedule, languages=(TEXT, PYTHON))


_VERBOSE = "also show fused groups, forwarded copies and host fallbacks of the jit engine"
_STEP = "stop before a line, or before instruction N (default: the first), and show a prompt"
_SANITIZE = "report races, deadlocks and flags that do not match"
_TIME = "estimate the time on the chip, as `pto time`: from shapes, or with the data of arrays"


def run(args: argparse.Namespace) -> int:
    require_fitting(args)
    called = load_launch(args)
    if args.edition and isinstance(called, ModuleLaunch):
        called.module.op.attrs.setdefault("pto.edition", Str(args.edition))
    if args.time:
        args.data = args.time == "data"
        return called.time(args)
    before = copies(called.values)
    code = 0
    if args.step and isinstance(called, ModuleLaunch):
        report = _stepped(called, args)
    elif not args.schedule and wants_sanitizer(args.sanitize):
        report, code = called.sanitize(args)
    else:
        report = called.run(args)
    _show(called, before, report, args)
    return code


def require_fitting(args: argparse.Namespace) -> None:
    """Raise for a format of another way to run."""
    if not args.time and args.format == "html":
        raise fail("PTO-U232", "--format html needs --time: it shows when each pipe was busy")
    if args.time and args.format == "sarif":
        raise fail("PTO-U232", "--format sarif needs --sanitize: timings are not findings")


def copies(values: Sequence[Any]) -> list[Any]:
    """Arguments as they are now: arrays copied."""
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


def _show(
    called: LoadedLaunch, before: Sequence[Any], report: Report | None, args: argparse.Namespace
) -> None:
    """Write and print the arrays of a run."""
    params, values = called.params, called.values
    arrays = [(p, o, n) for p, o, n in zip(params, before, values, strict=True) if is_array(o)]
    if args.out and report is not None:
        save(Path(args.out), params, values)
    if report is None or not findings.is_text(args):
        if report is not None and not args.sanitize:
            findings.data(args, **described(report, arrays))
        return
    for line in report.printed:
        print(line)
    console.write(_header(report, args.schedule))
    if moved := getattr(cluster_target(), "moved", None):
        console.write([("dim", f"  on a cluster: {moved[-1]}\n")])
    if args.verbose:
        console.write(compiled.lines(report))
    for param, old, new in arrays:
        console.write(change(param, old, new, show=args.print))


def _stepped(called: ModuleLaunch, args: argparse.Namespace) -> Report | None:
    from pto.cli.step import stepper
    from pto.run.watch.step import Quit

    chosen = stepper(called.module, args.step)
    try:
        return launch(called.module, **called.options(args), stepper=chosen)
    except Quit:
        console.write([("title", f"left after {chosen.done} instructions\n")])
        return None


def described(report: Report, arrays: Sequence[tuple[LaunchParameter, Any, Any]]) -> dict[str, Any]:
    """A run as data: its settings, its printed lines, the changed arrays."""
    return {
        "entry": report.entry,
        "target": str(report.target),
        "engine": report.engine,
        "blocks": report.blocks,
        "schedule": str(report.schedule),
        "printed": report.printed,
        "changed": {p.name: int(changed(old, new).sum()) for p, old, new in arrays},
        "compiled": compiled.facts(report),
    }


def _header(report: Report, schedule: str | None) -> list[Piece]:
    line: list[Piece] = [("title", f"{report!r}\n")]
    if schedule is not None and parse_schedule(schedule) != report.schedule:
        from pto.observe.mode import ASSUMED

        line.append(("dim", f"  schedule program: {ASSUMED['automatic']}\n"))
    return line


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def changed(old: Any, new: Any) -> Any:
    """A mask of the elements that differ in their bits."""
    bits = np.dtype(f"u{old.dtype.itemsize}")
    return old.view(bits) != new.view(bits)


def change(param: LaunchParameter, old: Any, new: Any, *, show: bool) -> list[Piece]:
    """One line per array: the number of changed elements, and the range of the new values."""
    moved = changed(old, new)
    count = int(moved.sum())
    name: Piece = ("name", f"  {param.name:<12} ")
    if not count:
        return [name, ("dim", f"unchanged, {old.size:,} elements\n")]
    out: list[Piece] = [name, ("value", f"{count:,} of {old.size:,} elements changed")]
    out.append(("", f"{_range(new[moved])}\n"))
    return [*out, ("", f"{new}\n")] if show else out


def _range(values: Any) -> str:
    if values.dtype.kind not in "iuf":
        values = values.astype(np.float64) if values.dtype.kind == "V" else values
    try:
        return f", now {values.min()} to {values.max()}"
    except TypeError:
        return ""


def save(folder: Path, params: Sequence[LaunchParameter], values: Sequence[Any]) -> None:
    with suppress(OSError):  # writing the first file reports the error
        folder.mkdir(parents=True, exist_ok=True)
    for param, value in zip(params, values, strict=True):
        if isinstance(value, np.ndarray):
            buffer = BytesIO()
            np.save(buffer, value)
            write_whole(folder / f"{param.name}.npy", buffer.getvalue())
