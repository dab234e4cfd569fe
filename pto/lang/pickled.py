"""Kernels in pickles: the module of the function and the name of the kernel there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from operator import attrgetter
from pickle import PicklingError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel


def reduced(kernel: Kernel[...]) -> tuple[object, ...]:
    """What `pickle` keeps of a kernel, as of a function: where it is found again."""
    module = kernel.function.__module__
    name = _global_name(kernel, module)
    if name is None:
        raise PicklingError(
            f"kernel {kernel.name} cannot be pickled, as functions cannot: it is no global variable"
            f" of its module {module}; define it there, outside of functions"
        )
    return _found_again, (module, name, kernel.profile)


def _found_again(module: str, name: str, profile: str) -> Kernel[...]:
    kernel: Kernel[...] = attrgetter(name)(import_module(module))
    return kernel.on(profile)


def _global_name(kernel: Kernel[...], module: str) -> str | None:
    """The name by which a module, or a class in it, has the kernel."""
    values = vars(sys.modules.get(module, object))
    names = [kernel.function.__qualname__, *values]
    return next((name for name in names if _is_variant(kernel, values, name)), None)


def _is_variant(kernel: Kernel[...], values: Mapping[str, object], name: str) -> bool:
    """True if the value of that name is this kernel, also for another profile."""
    first, *rest = name.split(".")
    variant = values.get(first)
    for attribute in rest:
        variant = getattr(variant, attribute, None)
    if not isinstance(variant, type(kernel)) or variant.function is not kernel.function:
        return False
    return (variant.peer, variant.kind, variant.name) == (kernel.peer, kernel.kind, kernel.name)
