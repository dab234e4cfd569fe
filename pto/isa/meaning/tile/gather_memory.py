"""Gather and scatter of rows or elements of a table in global memory.

Elements of a table are numbered row by row, for any strides; an index is unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.errors import PtoError, fail
from pto.core.global_tensor import GlobalTensor
from pto.core.primitives import less_of
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.handle.memref import is_global
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, const, select
from pto.isa.meaning.tile.gather import stray, unsigned
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case


class TableAccess:
    """The row and column of a table for each element (i, j) of an index tile.

    With one index per element, it is the element's number in the table, row by row; with one index
    per row, it is a row. `policy` names the attribute for indices outside the table.
    """

    def __init__(self, case: Case, policy: str) -> None:
        self._asked, self._oob = case.word("coalesce"), case.word(policy) or "undefined"

    def run(
        self,
        x: Mover,
        table: GlobalTensor,
        idx: Tile,
        size: tuple[int, int],
        then: Callable[[Callable[..., Any]], None],
    ) -> None:
        """Call then(at): at(i, j) is the element, by row and column or by its number, and a
        condition.

        The condition is True if the index is in use; None: always.
        """
        (rows, cols), (high, wide) = size, idx.get_valid()
        elements = (high == rows) & (wide == cols)
        lines = ((high == 1) & (wide == rows)) | ((high == rows) & (wide == 1))
        is_form = {"row": lines, "elem": elements}.get(self._asked or "", elements | lines)
        x.require(is_form, lambda: _neither(idx.get_valid(), size))
        by_row = lambda: then(self._rows(x, table, idx, size))  # noqa: E731
        by_element = lambda: self._elements(x, table, idx, size, then)  # noqa: E731
        if self._asked == "row":
            by_row()
        else:
            x.when(elements, by_element, by_row if self._asked != "elem" else None)

    def _rows(self, x: Mover, table: GlobalTensor, idx: Tile, size: tuple[int, int]) -> Any:
        (rows, cols), (height, width) = size, table.matrix_shape
        x.require(
            cols <= width,
            lambda: fail(
                "PTO-S170", f"a row has {cols} elements, but {table} has only {width} columns"
            ),
        )
        down = x.choose(idx.get_valid()[0] == 1, lambda: 0, 1)  # indices are in a row or a column
        cached: tuple[Any, Any] = None, None  # for the same rows, read once

        def key(i: Lanes, j: Lanes) -> Lanes:
            nonlocal cached
            if cached[0] is not i:
                cached = i, unsigned(x.read(idx, i * down, i * (1 - down)))
            return cached[1]

        number = self.indices(x, (rows, 1), key, height, lambda: _stray(idx, height, table))

        def at(i: Lanes, j: Lanes) -> tuple[tuple[Lanes, Lanes], Lanes | None]:
            row, inside = number(i, j)
            return (row, j), inside

        return at

    def _elements(
        self,
        x: Mover,
        table: GlobalTensor,
        idx: Tile,
        size: tuple[int, int],
        then: Callable[..., None],
    ) -> None:
        height, width = table.matrix_shape
        most = height * width

        def key(i: Lanes, j: Lanes) -> Lanes:
            return unsigned(x.read(idx, i, j))

        number = self.indices(x, size, key, most, lambda: _stray(idx, most, table))

        def place(i: Lanes, j: Lanes) -> tuple[tuple[Lanes, Lanes], Lanes | None]:
            k, inside = number(i, j)
            return (k // width, k % width), inside

        x.when(x.numbered(table), lambda: then(number), lambda: then(place))

    def indices(
        self,
        x: Mover,
        size: tuple[int, int],
        key: Callable[..., Lanes],
        most: int,
        error: Callable[[], PtoError],
    ) -> Callable[[Lanes, Lanes], tuple[Lanes, Lanes | None]]:
        """fn(i, j): the index key(i, j), and the condition that it is in use; None: always.

        One of `most` or more is an error, unless an attribute clamps, wraps or skips it.
        """
        fine = x.all(*size, lambda i, j: key(i, j) < most)
        x.require(fine if self._oob == "undefined" else fine | (most > 0), error)

        def tamed(i: Lanes, j: Lanes) -> tuple[Lanes, Lanes | None]:
            keys = key(i, j)
            if self._oob == "clamp":
                return x.index(less_of(keys, most - 1)), None
            if self._oob == "wrap":
                return x.index(keys) % most, None
            return x.index(keys), keys < most if self._oob in ("zero", "skip") else None

        return tamed


def _stray(idx: Tile, most: int, table: GlobalTensor) -> PtoError:
    source = f"the {most} rows or elements of {table}"
    return stray(unsigned(idx.read_valid()).reshape(-1), most, source)


def _neither(idx: tuple[int, int], data: tuple[int, int]) -> PtoError:
    return fail(
        "PTO-S058",
        f"idx is {idx[0]}x{idx[1]} and the tile {data[0]}x{data[1]}: neither an index for each"
        " element nor one for each row",
    )


def _element(x: Mover, table: GlobalTensor, index: Any, inside: Lanes | None) -> Lanes:
    """An element by row and column, or by its number; 0 where it is skipped."""
    if isinstance(index, tuple):
        row, col = index
        value = x.read(table, row, col, inside)
    else:
        value = x.item(table, index, inside)
    return value if inside is None else select(inside, value, const(value, 0))


# ---- mgather


def _gather(case: Case) -> Callable[..., None]:
    access = TableAccess(case, "gatherOob")

    def gather(x: Mover, mem: GlobalTensor, idx: Tile, scratch: Any, dst: Tile) -> None:
        rows, cols = dst.get_valid()

        def move(at: Callable[..., Any]) -> None:
            x.each(rows, cols, lambda i, j: _element(x, mem, *at(i, j)), dst)

        x.when((rows > 0) & (cols > 0), lambda: access.run(x, mem, idx, (rows, cols), move))

    return gather


def _gather_listed(case: Case) -> Callable[..., None]:
    """Gather with indices in global memory: row numbers, or element numbers row by row."""
    by_row, access = case.word("coalesce") == "row", TableAccess(case, "gatherOob")

    def gather(x: Mover, mem: GlobalTensor, idx: GlobalTensor, scratch: Any, dst: Tile) -> None:
        (rows, cols), (height, width) = dst.get_valid(), mem.matrix_shape
        wide, most = idx.matrix_shape[1], height if by_row else height * width

        def key(i: Lanes, j: Lanes) -> Lanes:
            n = i if by_row else i * cols + j
            return unsigned(x.read(idx, n // wide, n % wide))

        number = access.indices(
            x,
            (rows, 1 if by_row else cols),
            key,
            most,
            lambda: fail("PTO-S170", f"an index is outside the {most} elements of {mem}"),
        )

        def cell(i: Lanes, j: Lanes) -> Lanes:
            at, inside = number(i, j)
            return _element(x, mem, (at, j) if by_row else (at // width, at % width), inside)

        x.each(rows, cols, cell, dst)

    return gather


def _chosen(case: Case) -> Callable[..., None]:
    return _gather_listed(case) if is_global(case.type("idx")) else _gather(case)


MEMORY_GATHER = Move(_chosen)

# ---- mscatter


def _scatter(case: Case) -> Callable[..., None]:
    access = TableAccess(case, "scatterOob")
    combine = lanes.COMBINE.get(case.word("scatterAtomicOp") or "none")

    def scatter(x: Mover, src: Tile, idx: Tile, mem: GlobalTensor) -> None:
        rows, cols = src.get_valid()

        def move(at: Callable[..., Any]) -> None:
            def cell(i: Lanes, j: Lanes) -> Any:
                index, inside = at(i, j)
                return index, x.read(src, i, j).view(mem.dtype.numpy), inside

            x.place(rows, cols, cell, mem, combine)

        x.when((rows > 0) & (cols > 0), lambda: access.run(x, mem, idx, (rows, cols), move))

    return scatter


MEMORY_SCATTER = Move(_scatter)
