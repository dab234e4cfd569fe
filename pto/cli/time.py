"""`pto time`: estimates the time of a kernel on a chip, and what limits it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pto.cli import console, findings, options
from pto.cli.command_line import CommandLine
from pto.cli.program import load_launch
from pto.core.render import Piece
from pto.ir.graph import Module
from pto.run.launch.engine import cluster_target

if TYPE_CHECKING:
    from pto.cluster.kernel_message import ProgramText
    from pto.observe.timing import Timing

Many = Callable[[Sequence[str]], "list[Timing]"]
EXAMPLES = """\
  pto time gemm.pto --blocks 24 --arg a=zeros --arg b=zeros --arg c=zeros
  pto time gemm.pto --blocks 24 --arg a=zeros --arg b=zeros --arg c=zeros --device all
                                 every chip of the profile, as a table
  pto time gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros --trace gemm.json
                                 when each pipe was busy, for Perfetto
  pto time gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros --html gemm.html
                                 the same as an HTML page
  pto time k.py:softmax --blocks 7 --arg x=zeros:100x128 --arg y=zeros:100x128
                                 a kernel in Python; the file is executed, with your rights
  pto time gemm.cpp --entry "gemm<half, 1024>" --blocks 24 --arg a=zeros:1024x1024xf16 ...
                                 a C++ kernel, compiled and run with your rights
  pto time gemm.pto --arg a=zeros --arg b=zeros --arg c=zeros --cache warm
                                 launched again and again on the same arrays
  pto time topk.pto --arg x=x.npy --arg y=zeros --data
                                 a program with control flow that depends on data
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_launch(parser, "time", _ARG, f"{options.FILE}, or a C++ kernel")
    options.add_target(parser, chips=True, more=", or all")
    parser.add_argument("--data", action="store_true", help=_DATA)
    options.add_timeline(parser)
    options.add_model(parser)
    options.add_cpp(parser)
    options.add_on(parser)
    findings.add_format(parser, "html")


_ARG = "set an argument, as for `pto run`; without --data only shapes are used"
_DATA = "use the values of arrays: needed if control flow depends on data"


def run(args: argparse.Namespace) -> int:
    return load_launch(args).time(args)


def timed(module: Module, values: Sequence[Any], args: argparse.Namespace) -> int:
    """Time a launch of a program and print the result."""
    from pto.observe.timing import time

    options: dict[str, Any] = {
        "args": values,
        "blocks": args.blocks,
        "entry": args.entry,
        "profile": args.profile,
        "data": args.data,
        **model(args),
    }

    def each(device: str | None) -> Timing:
        return time(module, **options, device=device)

    return shown(each, args, _elsewhere(module, options))


def model(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the timing model; `pto run --time` has none of them."""
    from pto.observe.timing import overrides

    path = getattr(args, "costs", None)
    costs = overrides.read(path) if path else None
    return {"cache": getattr(args, "cache", "cold"), "costs": costs}


def _elsewhere(module: Module, options: Mapping[str, Any]) -> Many | None:
    """Timings of several chips in parallel on a cluster; None without a cluster."""
    if cluster_target() is None:
        return None
    from pto.cluster import tasks
    from pto.cluster.kernel_message import ProgramText

    pool, shared = tasks.pool(), (ProgramText.of(module), options)
    if pool is None:
        return None
    return lambda names: list(tasks.in_order(pool, "pto.cli.time:timed_on", names, shared))


def timed_on(shared: tuple[ProgramText, Mapping[str, Any]], device: str) -> Timing:
    """Time a program on one chip, on a worker."""
    from pto.observe.timing import time

    return time(shared[0].module(), **shared[1], device=device)


def shown(
    time: Callable[[str | None], Timing], args: argparse.Namespace, many: Many | None = None
) -> int:
    """Time a launch and print the result; `args.device` may be `all`."""
    from pto.observe.timing import benches
    from pto.target.profile import device as find_device

    if args.device == "all":
        usual = time(None)
        names = [b.device.name for b in benches(find_device(usual.device).profile)]
        others = [name for name in names if name != usual.device]
        times = dict(zip(others, many(others) if many else map(time, others), strict=True))
        timings = [times.get(name, usual) for name in names]
    else:
        timings = [time(args.device)]
    if args.trace:
        timings[0].trace(args.trace)
    if args.html:
        timings[0].html(args.html)
    if getattr(args, "costs_template", None):
        timings[0].template(args.costs_template)
    if not findings.is_text(args):
        times = [timing.to_json() for timing in timings]
        findings.data(args, (), times, times=times)
    elif args.format == "html":
        print(timings[0].html(None, *timings[1:]))
    elif len(timings) == 1:
        console.write([("", f"{timings[0]}\n")])
    else:
        console.write(_table(timings))
    return 0


def _table(timings: list[Any]) -> list[Piece]:
    lines: list[Piece] = [("title", f"{'chip':<12} {'cores':>5} {'us':>10}  bound\n")]
    for timing in timings:
        lines.append(
            ("", f"{timing.device:<12} {timing.cores:>5} {timing.us:>10.1f}  {timing.bound}\n")
        )
    return lines
