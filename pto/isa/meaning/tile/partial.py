"""Two sources, one or both of which cover only part of the destination."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, region, require_arithmetic
from pto.isa.rules.rule import Case


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
