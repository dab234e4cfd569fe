"""`@pto.kernel` and `pto.pair`: functions become kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, overload

from pto.lang.call.place import mistake
from pto.lang.kernel import Kernel
from pto.target.defaults import DEFAULTS

P = ParamSpec("P")


@overload
def kernel(function: Callable[P, object], /) -> Kernel[P]: ...
@overload
def kernel(
    *,
    profile: str | None = ...,
    name: str | None = ...,
    kind: str | None = ...,
    debug: bool = ...,
    optimize: bool = ...,
) -> Callable[[Callable[P, object]], Kernel[P]]: ...
def kernel(
    function: Callable[P, object] | None = None,
    /,
    *,
    profile: str | None = None,
    name: str | None = None,
    kind: str | None = None,
    debug: bool = True,
    optimize: bool = False,
) -> Kernel[P] | Callable[[Callable[P, object]], Kernel[P]]:
    """`@pto.kernel(profile="a5")`: make a kernel of a function.

    `kind` is the side of a core that runs it, `cube` or `vector`; by default both run their parts.
    `debug=False` (or PTO_DEBUG=0) removes pto.assert_ and pto.print from the program.
    `optimize=True` times and exports the fastest schedule, as `kernel.optimize` finds it.
    """
    if kind not in (None, "cube", "vector"):
        raise mistake("PTO-U215", f"a kernel is cube or vector, not {kind!r}")
    profile = profile or DEFAULTS.python
    if function is not None:
        return Kernel(function, profile, name, kind=kind, debug=debug, optimized=optimize)
    return lambda inner: Kernel(inner, profile, name, kind=kind, debug=debug, optimized=optimize)


def pair(
    cube: Callable[P, object],
    vector: Callable[P, object],
    *,
    profile: str | None = None,
    name: str | None = None,
) -> Kernel[P]:
    """One kernel from two functions, for the cube and the vector side, connected by queues."""
    same = inspect.signature(cube).parameters.keys() == inspect.signature(vector).parameters.keys()
    if not same:
        raise mistake(
            "PTO-U215",
            f"{cube.__name__} and {vector.__name__} form one kernel and need equal parameters",
        )
    return Kernel(cube, profile or DEFAULTS.python, name or cube.__name__, kind="cube", peer=vector)
