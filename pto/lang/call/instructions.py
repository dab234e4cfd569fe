"""Every instruction as a function, made from its row on first use.

`pto.isa` shows them as its own: `isa.tadd` is the function of the row `pto.tadd`. For editors and
type checkers `isa/__init__.pyi` lists them all (`python -m pto.lang.stubs` writes it).
"""

from __future__ import annotations

from collections.abc import Callable

from pto.isa.row.instr import Instr
from pto.lang.call.invoke import docstring, invoke
from pto.lang.call.signature import instructions, python_name, signature


def __getattr__(name: str) -> Callable[..., object]:
    row = instructions().get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no instruction {name!r}")
    function = _function(row)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(instructions())


def _function(row: Instr) -> Callable[..., object]:
    def call(*args: object, **named: object) -> object:
        return invoke(row, args, named)

    call.__name__ = call.__qualname__ = python_name(row)
    call.__doc__ = docstring(row)
    call.__signature__ = signature(row)  # pyright: ignore[reportFunctionMemberAccess]
    return call
