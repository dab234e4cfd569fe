"""The edition of this package, a part of the names of cached results."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pto import __version__


@cache
def edition() -> str:
    """The version of the package; it changes with every changed file."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return f"{__version__} {[(f.stat().st_mtime_ns, f.stat().st_size) for f in files]}"
