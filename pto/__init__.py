"""A complete PTO machine in Python: read, check, run and watch tile-accelerator programs.

Names are loaded when they are first used, so `import pto` costs nothing: those of `lang/names.py`,
every instruction of the ISA as a function (`pto.tadd`, `pto.vlds`), every element type (`pto.f32`).
`__init__.pyi` declares them for editors; `python -m pto.lang.stubs` writes it.
"""

from __future__ import annotations as _annotations

import sys as _sys
from importlib import import_module as _import_module
from typing import Any as _Any

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
    """An element type or an instruction."""
    for home in ("pto.lang.values.elements", "pto.lang.call.instructions"):
        listed = _import_module(home)
        if name in dir(listed):
            return getattr(listed, name)
    from pto.core.errors import nearest

    advice = nearest(name, __dir__()) or "`pto isa` lists the instructions"
    told = f"module 'pto' has no attribute {name!r}; {advice}"
    raise AttributeError(told, name=name, obj=_sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*filter(_is_dunder, globals()), "__all__", *_names.known()})


def _is_dunder(name: str) -> bool:
    return name.startswith("__")
