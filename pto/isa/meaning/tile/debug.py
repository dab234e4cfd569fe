"""Printing of tiles during a run, and single elements by their position in storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode
from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from pto.isa.meaning.handle.view import as_tile, as_view
from pto.isa.meaning.kinds import Do, Move
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.mover import Mover
from pto.isa.row import types as t
from pto.isa.rules.rule import Case

MOST = 128  # rows and columns that are printed: of more, the first and the last of this number
_WIDTH = 8
_SKIPPED = "..."

# ---- tprint


def _print(case: Case) -> Callable[..., None]:
    type = case.type("src")
    if isinstance(type, t.TileBuf) or (isinstance(type, t.MemRef) and type.space.is_local):
        return lambda core, src, tmp: core.printed.extend(_tile_lines(as_tile(src, type)))
    return lambda core, src, tmp: core.printed.extend(_view_lines(as_view(src, type)))


def _tile_lines(tile: Tile) -> list[str]:
    rows, cols = tile.get_valid()
    return [
        f"tprint {tile.type}, valid {rows}x{cols}",
        *table(tile.read_valid(), tile.type.dtype),
    ]


def _view_lines(view: GlobalTensor) -> list[str]:
    rows, cols = view.matrix_shape
    matrix = view.matrix()
    values = view.read_matrix() if matrix is None else matrix
    return [f"tprint gm {rows}x{cols}x{view.dtype.name} {view.layout}", *table(values, view.dtype)]


def table(values: Lanes, dtype: DType) -> list[str]:
    """One line per row, numbers in columns of equal width."""
    rows, cols = values.shape
    if not rows or not cols:
        return []
    visible = np.ascontiguousarray(values[np.ix_(_shown(rows), _shown(cols))])
    lines = [[_word(number) for number in line] for line in decode(dtype, visible).tolist()]
    width = max(_WIDTH, *(len(word) for line in lines for word in line))
    text_rows = [" ".join(_marked([w.rjust(width) for w in line], cols)) for line in lines]
    return _marked(text_rows, rows)


def _shown(size: int) -> npt.NDArray[np.intp]:
    indices = np.arange(min(size, MOST))
    return np.where(indices < MOST // 2, indices, indices + size - indices.size)


def _marked(words: list[str], size: int) -> list[str]:
    """With an ellipsis in the middle if some are omitted."""
    half = len(words) // 2
    return [*words[:half], _SKIPPED, *words[half:]] if size > MOST else words


def _word(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    plain = number == 0.0 or 1e-3 <= abs(number) < 1e6
    return f"{number:.4f}" if plain else f"{number:.4e}"


PRINT_TILE = Do(_print, host_only="prints")

# ---- single elements


def _scalar(type: t.Type | None) -> t.Scalar:
    if not isinstance(type, t.Scalar):
        raise fail("PTO-T093", "an element of a tile is a scalar with an element type")
    return type


def _place(x: Mover, tile: Tile, offset: Any) -> int:
    at, count = x.number(offset), x.items(tile)
    x.require(
        (at >= 0) & (at < count),
        lambda: fail("PTO-M050", f"offset {at} is outside the {count} elements of {tile.type}"),
    )
    return at


def _get(case: Case) -> Callable[..., Any]:
    result = _scalar(case.op.results[0].type)
    return lambda x, src, offset: x.scalar(x.element(src, _place(x, src, offset)), result)


def _set(case: Case) -> Callable[..., None]:
    scalar_type = _scalar(case.type("val"))

    def put(x: Mover, dst: Tile, offset: Any, value: Any) -> None:
        x.set_element(dst, _place(x, dst, offset), x.bits(value, scalar_type))

    return put


GET_ELEMENT = Move(_get)
SET_ELEMENT = Move(_set)
