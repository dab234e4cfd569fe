"""Loads the program of a command: a .pto file, or a kernel of a Python file, `k.py:softmax`.

A Python file is executed to find its kernels, with the user's rights; `__name__` is not
`"__main__"` in it, and its output goes to standard error.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from inspect import Parameter as Declared
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pto.cli import findings
from pto.cli.raised import raised
from pto.core.errors import Loc, PtoError, fail, nearest
from pto.ir.builder import scalar_type
from pto.ir.graph import Module
from pto.ir.text.parser import parse_file, read_source
from pto.isa.row.types import Ptr, Scalar
from pto.run.launch.arguments import (
    LaunchParameter,
    build,
    integers,
    parameters,
    parse_args,
    require_names,
)
from pto.run.launch.engine import chosen_engine
from pto.run.launch.entry import entry_functions
from pto.run.launch.host import Report, launch
from pto.run.launch.progress import ProgressBar
from pto.target.device import device as find_device

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel
    from pto.lang.parameter import Parameter as KernelParameter
    from pto.lang.tune import Autotuned

_PYTHON = re.compile(r"(.+\.py)(?::(\w+))?")
_NAME = "__pto__"  # module name of an executed Python file


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
        given = {name: getattr(args, name) for name in names}
        return {**given, "args": self.values, "engine": chosen_engine(args.engine)}

    def run(self, args: argparse.Namespace) -> Report:
        how = {"schedule": args.schedule, "check_reads": args.check_reads}
        with ProgressBar() as seen:
            return launch(self.module, **self.options(args), progress=seen, **how)

    def sanitize(self, args: argparse.Namespace) -> tuple[Report | None, int]:
        from pto.observe import sanitize

        how = {**self.options(args), "automatic": args.automatic}
        with ProgressBar() as seen:
            verdict = sanitize(self.module, **how, progress=seen)
        return verdict.report, findings.show_verdict(verdict, args)

    def time(self, args: argparse.Namespace) -> int:
        from pto.cli.time import timed

        return timed(self.module, self.values, args)


def is_python(file: str) -> bool:
    return _PYTHON.fullmatch(file) is not None


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
        return _traced(file, args, profile, whole=False).module
    return parse_file(file)


def load_launch(args: argparse.Namespace) -> LoadedLaunch:
    """The program `args.file` with its arguments, in any of the three languages."""
    from pto.cli import cpp

    return cpp.read_launch(args) if cpp.is_source(args.file) else read_launch(args)


def read_launch(args: argparse.Namespace) -> ModuleLaunch:
    """The module of `args.file`, text or Python, with its arguments."""
    if is_python(args.file):
        return _traced(args.file, args)
    module, given = parse_file(args.file), parse_args(args.arg)
    params = parameters(*entry_functions(module, args.entry), numbers=integers(given))
    return ModuleLaunch(params, build(params, given, args.seed), module)


def _traced(
    file: str, args: argparse.Namespace, profile: str | None = None, *, whole: bool = True
) -> ModuleLaunch:
    from pto.lang.example import example_of

    kernel = find_kernel(file, getattr(args, "entry", None))
    profile = profile or getattr(args, "profile", None)
    device = getattr(args, "device", None)
    if profile is None and device not in (None, "all"):
        profile = find_device(str(device)).profile
    if profile is not None:
        kernel = kernel.on(profile)
    given = parse_args(args.arg)
    with users_code():
        example = None if given else example_of(kernel)
        if example is None:
            values = kernel_values(kernel, given if whole else completed(kernel, given), args.seed)
        else:
            values, blocks = example.values, getattr(args, "blocks", 1)
            args.blocks = example.blocks if blocks == 1 else blocks
        made, _, given = kernel.specialise(values, getattr(args, "blocks", 1))
    args.entry = None  # the module contains only this kernel
    return ModuleLaunch(parameters(*entry_functions(made.module, None)), given, made.module)


# ---- from a file to a kernel


def find_kernel(file: str, entry: str | None = None) -> Kernel[...]:
    """The kernel named by `k.py:name` or `--entry name`, or the only kernel of the file."""
    from pto.lang.kernel import Kernel

    found = find_tunable(file, entry)
    return found if isinstance(found, Kernel) else found.kernel


def find_tunable(file: str, entry: str | None = None) -> Kernel[...] | Autotuned:
    """The same; a kernel with `@pto.autotune` is returned with its configurations."""
    found = _PYTHON.fullmatch(file)
    if found is None:
        raise RuntimeError(f"{file} is no Python file")
    known = dict(kernels_of(executed(Path(found[1]))))
    name = found[2] or entry
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    listed = ", ".join(known)
    if not known:
        raise fail("PTO-U030", f"{found[1]} has no kernel", help="define one with @pto.kernel")
    if name is None:
        first = f"{found[1]}:{next(iter(known))}"
        message = f"which kernel is to be taken? {found[1]} has {listed}"
        raise fail("PTO-U031", message, help=f"name it: {first}")
    if name not in known:
        message = f"{found[1]} has no kernel {name}; it has {listed}"
        raise fail("PTO-U030", message, help=nearest(name, known))
    return known[name]


def kernels_of(module: ModuleType) -> Iterator[tuple[str, Kernel[...] | Autotuned]]:
    """Every kernel of a module by name, including imported ones."""
    from pto.lang.kernel import Kernel
    from pto.lang.tune import Autotuned

    seen: set[int] = set()
    for name, value in vars(module).items():
        if isinstance(value, Kernel | Autotuned) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def executed(path: Path) -> ModuleType:
    """A Python file as a module; a mistake in it is a finding."""
    return _run(path, path.resolve(), read_source(path))


@cache
def _run(path: Path, home: Path, text: str) -> ModuleType:
    """Execute a Python file, once per command."""
    module = ModuleType(_NAME)
    module.__file__ = str(home)
    sys.modules[_NAME] = module  # dataclasses look up the module of a class
    sys.path.insert(0, str(home.parent))
    try:
        made = compile(text, str(path), "exec")
    except (SyntaxError, ValueError) as error:  # ValueError: a zero byte
        place = Loc(str(path), getattr(error, "lineno", 1) or 1, getattr(error, "offset", 1) or 1)
        said = getattr(error, "msg", error)
        raise fail("PTO-U281", f"this is not Python: {said}", loc=place) from None
    with redirect_stdout(sys.stderr), users_code():
        exec(made, vars(module))
    return module


@contextmanager
def users_code() -> Generator[None]:
    """A context for user code: its exceptions become findings at its lines."""
    try:
        yield
    except PtoError:
        raise
    except (Exception, SystemExit) as error:
        found = raised(error)
        if found.code != "PTO-U281":  # a defect: main shows it
            raise
        raise PtoError(found) from error


# ---- from text to arguments


def kernel_values(
    kernel: Kernel[...], given: Mapping[str, str], seed: int, later: Collection[str] = ()
) -> list[Any]:
    """One value per parameter: arrays and numbers as for any program, constants as Python values.

    Parameters in `later` are None.
    """
    declared = signature(kernel.function).parameters.values()
    made = {p.name: p.default for p in declared if p.default is not Declared.empty}
    made |= dict.fromkeys(later)
    require_names({p.name: f"{p.name}: {p}" for p in kernel.parameters}, given, made)
    chosen = [p for p in kernel.parameters if p.name in given]
    made |= {p.name: constant(given[p.name]) for p in chosen if p.kind == "constant"}
    params = [_parameter(p) for p in chosen if p.kind != "constant"]
    built = build(params, {p.name: given[p.name] for p in params}, seed)
    made |= {p.name: value for p, value in zip(params, built, strict=True)}
    return [made[p.name] for p in kernel.parameters]


def completed(kernel: Kernel[...], given: Mapping[str, str]) -> dict[str, str]:
    """The given values; if there are none, arrays from the annotations of the kernel.

    Run-time numbers are not part of the program and need not be given.
    """
    numbers = {p.name: "0" for p in kernel.parameters if p.kind == "scalar"}
    given = {**numbers, **given}
    if any(p.kind == "array" and p.name in given for p in kernel.parameters):
        return given
    sized = [p for p in kernel.parameters if p.dtype and p.sizes]
    made = {
        p.name: f"zeros:{'x'.join(str(_ANY if isinstance(n, str) else n) for n in p.sizes or ())}"
        for p in sized
        if None not in (p.sizes or ())
    }
    return {**given, **made}


_ANY = 1  # elements along a named dimension: fewer than any tile has


def _parameter(p: KernelParameter) -> LaunchParameter:
    """A kernel parameter as a program parameter; `pto.Global` alone has no element type."""
    elem = Scalar("?", None) if p.dtype is None else scalar_type(p.dtype)
    return LaunchParameter(p.name, Ptr(elem) if p.kind == "array" else elem, None)


def constant(text: str) -> Any:
    """A constant from text: a Python literal, an element type, else the text itself."""
    from pto.lang.values.elements import ELEMENTS

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ELEMENTS.get(text, text)
