"""The parameters of a kernel, from the annotations of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args, get_origin

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.lang.call.place import KernelError, located, mistake
from pto.lang.values.scalars import Scalar
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
    place = Loc(code.co_filename, code.co_firstlineno)
    try:
        hints = inspect.get_annotations(function, eval_str=True)
        names = inspect.signature(function).parameters
        found = [_parameter(name, hints.get(name)) for name in names]
        _require_own_names(found)
    except PtoError as error:
        raise located(error, place) from None
    except Exception as error:  # an annotation is any expression of the user's
        message = f"an annotation of {function.__name__}: {error}"
        raise KernelError(Diagnostic("PTO-U210", message, place)) from None
    return found


def _require_own_names(found: list[Parameter]) -> None:
    """Raise if a named size has the name of another parameter: both are program parameters."""
    taken = {p.name: p.kind for p in found if p.kind != "constant"}
    for p in found:
        for axis, size in enumerate(p.sizes or ()):
            if isinstance(size, str) and size in taken:
                what = "array" if taken[size] == "array" else "number"
                raise fail(
                    "PTO-U210",
                    f'{p.name}: the size "{size}" has the name of a parameter, the {what} {size}',
                    help=f"rename it, or remove the parameter: {p.name}.shape[{axis}] is the size",
                )


def _parameter(name: str, hint: object) -> Parameter:
    if isinstance(hint, DType):
        return Parameter(name, "scalar", hint)
    origin = get_origin(hint) or hint
    kinds = [a for a in get_args(hint) if isinstance(a, DType)]
    if origin is Global:
        return Parameter(name, "array", kinds[0] if kinds else None, _sizes(name, hint))
    if origin is Scalar:
        if not kinds:
            raise fail(
                "PTO-U210", f"{name}: pto.Scalar needs an element type, as pto.Scalar[pto.i32]"
            )
        return Parameter(name, "scalar", kinds[0])
    return Parameter(name, "constant")


def _sizes(name: str, hint: object) -> tuple[int | str | None, ...] | None:
    """Sizes of `pto.Global[pto.f32, "m", 128, None]`; `Literal["m"]` is accepted too."""
    parts = get_args(hint)[1:]
    sizes = tuple(get_args(each)[0] if get_origin(each) is Literal else each for each in parts)
    for each in sizes:
        is_name = isinstance(each, str) and each.isidentifier()
        if not is_name and not isinstance(each, int | None):
            raise fail(
                "PTO-U210",
                f"{name}: a size in an annotation is a name, a number or None, got {each!r}",
                help='write pto.Global[pto.f32, "m", "n"]',
            )
    return sizes or None


def unhashable(kernel: str, parameters: list[Parameter], values: Sequence[object]) -> KernelError:
    """The error for an unhashable constant, usually an array with a missing annotation."""
    given = zip(parameters, values, strict=True)
    constants = ((p.name, v) for p, v in given if p.kind == "constant")
    name, value = next((n, v) for n, v in constants if not _is_hashable(v))
    what = f"a {type(value).__name__}, and its annotation does not say so"
    return mistake(
        "PTO-U210",
        f"{kernel}: {name} is {what}, so it would be a constant",
        help=f"write {name}: pto.Global[pto.f32] for an array; constants must be hashable",
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def require_function(given: object) -> None:
    """Raise unless `given` is a plain Python function, not a generator or coroutine."""
    resumes = inspect.iscoroutinefunction(given) or inspect.isgeneratorfunction(given)
    if (inspect.isfunction(given) or inspect.ismethod(given)) and not resumes:
        return
    what = "one that yields or awaits" if resumes else f"{type(given).__name__} {given!r}"
    raise mistake("PTO-U223", f"a kernel is made of a plain function, not {what}")


def shaped(param: Parameter, value: object) -> object:
    """An uninitialised array for a shape given in place of an array; its memory is not used."""
    if param.kind != "array" or param.dtype is None or not isinstance(value, tuple):
        return value
    return np.empty(cast(tuple[int, ...], value), param.dtype.numpy)
