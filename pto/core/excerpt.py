"""Which rows or columns of a large table are shown."""

from __future__ import annotations

from typing import Final

GAP: Final = -1  # marks omitted indices


def excerpt(size: int, edge: int, most: int) -> list[int]:
    """Indices to show out of `size`: all if at most `most`; else the first ones, those on both
    sides of `edge` (the end of the valid region) and the last, with GAP between."""
    if size <= most:
        return list(range(size))
    wanted = sorted({*range(most - 3), edge - 1, edge, size - 1} & set(range(size)))
    pairs = zip([-1, *wanted], wanted, strict=False)
    return [n for before, here in pairs for n in ((GAP, here) if here > before + 1 else (here,))]
