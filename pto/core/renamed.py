"""Parameters that have another name now: the older one works for one version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function takes parameters by older names too, given as `old="new"`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            for old in names.keys() & named.keys():
                warn_renamed(f"{old}=", f"{names[old]}=", level=3)
                named[names[old]] = named.pop(old)
            return function(*args, **named)

        return cast("Callable[P, R]", call)

    return decorate


def warn_renamed(old: str, new: str, level: int = 2) -> None:
    """Warn that a name will not be known in the next version."""
    warnings.warn(f"`{old}` is now `{new}`", DeprecationWarning, stacklevel=level)
