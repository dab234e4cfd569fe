"""Rows or elements of a table in global memory, read and written by index.

Elements of a table are counted row by row, whatever its strides; an index is unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import fail
from pto.core.global_layout import ND
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.handle.view import as_tile, as_view
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.gather import Places, places, stray
from pto.isa.meaning.tile.regions import put, region
from pto.isa.rules.rule import Case


@dataclass(slots=True)
class Access:
    """What an index tile asks of a table: `array[index(keys)]` are the rows or elements."""

    array: Lanes
    index: Callable[[Places], Any]
    by_row: bool
    keys: Places
    inside: npt.NDArray[np.bool_] | None  # the keys that count; None: all of them


def _access(case: Case, policy: str) -> Callable[[GlobalTensor, Tile, int, int], Access]:
    """`policy` names the attribute for indices beyond the table."""
    asked, oob = case.word("coalesce"), case.word(policy) or "undefined"

    def access(table: GlobalTensor, idx: Tile, rows: int, cols: int) -> Access:
        shape = idx.get_valid()
        by_row = _is_by_row(shape, (rows, cols), asked)
        matrix = _matrix(table)
        height, width = table.matrix_shape if matrix is None else matrix.shape
        if by_row and cols > width:
            raise fail("PTO-S170", f"rows of {cols} elements, and {table} has {width} columns")
        wanted = places(idx, *shape).reshape(-1)
        keys, inside = _tamed(wanted, height if by_row else height * width, oob, table)
        found = _rows(table, matrix, cols) if by_row else _elements(table, matrix, width)
        return Access(*found, by_row, keys, inside)

    return access


def _matrix(table: GlobalTensor) -> Lanes | None:
    """The table as rows and columns in place, or None where its layout makes that impossible."""
    if table.layout is ND and table.shape[0] == table.shape[1] == table.shape[2] == 1:
        return table.as_plane()
    return table.matrix()


def _rows(
    table: GlobalTensor, matrix: Lanes | None, cols: int
) -> tuple[Lanes, Callable[[Places], Any]]:
    if matrix is not None:
        return matrix[:, :cols], lambda keys: keys
    column = np.arange(cols)[None, :]
    return _memory(table), lambda keys: table.offset(keys[:, None], column)


def _elements(
    table: GlobalTensor, matrix: Lanes | None, width: int
) -> tuple[Lanes, Callable[[Places], Any]]:
    if matrix is None:
        return _memory(table), lambda keys: table.offset(keys // width, keys % width)
    if matrix.flags.c_contiguous:
        return matrix.reshape(-1), lambda keys: keys
    return matrix, lambda keys: (keys // width, keys % width)


def _memory(table: GlobalTensor) -> Lanes:
    return table.memory.view(table.address, table.nbytes).view(table.dtype.numpy)


def _is_by_row(idx: tuple[int, int], data: tuple[int, int], asked: str | None) -> bool:
    """Elements where both shapes say so, unless the program asks for rows."""
    if asked != "row" and idx == data:
        return False
    if asked != "elem" and idx in ((1, data[0]), (data[0], 1)):
        return True
    raise fail(
        "PTO-S058",
        f"idx is {idx[0]}x{idx[1]} and the tile {data[0]}x{data[1]}: neither an index for each"
        " element nor one for each row",
    )


def _tamed(
    keys: Places, capacity: int, oob: str, table: GlobalTensor
) -> tuple[Places, npt.NDArray[np.bool_] | None]:
    """Indices beyond the table as the program asks: an error, clamped, wrapped, or left out."""
    if keys.max() < capacity:
        return keys, None
    if oob in ("zero", "skip") and capacity:
        inside = keys < capacity
        return np.where(inside, keys, 0), inside
    if oob == "undefined" or capacity == 0:
        raise stray(keys, capacity, f"the {capacity} rows or elements of {table}")
    return (np.minimum(keys, capacity - 1) if oob == "clamp" else keys % capacity), None


# ---- mgather


def _gather(case: Case) -> Callable[..., None]:
    mem_type, idx_type, dst_type = (case.type(name) for name in ("mem", "idx", "dst"))
    access = _access(case, "gatherOob")

    def gather(core: Machine, mem: Any, idx: Any, dst: Any) -> None:
        table, index, out = as_view(mem, mem_type), as_tile(idx, idx_type), as_tile(dst, dst_type)
        rows, cols = out.get_valid()
        if rows == 0 or cols == 0:
            return
        use = access(table, index, rows, cols)
        found = use.array[use.index(use.keys)]
        if use.inside is not None:
            found[~use.inside] = 0
        put(out, rows, cols, found.reshape(rows, cols))

    return gather


MEMORY_GATHER = Do(_gather)

# ---- mscatter

_COMBINE = {"none": None, "add": lanes.add, "max": lanes.maximum, "min": lanes.minimum}


def _scatter(case: Case) -> Callable[..., None]:
    src_type, idx_type, mem_type = (case.type(name) for name in ("src", "idx", "mem"))
    access = _access(case, "scatterOob")
    combine = _COMBINE[case.word("scatterAtomicOp") or "none"]

    def scatter(core: Machine, src: Any, idx: Any, mem: Any) -> None:
        source, index, table = (
            as_tile(src, src_type),
            as_tile(idx, idx_type),
            as_view(mem, mem_type),
        )
        rows, cols = source.get_valid()
        if rows == 0 or cols == 0:
            return
        use = access(table, index, rows, cols)
        keys, array = use.keys, use.array
        values = region(source, rows, cols).view(array.dtype)
        values = values if use.by_row else values.reshape(-1)
        if use.inside is not None:
            keys, values = keys[use.inside], values[use.inside]
        if combine is None:
            # assigned in the order of the keys, the last of equal ones last (NumPy quickstart)
            array[use.index(keys)] = values
            return
        for turn in _turns(keys):
            at = use.index(keys[turn])
            array[at] = combine(array[at], values[turn])

    return scatter


def _turns(keys: Places) -> list[npt.NDArray[np.intp]]:
    """The writes in turns of different keys: the first of each key, the second of each, ..."""
    if keys.size == 0:
        return []
    ordered = np.sort(keys * keys.size + np.arange(keys.size))  # by key, then by place
    held, order = np.divmod(ordered, keys.size)
    starts = np.flatnonzero(np.diff(held, prepend=-1))
    lengths = np.diff(starts, append=held.size)
    return [order[starts[lengths > turn] + turn] for turn in range(int(lengths.max()))]


MEMORY_SCATTER = Do(_scatter)
