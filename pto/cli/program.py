"""Loads the program of a command: a .pto file, or a kernel of a Python file, `k.py:softmax`."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pto.cli import findings, progress
from pto.cli.command_line import CPP, PYTHON, language_of
from pto.core.errors import fail
from pto.ir.graph import Module
from pto.ir.text.parser import parse_file
from pto.lang.file import completed, find_kernel, kernel_values, users_code
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import LaunchParameter, build, integers, parameters, parse_args
from pto.run.launch.engine import chosen_engine
from pto.run.launch.host import Report, launch
from pto.target.profile import device as find_device

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel
    from pto.lang.tracing import Specialised


@dataclass(frozen=True, slots=True)
class LoadedLaunch(ABC):
    """A program with its arguments: of text or Python (`ModuleLaunch`), or of C++ (`cpp.py`)."""

    params: list[LaunchParameter]
    values: list[Any]

    @abstractmethod
    def run(self, args: argparse.Namespace) -> Report:
        """Run it on `values`, which it changes."""

    @abstractmethod
    def sanitize(self, args: argparse.Namespace) -> tuple[Report | None, int]:
        """Run it under the sanitizer and print the findings; the report, and the exit status."""

    @abstractmethod
    def time(self, args: argparse.Namespace) -> int:
        """Estimate its time on a chip and print it."""


@dataclass(frozen=True, slots=True)
class ModuleLaunch(LoadedLaunch):
    """A module with its arguments."""

    module: Module

    def options(self, args: argparse.Namespace) -> dict[str, Any]:
        names = ("entry", "blocks", "profile", "device", "timeout")
        chosen = {name: getattr(args, name) for name in names}
        return {**chosen, "args": self.values, "engine": chosen_engine(args.engine)}

    def run(self, args: argparse.Namespace) -> Report:
        with progress.of_blocks(args) as advance:
            return launch(
                self.module,
                **self.options(args),
                progress=advance,
                schedule=args.schedule,
            )

    def sanitize(self, args: argparse.Namespace) -> tuple[Report | None, int]:
        from pto.observe import sanitize

        how: dict[str, Any] = self.options(args)
        how["automatic"] = getattr(args, "automatic", False)
        with progress.of_blocks(args) as advance:
            verdict = sanitize(self.module, **how, progress=advance)
        return verdict.report, findings.show_verdict(verdict, args)

    def time(self, args: argparse.Namespace) -> int:
        from pto.cli.time import timed

        return timed(self.module, self.values, args)


def is_python(file: str) -> bool:
    """True for a Python file, also with the name of a kernel: `k.py:softmax`."""
    return language_of(file) == PYTHON


def is_cpp(file: str) -> bool:
    return language_of(file) == CPP


def require_text(file: str, option: str) -> None:
    """Raise for a Python kernel: `option` writes .pto text and cannot change Python."""
    if is_python(file):
        raise fail(
            "PTO-U280",
            f"{option} writes .pto text, and {file} is Python",
            help=f"edit the kernel, or start from its text: pto fmt {file} > kernel.pto",
        )


def read_program(file: str, args: argparse.Namespace, profile: str | None = None) -> Module:
    """The program without arguments; a Python kernel is traced for the shapes of `--arg`.

    Without `--arg` the shapes are those of the example in its docstring. Arrays with named sizes
    need neither: the program is the same for all sizes.
    """
    if is_python(file):
        return traced(file, args, profile, complete=False)[0].module
    return parse_file(file)


def load_launch(args: argparse.Namespace) -> LoadedLaunch:
    """The program `args.file` with its arguments, in any of the three languages."""
    if not is_cpp(args.file):
        return read_launch(args)
    from pto.cli import cpp

    return cpp.read_launch(args)


def read_launch(args: argparse.Namespace) -> ModuleLaunch:
    """The module of `args.file`, text or Python, with its arguments."""
    if is_python(args.file):
        specialised, values = traced(args.file, args)
        params = parameters(*entry_functions(specialised.module, None))
        return ModuleLaunch(params, values, specialised.module)
    module, texts = parse_file(args.file), parse_args(args.arg)
    params = parameters(*entry_functions(module, args.entry), numbers=integers(texts))
    return ModuleLaunch(params, build(params, texts, args.seed), module)


def traced(
    file: str, args: argparse.Namespace, profile: str | None = None, *, complete: bool = True
) -> tuple[Specialised, list[Any]]:
    """The program of a Python kernel, and its arguments; `complete`: all of them must be known."""
    kernel, values = kernel_call(file, args, profile, complete=complete)
    with users_code(), progress.stage(f"tracing {kernel.name}", args):
        specialised, _, run_args = kernel.specialise(values, getattr(args, "blocks", None) or 1)
    args.entry = None  # the module contains only this kernel
    return specialised, run_args


def kernel_call(
    file: str, args: argparse.Namespace, profile: str | None = None, *, complete: bool = True
) -> tuple[Kernel[...], list[Any]]:
    """A Python kernel and a value for each parameter: of `--arg`, else of its docstring."""
    from pto.lang.example import example_of

    kernel = find_kernel(file, getattr(args, "entry", None))
    profile = profile or getattr(args, "profile", None)
    device = getattr(args, "device", None)
    if profile is None and device not in (None, "all"):
        profile = find_device(str(device)).profile
    if profile is not None:
        kernel = kernel.on(profile)
    texts = parse_args(args.arg)
    with users_code():
        example = None if texts else example_of(kernel)
        if example is None:
            return kernel, kernel_values(
                kernel, texts if complete else completed(kernel, texts), args.seed
            )
        blocks = getattr(args, "blocks", 1)
        args.blocks = example.blocks if blocks in (None, 1) else blocks
        return kernel, example.values
