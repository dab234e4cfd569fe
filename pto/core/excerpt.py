"""Which rows or columns of a large table are shown."""

from __future__ import annotations

from typing import Final

GAP: Final = -1  # stands for those that are left out


def excerpt(size: int, edge: int, most: int) -> list[int]:
    """The first of so many, both sides of the edge of the valid region, the last; all if few."""
    if size <= most:
        return list(range(size))
    wanted = sorted({*range(most - 3), edge - 1, edge, size - 1} & set(range(size)))
    pairs = zip([-1, *wanted], wanted, strict=False)
    return [n for before, here in pairs for n in ((GAP, here) if here > before + 1 else (here,))]
