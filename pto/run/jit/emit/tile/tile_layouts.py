"""Tiles as strided layouts and accesses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pto.core.compact import Compact
from pto.core.tile import TileType
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.ir.kinds import unsupported_if
from pto.run.jit.ir.strided import Access, Strided, coalesced, row_major
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.values import TileDesc


def require_all_boxes(type: TileType, valid: Sequence[Val]) -> None:
    """Refuse a compact tile whose valid region, which decides, may leave boxes out."""
    for given, extent, side in zip(valid, type.shape, type.box, strict=True):
        unsupported_if(
            extent > side and (not isinstance(given, int) or -(-given // side) * side < extent),
            "a compact tile without some of its boxes",
        )


def stored_shape(tile: TileDesc) -> tuple[int, int]:
    """The shape in the address formula: `Tile._stored`."""
    type, (rows, cols) = tile.type, tile.type.shape
    if tile.pitch is not None:
        return (rows, tile.pitch) if type.layout.pitch_axis else (tile.pitch, cols)
    if type.compact is Compact.NORMAL and type.layout.is_boxed:
        require_all_boxes(type, tile.valid)
    return type.storage_shape(type.shape)


def tile_layout(tile: TileDesc) -> Strided:
    """A tile of any layout."""
    type, layout = tile.type, tile.type.layout
    if layout.is_boxed or layout.named:
        return _boxed(type, stored_shape(tile))
    if layout.pitch_axis:
        return row_major(type.dtype, tile.pitch or type.cols)
    return row_major(type.dtype, tile.pitch or type.rows).swapped


@lru_cache(maxsize=1024)
def _boxed(type: TileType, stored: tuple[int, int]) -> Strided:
    found = _frame(type, stored)
    down, across = (coalesced(each, n) for each, n in zip(found[1:], type.shape, strict=True))
    return Strided(type.dtype, down, across)


def boxed_layout(tile: TileDesc) -> Strided:
    """A tile of any layout, with the size of its boxes even if there is only one."""
    return _frame(tile.type, stored_shape(tile))


def _frame(type: TileType, stored: tuple[int, int]) -> Strided:
    frame = type.layout.frame(*stored, type.itemsize)
    found = Strided(type.dtype, *frame.axes)
    return found.swapped if frame.mirrored else found


def unboxed_layout(tile: TileDesc) -> Strided:
    """A tile with one step along each axis."""
    require_unboxed(tile.type)
    return tile_layout(tile)


def require_unboxed(type: TileType) -> None:
    unsupported_if(type.layout.is_boxed or type.dtype.is_packed, "a boxed or packed tile")


def extent(tile: TileDesc) -> int:
    """Bytes from the first element to the end of the last."""
    return tile_layout(tile).extent(*tile.type.shape)


def tile_access(s: OpContext, tile: TileDesc) -> Access:
    """All elements of a tile."""
    pointer, owner = s.pointer(tile.memory, tile.address), s.e.privates.get(id(tile), 0)
    layout = tile_layout(tile)
    memory = tile.memory
    address = tile.address
    nbytes = layout.extent(*tile.type.shape)
    return Access(layout, pointer, memory, address, nbytes, owner)
