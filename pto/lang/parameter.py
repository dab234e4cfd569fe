"""The parameters of a kernel, from the annotations of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ForwardRef, Literal, TypeVar, cast, get_args, get_origin

import numpy as np

from pto.core.dtypes import DType, dtype
from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.core.reserved import reserved
from pto.ir.builder import scalar_type
from pto.lang.call.place import KernelError, located, mistake
from pto.lang.values.scalars import Scalar, limits_of
from pto.lang.values.views import Global


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the function; `kind` is array, scalar or constant."""

    name: str
    kind: str
    dtype: DType | None = None
    sizes: tuple[int | str | None, ...] | None = None  # of an array: by number, by name, any

    def __str__(self) -> str:
        """As an annotation spells it."""
        word = {"array": "Global", "scalar": "Scalar"}.get(self.kind)
        if word is None:
            return self.kind
        parts = [str(self.dtype)] if self.dtype else []
        parts += ["any" if n is None else repr(n) for n in self.sizes or ()]
        return f"{word}[{', '.join(parts)}]" if parts else word


def parameters_of(function: Callable[..., object]) -> list[Parameter]:
    """The parameters, from their annotations; errors are located at the function definition."""
    code = function.__code__
    loc = Loc(code.co_filename, code.co_firstlineno)
    try:
        hints = inspect.get_annotations(function, eval_str=True)
        names = inspect.signature(function).parameters
        params = [_parameter(name, hints.get(name)) for name in names]
        _require_own_names(params)
    except PtoError as error:
        raise located(error, loc) from None
    except Exception as error:  # an annotation is any expression of the user's
        message = f"an annotation of {function.__name__}: {error}"
        raise KernelError(Diagnostic("PTO-U210", message, loc)) from None
    return params


def _require_own_names(params: list[Parameter]) -> None:
    """Raise if a named size has the name of another parameter: both are program parameters."""
    taken = {p.name: p.kind for p in params if p.kind != "constant"}
    for p in params:
        for axis, size in enumerate(p.sizes or ()):
            if isinstance(size, str) and size in taken:
                kind = "array" if taken[size] == "array" else "number"
                raise fail(
                    "PTO-U210",
                    f'{p.name}: the size "{size}" has the name of a parameter, the {kind} {size}',
                    help=f"rename it, or remove the parameter: {p.name}.shape[{axis}] is the size",
                )


def _parameter(name: str, hint: object) -> Parameter:
    if isinstance(hint, DType):
        return Parameter(name, "scalar", hint)
    origin = get_origin(hint) or hint
    if origin is Global:
        return Parameter(name, "array", _element(name, hint), _sizes(name, hint))
    if origin is Scalar:
        kind = _element(name, hint)
        if kind is None:
            raise fail(
                "PTO-U210", f"{name}: pto.Scalar needs an element type, as pto.Scalar[pto.i32]"
            )
        return Parameter(name, "scalar", kind)
    return Parameter(name, "constant")


def _element(name: str, hint: object) -> DType | None:
    """The element type of `pto.Global[pto.f32]`, `[np.float32]` or `["f32"]`; None for any."""
    annotated: object = next(iter(get_args(hint)), Any)
    if annotated is Any or isinstance(annotated, TypeVar):
        return None
    if isinstance(annotated, ForwardRef):
        annotated = annotated.__forward_arg__
    if isinstance(annotated, type) and np.generic in annotated.__mro__:
        annotated = np.dtype(cast("type[np.generic]", annotated))
    try:
        if isinstance(annotated, str | DType | np.dtype):
            return dtype(cast("str | DType | np.dtype[np.generic]", annotated))
    except PtoError as error:
        (diagnostic,) = error.diagnostics
        raise fail("PTO-U210", f"{name}: {diagnostic.message}", help=diagnostic.help) from None
    spelled = annotated.__name__ if isinstance(annotated, type) else repr(annotated)
    raise fail(
        "PTO-U210",
        f"{name}: an element type is one of pto or NumPy, got {spelled}",
        help="write pto.f32, pto.i32, ..; pto.Global alone takes arrays of any type",
    )


def _sizes(name: str, hint: object) -> tuple[int | str | None, ...] | None:
    """Sizes of `pto.Global[pto.f32, "m", 128, None]`; `Literal["m"]` is accepted too."""
    parts = get_args(hint)[1:]
    sizes = tuple(get_args(size)[0] if get_origin(size) is Literal else size for size in parts)
    for size in sizes:
        is_name = isinstance(size, str) and size.isidentifier()
        if not is_name and not isinstance(size, int | None):
            raise fail(
                "PTO-U210",
                f"{name}: a size in an annotation is a name, a number or None, got {size!r}",
                help='write pto.Global[pto.f32, "m", "n"]',
            )
    return sizes or None


def unhashable(kernel: str, parameters: list[Parameter], values: Sequence[object]) -> KernelError:
    """The error for an unhashable constant, usually an array with a missing annotation."""
    pairs = zip(parameters, values, strict=True)
    constants = ((p.name, v) for p, v in pairs if p.kind == "constant")
    name, value = next((n, v) for n, v in constants if not _is_hashable(v))
    complaint = f"a {type(value).__name__}, and its annotation does not say so"
    return mistake(
        "PTO-U210",
        f"{kernel}: {name} is {complaint}, so it would be a constant",
        help=f"write {name}: pto.Global[pto.f32] for an array; constants must be hashable",
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def require_function(function: object) -> None:
    """Raise unless `function` is a plain Python function, not a generator or coroutine."""
    resumes = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
    if (inspect.isfunction(function) or inspect.ismethod(function)) and not resumes:
        _require_no_method(function)
        return
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        help = "write @staticmethod above @pto.kernel"
        raise mistake(
            "PTO-U223", f"a kernel is made of a plain function, not of a {kind}", help=help
        )
    kind_of_function = (
        "one that yields or awaits" if resumes else f"{type(function).__name__} {function!r}"
    )
    raise mistake("PTO-U223", f"a kernel is made of a plain function, not {kind_of_function}")


def _require_no_method(function: object) -> None:
    """Raise for a function of a class body that takes the object."""
    if not inspect.isfunction(function) or not function.__code__.co_argcount:
        return
    owner, _, name = function.__qualname__.rpartition(".")
    first = function.__code__.co_varnames[0]
    if first in ("self", "cls") and owner and not owner.endswith("<locals>"):
        raise mistake(
            "PTO-U223",
            f"a kernel is a function, and {name} is a method: it takes {first}",
            help=f"write @staticmethod above @pto.kernel and leave {first} out; or make a kernel of"
            f" the method of one object: pto.kernel({owner.rpartition('.')[2].lower()}.{name})",
        )


# Parameters that are no options of a call, and what to write.
_INSTEAD = {
    "profile": '{}.on("a2a3") is this kernel for another profile',
    "device": "{}.time(..., device=) gives the time on a chip; a run depends on the profile alone",
    "sanitize": "{}.sanitize(...) runs it under the sanitizer; PTO_SANITIZE=1 makes every run do",
}


def bound(
    kernel: str,
    signature: inspect.Signature,
    parameters: Sequence[Parameter],
    args: Sequence[object],
    named: Mapping[str, object],
) -> list[object]:
    """The arguments of a call with names or defaults, one value per parameter."""
    try:
        arguments = signature.bind(*args, **named)
    except TypeError as error:
        listed = ", ".join(f"{p.name}: {p}" for p in parameters)
        word = next((word for word in _INSTEAD if word in named), None)
        help = None if word is None else _INSTEAD[word].format(kernel)
        raise mistake("PTO-U210", f"{kernel}({listed}): {error}", help=help) from None
    arguments.apply_defaults()
    return list(arguments.arguments.values())


Range = tuple[int, int, int]  # where a parameter is among all, its least and greatest number


def ranges_of(parameters: Sequence[Parameter]) -> list[Range]:
    """The ranges of numbers that are integers. A program takes the bits of an i32 as u32 too."""
    kinds = ((at, p.dtype) for at, p in enumerate(parameters) if p.kind == "scalar")
    return [(at, *limits_of(scalar_type(kind))) for at, kind in kinds if kind and not kind.is_float]


def require_range(
    kernel: str, parameters: Sequence[Parameter], ranges: Sequence[Range], values: Sequence[object]
) -> None:
    """Raise for a number that its parameter cannot hold. Another value that is no
    integer is refused when it is passed."""
    for at, low, high in ranges:
        value = values[at]
        if isinstance(value, int | float | np.number) and (value < low or value > high):
            param = parameters[at]
            message = f"{kernel}: {param.name} is {param.dtype}, which goes from {low} to {high}"
            help = "annotate a type that holds it, as pto.Scalar[pto.i64] or [pto.u32]"
            raise mistake("PTO-U033", f"{message}, and cannot be {value}", help=help)


def shaped(param: Parameter, value: object) -> object:
    """An uninitialised array for a shape given in place of an array; its memory is not used."""
    if param.kind != "array" or param.dtype is None or not isinstance(value, tuple):
        return value
    return reserved(cast(tuple[int, ...], value), param.dtype.numpy)
