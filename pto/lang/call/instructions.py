"""Every instruction as a function, made from its row when it is first asked for.

`instructions.tadd` is the function of the row `pto.tadd`; `instructions.pyi` lists them all for
editors and type checkers (`python -m pto.lang.stubs` writes it).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.isa.row.instr import Instr
from pto.lang.call.invoke import docstring, invoke
from pto.lang.call.signature import instructions, python_name


def __getattr__(name: str) -> Callable[..., Any]:
    row = instructions().get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no instruction {name!r}")
    made = _function(row)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(instructions())


def _function(row: Instr) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        return invoke(row, args, named)

    call.__name__ = call.__qualname__ = python_name(row)
    call.__doc__ = docstring(row)
    return call
