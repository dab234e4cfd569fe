"""Rectangular windows of tiles in any layout, and the buffers that hold them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pto.core.compact import PACKED_NZ, PACKED_NZ2, PackedOrder
from pto.core.constants import FRACTAL_NZ_ROW
from pto.core.dtypes import items_of
from pto.core.errors import fail
from pto.core.layout import NZ, runs_between
from pto.core.memory import Space
from pto.core.tile import Tile
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.machine import Machine

PACKED_ZZ = PackedOrder("ZZ", NZ, band=FRACTAL_NZ_ROW)
_PACKINGS = {"NZ": PACKED_NZ, "ZZ": PACKED_ZZ}


def packing(mode: str | None, layout: str) -> PackedOrder | None:
    """The packing of the boxed side in a written mode (PTO manual).

    None: the layout of the tile.

    The manual's left tile, RowMajor in RowMajor, is ZZ: its boxes are stored row by row.
    """
    if mode not in ("ND2NZ", "NZ2ND", "ND2NZ2"):
        return None
    return PACKED_NZ2 if mode == "ND2NZ2" and layout in _PACKINGS else _PACKINGS.get(layout)


def cut(
    tile: Tile, row: int, col: int, rows: int, cols: int, packed: PackedOrder | None = None
) -> Lanes:
    """rows x cols elements from (row, col) on, valid or not; often a view of the tile's memory."""
    if packed is not None:
        chosen = _places(tile, packed, row, col, rows, cols)
        return tile.items[chosen].view(tile.type.dtype.numpy)
    plain = tile.view()
    if plain is not None and row == col == 0 and plain.shape == (rows, cols):
        return plain
    require_window(tile, tile.type.shape, row, col, rows, cols)
    if plain is not None:
        return plain[row : row + rows, col : col + cols]
    places = None if (rows, cols) == tile.type.shape else _boxed(tile, row, col, rows, cols)
    if places is None or places.shape != (rows, cols):
        return tile.read()[row : row + rows, col : col + cols]
    return tile.items[places].view(tile.type.dtype.numpy)


def paste(tile: Tile, row: int, col: int, values: Lanes, packed: PackedOrder | None = None) -> None:
    """Store values from (row, col) on; the rest of the tile is unchanged."""
    rows, cols = values.shape
    if packed is not None:
        items = items_of(tile.type.dtype, values)
        tile.items[_places(tile, packed, row, col, rows, cols)] = items
        return
    plain = tile.view()
    if plain is None or row or col or plain.shape != (rows, cols):
        require_window(tile, tile.type.shape, row, col, rows, cols)
    if plain is not None:
        if values.dtype != plain.dtype:
            values = items_of(tile.type.dtype, values).view(plain.dtype)
        plain[row : row + rows, col : col + cols] = values
    elif (rows, cols) == tile.type.shape:
        tile.write(values)
    else:
        places = _boxed(tile, row, col, rows, cols)
        height, width = places.shape
        tile.items[places] = items_of(tile.type.dtype, values)[:height, :width]


def copy(source: Tile, target: Tile, rows: int, cols: int) -> None:
    """Copy the first rows x cols elements of a tile to another one of the same element type."""
    if (
        source.type.layout.is_boxed
        and (rows, cols) == source.type.shape
        and _copy_runs(source, target)
    ):
        return
    paste(target, 0, 0, cut(source, 0, 0, rows, cols))


def _copy_runs(source: Tile, target: Tile) -> bool:
    """Copy a whole boxed tile by rows of boxes, if both tiles have the same boxes."""
    a, b = source.type, target.type
    both_full = source.is_whole and target.is_whole
    if not both_full or a.shape != b.shape or source.memory is target.memory:
        return False
    runs = runs_between(a.layout, b.layout, *a.shape, a.itemsize)
    if runs is None:
        return False
    order, kind = runs
    np.take(source.items.view(kind), order, out=target.items.view(kind), mode="clip")
    return True


def _boxed(tile: Tile, row: int, col: int, rows: int, cols: int) -> npt.NDArray[np.intp]:
    """The storage positions of the elements of a window that are stored."""
    return tile.offsets()[row : row + rows, col : col + cols]


def _places(
    tile: Tile, packed: PackedOrder, row: int, col: int, rows: int, cols: int
) -> npt.NDArray[np.intp]:
    """The storage positions of the elements of a window in a tile that packs its valid elements."""
    valid = tile.get_valid()
    require_window(tile, valid, row, col, rows, cols)
    places = packed.positions(*valid, tile.type.itemsize)
    return places[row : row + rows, col : col + cols]


def require_window(
    tile: Tile, shape: tuple[int, int], row: int, col: int, rows: int, cols: int
) -> None:
    if row < 0 or col < 0 or row + rows > shape[0] or col + cols > shape[1]:
        raise fail(
            "PTO-S060",
            f"a window of {rows}x{cols} at ({row}, {col}) does not lie inside "
            f"{shape[0]}x{shape[1]} ({tile.type})",
        )


def landing(core: Machine, tile: Tile, sub: int | None = None) -> Tile:
    """The tile in the buffer of its owner: UB with a vector sub-block, other buffers with the cube.

    If that agent does not run, the buffer is this core's own.
    """
    owner = _owner(core, tile.memory.space, sub)
    if owner is core:
        return tile
    return tile.moved(owner.memory(tile.memory.space), tile.address)


def _owner(core: Machine, space: Space, sub: int | None) -> Machine:
    shared = core.cluster
    if space is not Space.UB:
        return shared.cube if core.side == "vector" and shared.has_cube else core
    if core.side == "cube":
        return shared.vector(sub or 0) if shared.vectors or sub else core
    return core if sub is None or sub == core.sub else shared.vector(sub)
