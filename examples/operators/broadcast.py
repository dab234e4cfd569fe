"""Operands that are broadcast, as matrices, rows, columns and numbers beside the result."""

from __future__ import annotations

from itertools import groupby
from math import prod
from typing import Any

import pto

Shape = tuple[int, ...]


def canonical(first: Shape, second: Shape) -> tuple[Shape, Shape, Shape]:
    """The shapes of two operands and of the result with three axes: neighbouring axes that are
    broadcast alike become one."""
    rank = max(len(first), len(second))
    a, b = ((1,) * (rank - len(s)) + tuple(s) for s in (first, second))
    axes = [(x, y) for x, y in zip(a, b, strict=True) if (x, y) != (1, 1)]
    runs = [[*run] for _, run in groupby(axes, key=lambda pair: (pair[0] == 1, pair[1] == 1))]
    merged = [(prod(x for x, _ in run), prod(y for _, y in run)) for run in runs]
    if len(merged) > 3:
        raise ValueError(f"{first} and {second}: more than three groups of axes")
    merged = [(1, 1)] * (3 - len(merged)) + merged
    one, other = (tuple(pair[n] for pair in merged) for n in (0, 1))
    return one, other, tuple(max(pair) for pair in merged)


def part(x: pto.Global[Any], rows: int, cols: int) -> pto.Tile:
    """The part of an operand that belongs to the tile of this block: where an axis has size one,
    that of all blocks."""
    o, i, j = pto.block_idx(2), pto.block_idx(1) * rows, pto.block_idx(0) * cols
    starts = (n if size > 1 else 0 for n, size in zip((o, i, j), x.shape, strict=True))
    o, i, j = starts
    return pto.load(x[o, i:, j:], min(rows, x.shape[1]), min(cols, x.shape[2]))
