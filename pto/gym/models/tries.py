"""Variants of settings that upstream leaves open, tried one after the other until one fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.errors import PtoError
from pto.gym.models.rules import Rules

# Sizes that are arguments: the first with which a kernel stays inside its arrays and tiles.
EXTENTS = (128, 64, 32, 16, 8, 4, 1, 256)
# Integers of arrays, which are indices and divisors: none, one, the last of a block of 128, and one
# token in four that is valid.
_INTEGERS = ((0,), (1,), (127,), (-1, -1, -1, 0))
# The manual allows regions of a source and its destination to differ, as headers do in release.
_EDITIONS = ("current", "manual")
# Codes of findings of a run with views, tiles and arrays that do not fit its arguments.
_DO_NOT_FIT = frozenset(
    f"PTO-{code}"
    for code in ("M001", "M006", "M050", "M161", "S021", "S050", "S062", "S132", "S133", "V001")
)


@dataclass(frozen=True, slots=True)
class Try:
    """One way to launch a kernel."""

    rules: Rules
    extent: int = EXTENTS[0]
    integers: tuple[int, ...] = _INTEGERS[0]
    edition: str = _EDITIONS[0]


def tries(rules: Rules) -> Iterator[Try]:
    """The ways to launch a kernel, the one that upstream's rules mean first."""
    for integers in _INTEGERS:
        for edition in _EDITIONS:
            for variant in rules.tried():
                for extent in EXTENTS:
                    yield Try(variant, extent, integers, edition)


def may_fit_otherwise(error: PtoError) -> bool:
    return any(diagnostic.code in _DO_NOT_FIT for diagnostic in error.diagnostics)
