"""Levels of the runtime's log."""

import logging

_TIMING = 25  # between information and warnings


def parse_level(level: int | str) -> int:
    """The number of a level of Python's logging."""
    if isinstance(level, int):
        return level
    return {**logging.getLevelNamesMapping(), "TIMING": _TIMING, "NULL": 100}[level.upper()]
