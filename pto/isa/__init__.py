"""The instruction set: every instruction as data (`isa/table.py`), and as a function, `isa.tadd`.

Kernels write `from pto import isa` and call instructions by name. The functions belong to the layer
of the language, which `pto` provides here; the rows below know nothing of it.
"""

from __future__ import annotations as _annotations

from collections.abc import Callable as _Callable
from types import ModuleType as _ModuleType
from typing import Any as _Any

_functions: _Callable[[], _ModuleType] | None = None


def provide(functions: _Callable[[], _ModuleType]) -> None:
    """Say where the functions of the instructions come from; loaded when one is first used."""
    global _functions
    _functions = functions


def __getattr__(name: str) -> _Any:
    if _functions is not None and not name.startswith("_"):
        functions = _functions()
        if name in dir(functions):
            function = globals()[name] = getattr(functions, name)
            return function
        from pto.core.errors import nearest

        advice = nearest(name, dir(functions)) or "`pto isa` lists the instructions"
        raise AttributeError(f"pto.isa has no instruction {name!r}; {advice}", name=name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {name for name in globals() if not name.startswith("_") or name.startswith("__")}
    return sorted(names | set(dir(_functions()) if _functions is not None else ()))
