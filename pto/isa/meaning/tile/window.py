"""The part of a global tensor that a tile loads or stores: a matrix of its valid region.

A view has five dimensions; its layout selects the dimensions that make the rows. Programs often
omit the layout; then the strides and the tile determine it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core import global_layout as gm
from pto.core.errors import PtoError, fail
from pto.core.global_layout import GlobalLayout, Shape5
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Role, TileType

Array = npt.NDArray[Any]

# Possible layouts of a view without a written one, by the tile (PTO manual, TLOAD; pto-isa
# pto_tile.hpp). If the first three dimensions are 1, ND, DN and NZ are the same mapping.
_MAPS = {
    "ND": (gm.ND,),
    "DN": (gm.DN, gm.ND),
    "NZ": (gm.ND, gm.NZ),
    "ZN": (gm.DN, gm.ND, gm.NZ),
    "ZZ": (gm.ND, gm.MX_A_ZZ, gm.MX_A_ND, gm.MX_A_DN),
    "NN": (gm.ND, gm.MX_B_NN, gm.MX_B_ND, gm.MX_B_DN),
}
ONE_MATRIX = frozenset(("ND", "DN", "NZ"))


def candidates(tile: TileType, written: str | None) -> tuple[GlobalLayout, ...]:
    """The possible layouts of the global side, the most likely first."""
    if written:
        return (gm.global_layout(written),)
    layouts = _MAPS.get(tile.layout.name, (gm.ND,))
    return layouts[::-1] if tile.role is Role.VEC and tile.layout.name == "NZ" else layouts


def one_matrix(view: GlobalTensor, rows: int, cols: int) -> Array | None:
    """rows x cols over the memory of a view with three outer dimensions of 1, else None.

    This is the common case, and every load and store executes it.
    """
    a, b, c, height, width = view.shape
    if a != 1 or b != 1 or c != 1 or view.layout.name not in ONE_MATRIX:
        return None
    if rows > height or cols > width:
        raise _too_small(view, rows, cols)
    kind, steps = view.dtype.numpy, view.strides
    size = kind.itemsize
    strides = steps[3] * size, steps[4] * size
    if not rows or not cols:
        return np.zeros((rows, cols), kind)
    reach = (rows - 1) * strides[0] + (cols - 1) * strides[1]
    view.memory.check(view.address, reach + size)
    return view.memory.strided(view.address, (rows, cols), strides, kind)


class Window:
    """rows x cols of any view, counted from its first element, over the same memory."""

    __slots__ = ("_array", "_index", "shape")

    def __init__(
        self, view: GlobalTensor, layouts: tuple[GlobalLayout, ...], rows: int, cols: int
    ) -> None:
        self.shape = rows, cols
        self._index = None
        if view.layout is not gm.ND:
            layouts = (view.layout,)
        size = view.dtype.itemsize
        layout = chosen(layouts, view.shape, size, rows, cols)
        if layout is None:
            raise _too_small(view, rows, cols)
        self._array = replace(view, layout=layout).as_matrix()
        if layout.matrix_shape(view.shape, size) != (rows, cols):
            self._index = _index(layout, view.shape, size, rows, cols)

    def __getitem__(self, everything: EllipsisType) -> Array:
        """The elements as rows x cols: `window[...]`."""
        return self._array.reshape(self.shape) if self._index is None else self._array[self._index]

    def __setitem__(self, everything: EllipsisType, values: Array) -> None:
        if self._index is None:
            self._array[...] = values.reshape(self._array.shape)
        else:
            self._array[self._index] = values


def read(view: GlobalTensor, layouts: tuple[GlobalLayout, ...], rows: int, cols: int) -> Array:
    """The first rows x cols elements of a view; possibly a view of its memory."""
    matrix = one_matrix(view, rows, cols)
    return Window(view, layouts, rows, cols)[...] if matrix is None else matrix


@lru_cache(maxsize=1024)
def chosen(
    layouts: tuple[GlobalLayout, ...], shape: Shape5, itemsize: int, rows: int, cols: int
) -> GlobalLayout | None:
    """The first layout in which the view is rows x cols, else the first that is large enough."""
    fitting = [candidate for candidate in layouts if all(shape[a] == n for a, n in candidate.sizes)]
    for exact in (True, False):
        for candidate in fitting:
            height, width = candidate.matrix_shape(shape, itemsize)
            if (height, width) == (rows, cols) if exact else height >= rows and width >= cols:
                return candidate
    return None


@lru_cache(maxsize=64)
def _index(
    layout: GlobalLayout, shape: Shape5, itemsize: int, rows: int, cols: int
) -> tuple[Array, ...]:
    """The index of each element in the axes of `as_matrix`."""
    r, c = np.arange(rows)[:, None], np.arange(cols)[None, :]
    by_axis = layout.indices(r, c, shape, itemsize)
    return tuple(by_axis[axis] for axis in (*layout.row_axes, *layout.col_axes))


def _too_small(view: GlobalTensor, rows: int, cols: int) -> PtoError:
    return fail(
        "PTO-S170",
        f"the valid region is {rows}x{cols}, and the view {view} has fewer rows or columns",
        help="a transfer moves exactly the valid region of the tile: make the view as large",
    )
