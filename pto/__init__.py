"""A complete PTO machine in Python: read, check, run and watch tile-accelerator programs.

Names are loaded when they are first used, so `import pto` costs nothing: those of `lang/names.py`
and every element type (`pto.f32`). Instructions are functions of `pto.isa`: `isa.tadd`, `isa.vlds`.
`__init__.pyi` declares them for editors; `python -m pto.lang.stubs` writes it.
"""

from __future__ import annotations as _annotations

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from pto import isa as _isa
from pto.lang import names as _names

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return _names.exported()
    if name in _names.MODULES:
        return _import_module(f"pto.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module 'pto' has no attribute {name!r}")
    found = globals()[name] = _names.find(name) or _generated(name)
    return found


def _generated(name: str) -> _Any:
    """An element type."""
    elements = _import_module("pto.lang.values.elements")
    if name in dir(elements):
        return getattr(elements, name)
    help = _import_module("pto.lang.call.misused").advice(name)
    message = f"module 'pto' has no attribute {name!r}" + (f"; {help}" if help else "")
    raise AttributeError(message, name=name, obj=_sys.modules[__name__])


def _instructions() -> _ModuleType:
    return _import_module("pto.lang.call.instructions")


_isa.provide(_instructions)


def __dir__() -> list[str]:
    return sorted({*filter(_is_dunder, globals()), "__all__", *_names.known()})


def _is_dunder(name: str) -> bool:
    return name.startswith("__")
