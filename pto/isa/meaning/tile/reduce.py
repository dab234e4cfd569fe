"""Where the greatest or least element of a row or column is, and sums of neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Axis, Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, region, require_arithmetic, require_line
from pto.isa.rules.rule import Case


def search(axis: Axis, greatest: bool) -> Do:
    """Strictly better replaces: the first of equal elements, and NaN only as the first of all."""
    by_row = axis == "row"

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        index = element(case, "dst").numpy

        def step(core: Machine, src: Tile, tmp: Tile, value: Tile | None, dst: Tile) -> None:
            rows, cols = src.get_valid()
            if rows == 0 or cols == 0:
                return
            for out in (dst,) if value is None else (value, dst):
                require_line(src, out, axis)
            lines = region(src, rows, cols)
            lines = lines if by_row else lines.T
            found = _best(lines, greatest)
            shape = (rows, 1) if by_row else (1, cols)
            best = None if value is None else _at(lines, found).reshape(shape)
            put(dst, *shape, found.astype(index).reshape(shape))
            if value is not None and best is not None:
                put(value, *shape, best)

        return step

    return Do(make)


def _best(lines: Lanes, greatest: bool) -> Lanes:
    nan = lines != lines
    if not np.count_nonzero(nan):
        return _arg(lines, greatest)
    worst = np.float64(-np.inf if greatest else np.inf)
    found = _arg(np.where(nan, worst, lanes.widen(lines)), greatest)
    return np.where(nan[:, 0], 0, found)


def _arg(lines: Lanes, greatest: bool) -> Lanes:
    return lines.argmax(axis=1) if greatest else lines.argmin(axis=1)


def _at(lines: Lanes, columns: Lanes) -> Lanes:
    return lines[np.arange(len(lines)), columns]


def _sum_neighbours(core: Machine, src: Tile, dst: Tile) -> None:
    """An odd last element is added to 0; the rest of the valid row is 0."""
    rows, cols = dst.get_valid()
    if rows == 0 or cols == 0:
        return
    values, half = region(src, rows, cols), cols // 2
    found = np.zeros((rows, cols), values.dtype)
    found[:, :half] = lanes.add(values[:, 0 : 2 * half : 2], values[:, 1 : 2 * half : 2])
    if cols % 2:
        found[:, half] = lanes.add(values[:, -1], lanes.const(values, 0))
    put(dst, rows, cols, found)


SUM_NEIGHBOURS = Do(lambda case: _sum_neighbours)
