"""`pto tune`: finds the constants that make a kernel fastest, by the timing model.

The result is cached on disk: `@pto.autotune` uses it when the same kernel is called.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from pto.cli import console, findings, options
from pto.cli.command_line import CommandLine
from pto.cli.program import is_python
from pto.core.errors import fail
from pto.core.render import Piece
from pto.lang.arithmetic import computed, parsed
from pto.lang.file import constant, find_tunable, kernel_values
from pto.lang.kernel import Blocks, Kernel
from pto.lang.trial import Config, Trial
from pto.lang.tune import Autotuned, Tuning, configurations, tune
from pto.run.launch.arguments import parse_args

EXAMPLES = """\
  pto tune k.py:scale --arg x=rand:512x128 --arg y=zeros:512x128 --space rows=8,64,256
                                 every value, the fastest first; results are compared
  pto tune k.py:gemm --arg a=rand:512x512 --arg b=rand:512x512 --arg c=zeros:512x512 \\
           --space m=64,128 --space n=64,128 --blocks "cdiv(512, m) * cdiv(512, n)" --rtol 1e-3
                                 every combination, each on its own grid
  pto tune k.py:gemm --arg a=zeros:512x512 --arg b=zeros:512x512 --arg c=zeros:512x512
                                 the space of @pto.autotune; calls use the result
  pto tune k.py:scale --arg x=zeros:512x128 --arg y=zeros:512x128 --space rows=8,64 --shapes \\
           --device 910b1 --on ray --format lines
                                 only timed, on a cluster, a line as each one is done
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("file", metavar="FILE", help=_FILE)
    parser.add_argument("--entry", metavar="F", help="tune this kernel, if FILE has several")
    options.add_values(parser, "set an argument or a constant that is not tuned, as for `pto run`")
    parser.add_argument("--space", action="append", default=[], metavar="NAME=V,V", help=_SPACE)
    parser.add_argument("--blocks", metavar="N", help=_BLOCKS)
    options.add_target(parser, chips=True)
    parser.add_argument("--rtol", type=float, metavar="R", help=_RTOL)
    parser.add_argument("--shapes", action="store_true", help=_SHAPES)
    again = "tune again even if a cached result exists"
    parser.add_argument("--again", action="store_true", help=again)
    options.add_jobs(parser)
    options.add_on(parser)
    findings.add_format(parser)


_FILE = "a kernel of a Python file, k.py:gemm; the file is executed, with your rights"
_SPACE = "try these values for a constant of the kernel; several --space: all combinations"
_BLOCKS = (
    "launch this many blocks: 24, (4, 8), or an expression: `cdiv(x.shape[0], rows)`;"
    " default: as many as the stores of a configuration need"
)
_RTOL = "allow this relative difference of results; default: that of @pto.autotune, else 0"
_SHAPES = "use only shapes of arrays: run and compare nothing"


def run(args: argparse.Namespace) -> int:
    if not is_python(args.file):
        raise fail(
            "PTO-U272",
            f"{args.file} is not a Python kernel: a .pto program has no constants to tune",
            help="tune the Python kernel, k.py:name; `pto time` times a .pto program",
        )
    tuned = _asked(find_tunable(args.file, args.entry), args)
    kernel = tuned.kernel if args.profile is None else tuned.kernel.on(args.profile)
    values = _values(kernel, tuned.configs, args)
    if args.blocks is not None:
        tuned.blocks = grid = _grid(args.blocks, values)
        grid(tuned.configs[0])  # reports an error of the expression before the first trial
    tuning = tune(
        kernel,
        tuned.configs,
        _shapes(values) if args.shapes else values,
        blocks=tuned.blocks,
        device=tuned.device,
        rtol=tuned.rtol,
        processes=args.j,
        again=args.again,
        on_trial=_line if args.format == "lines" else lambda trial: None,
    )
    if findings.is_text(args):
        console.write(_table(kernel, tuning))
    else:
        findings.data(args, (), (), **_data(kernel, tuning))
    return 0


def _asked(kernel: Kernel[...] | Autotuned, args: argparse.Namespace) -> Autotuned:
    """The tuning settings of the kernel, overridden by the command line."""
    tunable = Autotuned(kernel, [], None, None, 0.0) if isinstance(kernel, Kernel) else kernel
    space = dict(map(_values_of, args.space))
    configs = configurations(space) if space else tunable.configs
    if not configs:
        raise fail(
            "PTO-U270",
            f"there is nothing to try: {tunable.kernel.name} has no @pto.autotune",
            help="give --space NAME=8,16,32 for each constant to tune",
        )
    device = args.device or tunable.device
    rtol = tunable.rtol if args.rtol is None else args.rtol
    return Autotuned(tunable.kernel, configs, tunable.blocks, device, rtol)


def _values_of(text: str) -> tuple[str, list[Any]]:
    """`rows=8,16`, `kind=f16,bf16`, `tile=(8,16),(16,16)`."""
    name, equals, values = text.partition("=")
    if not equals or not name.isidentifier() or not values:
        raise fail("PTO-U272", f"`--space {text}` is not a list of values", help="rows=8,64,256")
    try:
        return name, list(ast.literal_eval(f"[{values}]"))
    except (ValueError, SyntaxError):
        return name, [constant(value) for value in values.split(",")]


def _values(
    kernel: Kernel[...], configs: Sequence[Config], args: argparse.Namespace
) -> dict[str, Any]:
    """The arguments from the command line, without tuned constants."""
    tuned = {name for config in configs for name in config}
    for name in sorted(tuned):
        _require_constant(kernel, name)
    values = kernel_values(kernel, parse_args(args.arg), args.seed, tuned)
    names = [p.name for p in kernel.parameters]
    return {n: v for n, v in zip(names, values, strict=True) if n not in tuned}


def _require_constant(kernel: Kernel[...], name: str) -> None:
    kinds = {p.name: p.kind for p in kernel.parameters}
    if kinds.get(name) != "constant":
        described = "an array or a number that a launch gives" if name in kinds else "no parameter"
        constants = [n for n, kind in kinds.items() if kind == "constant"]
        listed = ", ".join(constants) or "none: give it one, `rows: int`"
        raise fail(
            "PTO-U272",
            f"{name} cannot be tuned: it is {described} of {kernel.name}",
            help=f"constants of {kernel.name}: {listed}",
        )


def _grid(text: str, values: Mapping[str, Any]) -> Any:
    """The grid of a configuration, from an expression of the command line."""

    def grid(config: Config) -> Blocks:
        try:
            return cast("Blocks", computed(parsed(text), {**values, **config}))
        except (ValueError, ZeroDivisionError) as error:
            raise fail("PTO-U272", f"--blocks {text!r}: {error}") from None

    return grid


def _shapes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v.shape if isinstance(v, np.ndarray) else v for n, v in values.items()}


# ---- the result


def _line(trial: Trial) -> None:
    findings.line(trial.to_json())


def _data(kernel: Kernel[...], tuning: Tuning) -> dict[str, Any]:
    trials = [trial.to_json() for trial in tuning.trials]
    best = trials[0]["config"]
    return {"kernel": kernel.name, "best": best, "us": tuning.us, "trials": trials}


_CONFIG = "configuration"


def _table(kernel: Kernel[...], tuning: Tuning) -> list[Piece]:
    width = max(len(words) for words in (_CONFIG, *(t.words for t in tuning.trials)))
    lines: list[Piece] = [("title", f"{_CONFIG:<{width}} {'us':>10}  bound\n")]
    for trial in tuning.trials:
        if trial.us is None:
            lines.append(("dim", f"{trial.words:<{width}} {'-':>10}  {trial.refused}\n"))
        else:
            lines.append(("", f"{trial.words:<{width}} {trial.us:>10.1f}  {trial.bound}\n"))
    before = ", as found before (--again looks anew)" if tuning.kept else ""
    lines.append(("name", f"{kernel.name}: {tuning.trials[0].words}{before}\n"))
    return lines
