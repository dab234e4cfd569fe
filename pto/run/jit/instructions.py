"""Brings every emitter into the table: each file of this package that has one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pto.run.jit as package

_OTHERS = ("cache", "compiler", "instructions", "native", "piece", "unit")


def load() -> None:
    for module in iter_modules(package.__path__):
        if module.name not in _OTHERS:
            import_module(f"{package.__name__}.{module.name}")
