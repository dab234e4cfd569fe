"""The program that a command is about: a .pto file, or a kernel of a Python file, `k.py:softmax`.

A Python file is executed to find its kernels, with the user's rights; `__name__` is not
`"__main__"` in it, and what it prints goes to standard error.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from inspect import Parameter as Declared
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pto.cli.raised import raised
from pto.core.errors import Loc, PtoError, fail, nearest
from pto.ir.builder import scalar_type
from pto.ir.graph import Module
from pto.ir.text.parser import parse_file, read_source
from pto.isa.row.types import Ptr, Scalar
from pto.run.launch.arguments import (
    Parameter,
    build,
    integers,
    parameters,
    parse_args,
    require_names,
)
from pto.run.launch.entry import entry_functions
from pto.target.device import device as find_device

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel
    from pto.lang.parameter import Parameter as KernelParameter
    from pto.lang.tune import Autotuned

FILE = "a .pto program, or a kernel of a Python file: k.py:softmax (which is executed)"
_PYTHON = re.compile(r"(.+\.py)(?::(\w+))?")
_NAME = "__pto__"  # of the module that a Python file becomes


@dataclass(frozen=True, slots=True)
class Launch:
    """A program with what it is called with."""

    module: Module
    params: list[Parameter]
    values: list[Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a verb needs that only looks at a program: shapes decide what a Python kernel is."""
    python = parser.add_argument_group("Python kernels")
    python.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help=_ARG)
    python.add_argument("--seed", type=int, default=0, help="for rand")


BLOCKS = "blocks of the grid; of one with axes 24,8"


def grid(text: str) -> int | tuple[int, ...]:
    """`24` blocks, or `4,8` blocks along two axes."""
    sizes = tuple(map(int, text.split(",")))
    return sizes[0] if len(sizes) == 1 else sizes


_ARG = "of a Python kernel: an array (x=zeros:100x128), a number or a constant, as for pto run"


def is_python(file: str) -> bool:
    return _PYTHON.fullmatch(file) is not None


def require_text(file: str, option: str) -> None:
    """For options that write programs: the text of a Python kernel is not theirs to write."""
    if is_python(file):
        raise fail(
            "PTO-U280",
            f"{option} writes .pto text, and {file} is Python",
            help=f"mend the kernel by hand, or begin with its text: pto fmt {file} > kernel.pto",
        )


def read_program(file: str, args: argparse.Namespace, profile: str | None = None) -> Module:
    """The program alone; a Python kernel is traced for the shapes that `--arg` gives.

    Arrays whose sizes have names need not be given: the program is the same for all of them.
    """
    if is_python(file):
        return _traced(file, args, profile, whole=False).module
    return parse_file(file)


def read_launch(args: argparse.Namespace) -> Launch:
    """The program `args.file` with its arguments."""
    if is_python(args.file):
        return _traced(args.file, args)
    module, given = parse_file(args.file), parse_args(args.arg)
    params = parameters(*entry_functions(module, args.entry), numbers=integers(given))
    return Launch(module, params, build(params, given, args.seed))


def _traced(
    file: str, args: argparse.Namespace, profile: str | None = None, *, whole: bool = True
) -> Launch:
    kernel = find_kernel(file, getattr(args, "entry", None))
    profile = profile or getattr(args, "profile", None)
    device = getattr(args, "device", None)
    if profile is None and device not in (None, "all"):
        profile = find_device(str(device)).profile
    if profile is not None:
        kernel = kernel.on(profile)
    given = parse_args(args.arg)
    with users_code():
        values = kernel_values(kernel, given if whole else _completed(kernel, given), args.seed)
        made, _, given = kernel.specialise(values, getattr(args, "blocks", 1))
    args.entry = None  # the module holds this kernel, under whatever name it has
    return Launch(made.module, parameters(*entry_functions(made.module, None)), given)


# ---- from a file to a kernel


def find_kernel(file: str, entry: str | None = None) -> Kernel:
    """The kernel that `k.py:name` or `--entry name` means, or the only one there is."""
    from pto.lang.kernel import Kernel

    found = find_tunable(file, entry)
    return found if isinstance(found, Kernel) else found.kernel


def find_tunable(file: str, entry: str | None = None) -> Kernel | Autotuned:
    """The same; one that `@pto.autotune` stands above comes with its configurations."""
    found = _PYTHON.fullmatch(file)
    if found is None:
        raise RuntimeError(f"{file} is no Python file")
    known = dict(_kernels(_executed(Path(found[1]))))
    name = found[2] or entry
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    listed = ", ".join(known)
    if not known:
        raise fail("PTO-U030", f"{found[1]} has no kernel", help="@pto.kernel makes one")
    if name is None:
        first = f"{found[1]}:{next(iter(known))}"
        message = f"which kernel is to be taken? {found[1]} has {listed}"
        raise fail("PTO-U031", message, help=f"name it: {first}")
    if name not in known:
        message = f"{found[1]} has no kernel {name}; it has {listed}"
        raise fail("PTO-U030", message, help=nearest(name, known))
    return known[name]


def _kernels(module: ModuleType) -> Iterator[tuple[str, Kernel | Autotuned]]:
    """Every kernel by the names it has; one that is imported from elsewhere too."""
    from pto.lang.kernel import Kernel
    from pto.lang.tune import Autotuned

    seen: set[int] = set()
    for name, value in vars(module).items():
        if isinstance(value, Kernel | Autotuned) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _executed(path: Path) -> ModuleType:
    return _run(path, path.resolve(), read_source(path))


@cache
def _run(path: Path, home: Path, text: str) -> ModuleType:
    """Once a command, however many profiles it asks about."""
    module = ModuleType(_NAME)
    module.__file__ = str(home)
    sys.modules[_NAME] = module  # dataclasses ask for the module of a class
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
    """Code of the user runs: its exceptions become findings at its lines."""
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
    kernel: Kernel, given: Mapping[str, str], seed: int, later: Collection[str] = ()
) -> list[Any]:
    """One value a parameter: arrays and numbers as for any program, constants as Python has.

    Those that are given `later` have None.
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


def _completed(kernel: Kernel, given: Mapping[str, str]) -> dict[str, str]:
    """All arrays, where none is given and annotations say what a program needs to know.

    Numbers of a run are no part of the program: they need not be given.
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


_ANY = 1  # elements along a dimension that has a name: less than any tile takes


def _parameter(p: KernelParameter) -> Parameter:
    """As that of any program; `pto.Global` alone leaves the element type open."""
    elem = Scalar("?", None) if p.dtype is None else scalar_type(p.dtype)
    return Parameter(p.name, Ptr(elem) if p.kind == "array" else elem, None)


def constant(text: str) -> Any:
    """A Python literal, an element type, or else a word."""
    from pto.lang.values.elements import ELEMENTS

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ELEMENTS.get(text, text)
