"""Where the greatest or least element of a row or column is, and sums of neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Axis, Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.regions import (
    element,
    put,
    region,
    require_arithmetic,
    require_line,
)
from pto.isa.rules import Case


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


# ---- two sources, one of which may cover only part of the destination


def partial(fn: Callable[[Lanes, Lanes], Lanes], outside: str = "zero") -> Do:
    """fn where both sources are valid, the one that is valid elsewhere.

    Where neither is: 0, or the lowest or greatest finite element, from which PTO-Gym's tpartmax
    and tpartmin start.
    """

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        dtype = element(case, "dst")
        rest = np.asarray({"zero": 0, "lowest": dtype.min, "greatest": dtype.max}[outside])
        rest = rest.astype(dtype.numpy)

        def step(core: Machine, src0: Tile, src1: Tile, dst: Tile) -> None:
            rows, cols = dst.get_valid()
            if rows == 0 or cols == 0:
                return
            (r0, c0), (r1, c1) = _parts(src0, src1, dst)
            a, b = region(src0, r0, c0), region(src1, r1, c1)
            if (r0, c0) == (r1, c1) == (rows, cols):
                put(dst, rows, cols, fn(a, b))
                return
            found = np.full((rows, cols), rest)
            found[:r0, :c0] = a
            found[:r1, :c1] = b
            r, c = min(r0, r1), min(c0, c1)
            found[:r, :c] = fn(a[:r, :c], b[:r, :c])
            put(dst, rows, cols, found)

        return step

    return Do(make)


def _parts(src0: Tile, src1: Tile, dst: Tile) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, cols = dst.get_valid()
    for src in (src0, src1):
        height, width = src.get_valid()
        if height > rows or width > cols:
            raise fail(
                "PTO-S053",
                f"a source has {height}x{width} valid elements, more than the {rows}x{cols} of dst",
            )
    return src0.get_valid(), src1.get_valid()


def partial_search(better: Callable[[Lanes, Lanes], Lanes]) -> Do:
    """The pair of src0 where its value is strictly better, else src1's; 0 where neither has one."""

    def step(core: Machine, a: Tile, b: Tile, i: Tile, j: Tile, dst: Tile, index: Tile) -> None:
        rows, cols = dst.get_valid()
        if rows == 0 or cols == 0:
            return
        (r0, c0), (r1, c1) = _parts(a, b, dst)
        r, c = min(r0, r1), min(c0, c1)
        first = better(region(a, r, c), region(b, r, c))
        results: list[Lanes] = []
        for src0, src1 in ((a, b), (i, j)):
            x, y = region(src0, r0, c0), region(src1, r1, c1)
            found = np.zeros((rows, cols), x.dtype)
            found[:r0, :c0] = x
            found[:r1, :c1] = y
            found[:r, :c] = lanes.select(first, x[:r, :c], y[:r, :c])
            results.append(found)
        for tile, found in zip((dst, index), results, strict=True):
            put(tile, rows, cols, found)

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        return step

    return Do(make)
