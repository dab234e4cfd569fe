"""Brings every emitter into the table."""

from __future__ import annotations

from importlib import import_module

_FILES = ("control", "scalars", "registers", "vector_memory", "places", "tile_lanes", "tile_folds")


def load() -> None:
    for name in _FILES:
        import_module(f"pto.run.jit.{name}")
