"""C++ kernels on the command line: `pto run`, `check` and `time` of a .cpp file.

All of them compile it and run it natively, in a child process with limits, with the user's rights.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pto.cli import findings, progress
from pto.cli.program import LoadedLaunch
from pto.core.dtypes import dtype
from pto.core.errors import Diagnostic, PtoError, fail
from pto.ir.builder import scalar_type
from pto.ir.text.parser import read_source
from pto.isa.row.types import Ptr
from pto.run.launch.arguments import LaunchParameter, build, parse_args
from pto.run.launch.host import Report
from pto.target.defaults import DEFAULTS
from pto.target.profile import device as find_device

if TYPE_CHECKING:
    from pto.cxx.kernel import CppKernel


def _require_here(file: str, args: argparse.Namespace) -> None:
    """Raise for another engine or a cluster."""
    engine = getattr(args, "engine", None)
    on = getattr(args, "on", "")
    if on or engine not in (None, "reference"):
        raise fail(
            "PTO-U280",
            f"{f'--on {on}' if on else f'--engine {engine}'} works for .pto programs and Python"
            f" kernels only; {file} is C++",
            help="C++ kernels run on this machine, with the reference engine",
        )


def _kernel(file: str, args: argparse.Namespace) -> CppKernel:
    from pto.cxx.kernel import cpp

    _require_here(file, args)
    entry = args.entry or _only_kernel(file)
    chip = getattr(args, "device", None)
    profile = args.profile or (
        find_device(chip).profile if chip not in (None, "all") else DEFAULTS.text
    )
    source = cpp(file, profile=profile, include=args.include, defines=args.define)
    return source[entry]


def _only_kernel(file: str) -> str:
    """The name of the only kernel of a source, if it is not a template."""
    kernels = re.findall(r"(template[^;{]*)?__global__[^;{]*?(\w+)\s*\(", read_source(file))
    names = dict.fromkeys(name for _, name in kernels)
    if len(names) == 1 and not any(template for template, _ in kernels):
        return kernels[0][1]
    listed = f"; it has {', '.join(names)}" if names else ""
    raise fail(
        "PTO-U031",
        f"which kernel of {file} is to run?{listed}",
        help='--entry "NAME<template arguments>"',
    )


def _parameters(kernel: CppKernel, limit: dict[str, Any]) -> list[LaunchParameter]:
    """The parameters of a kernel, with the names in the source if they can be found."""
    name = kernel.entry.partition("<")[0].strip()
    text = kernel.source.path.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"__global__[^;{{]*?\b{re.escape(name)}\s*\(([^)]*)\)", text)
    words = [w.split()[-1].lstrip("*&") for w in match[1].split(",")] if match and match[1] else []
    kinds = kernel.signature(**limit)
    if len(words) != len(kinds):
        words = [f"arg{n}" for n in range(len(kinds))]
    out: list[LaunchParameter] = []
    for word, (pointer, element) in zip(words, kinds, strict=True):
        kind = scalar_type(dtype(element if element not in ("none", "?", "f64") else "i8"))
        out.append(LaunchParameter(word, Ptr(kind) if pointer else kind, None))
    return out


def _limit(args: argparse.Namespace) -> dict[str, Any]:
    """The time limit of a launch; loading a kernel has the same one, as it may not end either."""
    seconds = getattr(args, "timeout", None)
    return {} if seconds is None else {"timeout": seconds}


def read_launch(args: argparse.Namespace) -> KernelLaunch:
    """The C++ kernel of `args.file` with its arguments."""
    with progress.stage(f"compiling {args.file}", args):
        kernel = _kernel(args.file, args)
        params = _parameters(kernel, _limit(args))
    return KernelLaunch(params, build(params, parse_args(args.arg), args.seed), kernel)


@dataclass(frozen=True, slots=True)
class KernelLaunch(LoadedLaunch):
    """A C++ kernel with its arguments; its times are by lines of the source."""

    kernel: CppKernel

    def _options(self, args: argparse.Namespace) -> dict[str, Any]:
        return {"blocks": args.blocks, **_limit(args)}

    def run(self, args: argparse.Namespace) -> Report:
        with progress.stage("running", args):
            return self.kernel.run(*self.values, **self._options(args))

    def sanitize(self, args: argparse.Namespace) -> tuple[Report | None, int]:
        with progress.stage("sanitizing", args):
            verdict = self.kernel.sanitize(*self.values, **self._options(args))
        last = "sanitizer: no findings" if verdict.is_clean else verdict.summary
        return None, findings.show(verdict.findings, args, [("title", f"{last}\n")] if last else [])

    def time(self, args: argparse.Namespace) -> int:
        from pto.cli.time import model, shown

        kernel, values, how = self.kernel, self.values, {**model(args), **_limit(args)}
        return shown(
            lambda name: kernel.time(*values, blocks=args.blocks, device=name, **how), args
        )


def check(file: str, args: argparse.Namespace) -> tuple[str, list[Diagnostic], str]:
    """`pto check kernel.cpp`: a C++ kernel is checked by running it."""
    try:
        kernel = _kernel(file, args)
        values: list[Any] = build(_parameters(kernel, {}), parse_args(args.arg), args.seed)
        findings_list = list(kernel.check(*values, blocks=args.blocks))
    except PtoError as error:
        if all(d.is_request for d in error.diagnostics):
            raise
        return "", list(error.diagnostics), ""
    note = f"{file}: judged by a run of {args.blocks} blocks with these arguments"
    return f"profile {kernel.source.profile}", findings_list, note
