"""Index of the greatest or least element of a row or column, and sums of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.tile import Tile
from pto.isa.meaning.kinds import Axis, Move
from pto.isa.meaning.lanes import Lanes, add, const, select
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, line_error, require_arithmetic
from pto.isa.rules.rule import Case


def search(axis: Axis, greatest: bool) -> Move:
    """The first best element of a row or column; a NaN is returned only if it is the first."""
    by_row = axis == "row"

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        index = element(case, "dst").numpy

        def step(x: Mover, src: Tile, tmp: Tile, value: Tile | None, dst: Tile) -> None:
            rows, cols = src.get_valid()
            some = (rows > 0) & (cols > 0)
            outs = (dst,) if value is None else (dst, value)

            def cell(i: Lanes, j: Lanes) -> Any:
                if by_row:
                    best_and_place = x.best(i, cols, lambda i, k: x.read(src, i, k), greatest)
                else:
                    best_and_place = x.best(j, rows, lambda j, k: x.read(src, k, j), greatest)
                best, number = best_and_place
                number_as_index = number.astype(index)
                return number_as_index if value is None else (number_as_index, best)

            def run() -> None:
                for out in outs:
                    at = 0 if by_row else 1
                    same = src.get_valid()[at] == out.get_valid()[at]
                    x.require(same, lambda out=out: line_error(src, out, axis))
                x.each(rows if by_row else 1, 1 if by_row else cols, cell, *outs)

            x.when(some, run)

        return step

    return Move(make)


def _neighbours(case: Case) -> Callable[..., None]:
    """Sums of neighbours; an odd last element is added to 0, the rest of the valid row is 0.

    Some profiles compute whole pairs only and leave the rest of dst unchanged.
    """
    only_pairs = case.profile.vector.odd_neighbour == "left"

    def run(x: Mover, src: Tile, dst: Tile) -> None:
        rows, cols = dst.get_valid()
        half = (cols + 1) // 2
        x.within(src, rows, cols)

        def pair(i: Lanes, j: Lanes) -> Lanes:
            return add(x.read(src, i, j * 2), x.read(src, i, j * 2 + 1))

        def last(i: Lanes, j: Lanes) -> Lanes:
            even, odd = x.read(src, i, j * 2), j * 2 + 1 < cols
            return add(even, select(odd, x.read(src, i, j * 2 + 1, odd), const(even, 0)))

        if only_pairs:
            x.each(rows, cols // 2, pair, dst)
            return
        pairs, rest = (lambda cell=cell: x.each(rows, half, cell, dst) for cell in (pair, last))
        x.when(cols % 2 == 0, pairs, rest)
        x.fill(dst, np.zeros((), dst.type.dtype.numpy), (0, rows), (half, cols))

    return run


SUM_NEIGHBOURS = Move(_neighbours)
