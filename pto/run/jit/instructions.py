"""Brings every emitter into the table: each file of this package that has one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Literal

import pto.run.jit as package
from pto.isa.instr import Instr
from pto.isa.meaning.kinds import CONTROL
from pto.run.jit.emit import EMITTERS, KINDS, STRUCTURES

_OTHERS = ("cache", "compiler", "instructions", "native", "piece", "unit")


def load() -> None:
    for module in iter_modules(package.__path__):
        if module.name not in _OTHERS:
            import_module(f"{package.__name__}.{module.name}")


def compiled_as(row: Instr) -> Literal["meaning", "structure", "emitter"] | None:
    """How a row is compiled: from its meaning, as control flow, by an emitter of its own."""
    load()
    if row.body is CONTROL:
        return "structure" if row.name in STRUCTURES else None
    if id(row.body) in EMITTERS:
        return "emitter"
    return "meaning" if type(row.body) in KINDS else None
