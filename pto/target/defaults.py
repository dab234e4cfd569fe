"""The profile and the chip that are used where neither a program nor its user names one.

A command takes them from `[tool.pto]` in `pyproject.toml` (`cli/settings.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Defaults:
    """The values in use; the fields begin with those of the package."""

    text: str = "a2a3"  # of programs in text and C++; PTOAS: --pto-arch is a3 unless given
    python: str = "a5"  # of kernels in Python and of eager mode
    device: str | None = None  # narrows programs of its profile


DEFAULTS = Defaults()
