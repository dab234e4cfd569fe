"""Operations on two sources that may cover only a part of the destination."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, const, select
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, require_arithmetic
from pto.isa.rules.rule import Case


def partial(fn: Callable[[Lanes, Lanes], Lanes], outside: str = "zero") -> Move:
    """fn where both sources are valid, else the element of the source that is valid.

    Where neither is valid: 0, or the lowest or greatest finite element, the initial value of
    PTO-Gym's tpartmax and tpartmin.
    """

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        dtype = element(case, "dst")
        rest = np.asarray({"zero": 0, "lowest": dtype.min, "greatest": dtype.max}[outside])
        rest = rest.astype(dtype.numpy)

        def step(x: Mover, src0: Tile, src1: Tile, dst: Tile) -> None:
            _require_parts(x, dst, src0, src1)

            def read(src: Tile, i: Lanes, j: Lanes, where: Lanes | None = None) -> Lanes:
                # integers of one width, signed or not
                return x.read(src, i, j, where).view(dtype.numpy)

            def cell(i: Lanes, j: Lanes) -> Lanes:
                first, second = _covers(src0, i, j), _covers(src1, i, j)
                a, b = read(src0, i, j, first), read(src1, i, j, second)
                one = select(second, b, select(first, a, rest))
                return select(first & second, fn(a, b), one)

            (rows, cols), (high, wide), (height, width) = (
                tile.get_valid() for tile in (dst, src0, src1)
            )
            is_full = (high == rows) & (wide == cols) & (height == rows) & (width == cols)
            both = lambda i, j: fn(read(src0, i, j), read(src1, i, j))  # noqa: E731
            x.when(
                is_full,
                lambda: x.each(rows, cols, both, dst),
                lambda: x.each(rows, cols, cell, dst),
            )

        return step

    return Move(make)


def _covers(src: Tile, i: Lanes, j: Lanes) -> Lanes:
    rows, cols = src.get_valid()
    return (i < rows) & (j < cols)


def _require_parts(x: Mover, dst: Tile, *sources: Tile) -> None:
    rows, cols = dst.get_valid()
    for src in sources:
        height, width = src.get_valid()
        fine = (height <= rows) & (width <= cols)
        x.require(
            fine | (rows == 0) | (cols == 0),
            lambda h=height, w=width: fail(
                "PTO-S053",
                f"a source has {h}x{w} valid elements, more than the {rows}x{cols} of dst",
            ),
        )


def partial_search(better: Callable[[Lanes, Lanes], Lanes]) -> Move:
    """The pair of src0 if its value is better, else that of src1; the profile decides ties.

    0 where neither source is valid.
    """

    def make(case: Case) -> Callable[..., None]:
        require_arithmetic(case)
        first_of_equals = case.profile.vector.equal_parts == "src0"

        def step(x: Mover, a: Tile, b: Tile, i0: Tile, i1: Tile, dst: Tile, index: Tile) -> None:
            _require_parts(x, dst, a, b)

            def cell(i: Lanes, j: Lanes) -> tuple[Lanes, Lanes]:
                first, second = _covers(a, i, j), _covers(b, i, j)
                mine, other = x.read(a, i, j, first), x.read(b, i, j, second)
                wins = better(mine, other)
                if first_of_equals:
                    wins = wins | (mine == other)
                left = first & (wins | ~second)

                def chosen(p: Lanes, q: Lanes) -> Lanes:
                    return select(left, p, select(second, q, const(q, 0)))

                numbers = x.read(i0, i, j, first), x.read(i1, i, j, second)
                return chosen(mine, other), chosen(*numbers)

            x.each(*dst.get_valid(), cell, dst, index)

        return step

    return Move(make)
