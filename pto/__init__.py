"""A complete PTO machine in Python: read, check, run and watch tile-accelerator programs.

Names are loaded when they are first used, so `import pto` costs nothing: those of `lang/names.py`,
every instruction of the ISA as a function (`pto.tadd`, `pto.vlds`), every element type (`pto.f32`).
`__init__.pyi` tells them to editors; `python -m pto.lang.stubs` writes it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from pto.lang.names import MODULES, PUBLIC, RENAMED

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"pto.{name}")
    home, attribute = RENAMED.get(name) or (PUBLIC.get(name), name)
    if home is None and name.startswith("_"):
        raise AttributeError(f"module 'pto' has no attribute {name!r}")
    found = getattr(import_module(home), attribute) if home else _generated(name)
    globals()[name] = found
    return found


def _generated(name: str) -> Any:
    """An element type or an instruction."""
    for home in ("pto.lang.values.elements", "pto.lang.call.instructions"):
        found = getattr(import_module(home), name, None)
        if found is not None:
            return found
    from pto.core.errors import nearest

    advice = nearest(name, __dir__()) or "`pto isa` lists the instructions"
    told = f"module 'pto' has no attribute {name!r}; {advice}"
    raise AttributeError(told, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    from pto.lang.call import instructions
    from pto.lang.values import elements

    return sorted({*globals(), *MODULES, *PUBLIC, *RENAMED, *elements.ELEMENTS, *dir(instructions)})
