"""Kernels of a Python file, and their arguments from text.

The file is executed to find its kernels, with the user's rights; `__name__` is not `"__main__"` in
it, and its output goes to standard error.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache
from inspect import Parameter as Declared
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pto.core.errors import Loc, PtoError, fail, nearest
from pto.ir.builder import scalar_type
from pto.ir.text.parser import read_source
from pto.isa.row.types import Ptr, Scalar
from pto.lang.raised import raised
from pto.run.launch.arguments import LaunchParameter, build, require_names

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel
    from pto.lang.parameter import Parameter as KernelParameter
    from pto.lang.tune import Autotuned

PYTHON = re.compile(r"(.+\.py)(?::(\w+))?")  # a file, and the name of a kernel in it
_NAME = "__pto__"  # module name of an executed Python file


# ---- from a file to a kernel


def find_kernel(file: str, entry: str | None = None) -> Kernel[...]:
    """The kernel named by `k.py:name` or `--entry name`, or the only kernel of the file."""
    from pto.lang.kernel import Kernel

    tunable = find_tunable(file, entry)
    return tunable if isinstance(tunable, Kernel) else tunable.kernel


def find_tunable(file: str, entry: str | None = None) -> Kernel[...] | Autotuned:
    """The same; a kernel with `@pto.autotune` is returned with its configurations."""
    match = PYTHON.fullmatch(file)
    if match is None:
        raise RuntimeError(f"{file} is no Python file")
    kernels = dict(kernels_of(executed(Path(match[1]))))
    name = match[2] or entry
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    listed = ", ".join(kernels)
    if not kernels:
        raise fail("PTO-U030", f"{match[1]} has no kernel", help="define one with @pto.kernel")
    if name is None:
        first = f"{match[1]}:{next(iter(kernels))}"
        message = f"which kernel is to be taken? {match[1]} has {listed}"
        raise fail("PTO-U031", message, help=f"name it: {first}")
    if name not in kernels:
        message = f"{match[1]} has no kernel {name}; it has {listed}"
        raise fail("PTO-U030", message, help=nearest(name, kernels))
    return kernels[name]


def kernels_of(module: ModuleType) -> Iterator[tuple[str, Kernel[...] | Autotuned]]:
    """Every kernel of a module by name, including imported ones."""
    from pto.lang.kernel import Kernel
    from pto.lang.tune import Autotuned

    listed: set[int] = set()
    for name, value in vars(module).items():
        if isinstance(value, Kernel | Autotuned) and id(value) not in listed:
            listed.add(id(value))
            yield name, value


def kernel_names(file: str) -> list[str]:
    """The names of all kernels of a Python file."""
    return [name for name, _ in kernels_of(executed(Path(file)))]


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
        code = compile(text, str(path), "exec")
    except (SyntaxError, ValueError) as error:  # ValueError: a zero byte
        loc = Loc(str(path), getattr(error, "lineno", 1) or 1, getattr(error, "offset", 1) or 1)
        reason = getattr(error, "msg", error)
        raise fail("PTO-U281", f"this is not Python: {reason}", loc=loc) from None
    with redirect_stdout(sys.stderr), users_code():
        exec(code, vars(module))
    return module


@contextmanager
def users_code() -> Generator[None]:
    """A context for user code: its exceptions become findings at its lines."""
    try:
        yield
    except PtoError:
        raise
    except (Exception, SystemExit) as error:
        diagnostic = raised(error)
        if diagnostic.code != "PTO-U281":  # a defect: main shows it
            raise
        raise PtoError(diagnostic) from error


# ---- from text to arguments


def kernel_values(
    kernel: Kernel[...], texts: Mapping[str, str], seed: int, later: Collection[str] = ()
) -> list[Any]:
    """One value per parameter: arrays and numbers as for any program, constants as Python values.

    Parameters in `later` are None.
    """
    declared = signature(kernel.function).parameters.values()
    values = {p.name: p.default for p in declared if p.default is not Declared.empty}
    values |= dict.fromkeys(later)
    require_names({p.name: f"{p.name}: {p}" for p in kernel.parameters}, texts, values)
    chosen = [p for p in kernel.parameters if p.name in texts]
    values |= {p.name: constant(texts[p.name]) for p in chosen if p.kind == "constant"}
    params = [_parameter(p) for p in chosen if p.kind != "constant"]
    built = build(params, {p.name: texts[p.name] for p in params}, seed)
    values |= {p.name: value for p, value in zip(params, built, strict=True)}
    return [values[p.name] for p in kernel.parameters]


def completed(kernel: Kernel[...], texts: Mapping[str, str]) -> dict[str, str]:
    """The given values; if there are none, arrays from the annotations of the kernel.

    Run-time numbers are not part of the program and need not be given.
    """
    numbers = {p.name: "0" for p in kernel.parameters if p.kind == "scalar"}
    texts = {**numbers, **texts}
    if any(p.kind == "array" and p.name in texts for p in kernel.parameters):
        return texts
    sized = [p for p in kernel.parameters if p.dtype and p.sizes]
    arrays = {
        p.name: f"zeros:{'x'.join(str(_ANY if isinstance(n, str) else n) for n in p.sizes or ())}"
        for p in sized
        if None not in (p.sizes or ())
    }
    return {**texts, **arrays}


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
