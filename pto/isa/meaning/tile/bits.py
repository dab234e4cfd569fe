"""Masks of tiles as bits, lowest first: packed and unpacked, on arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pto.core.tile import Tile
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.tile.regions import put, region, stream


def pack_rows(mask: Tile, bits: Lanes) -> None:
    """Row by row, in whole elements of the mask: bits after the last column are 0."""
    size, rows = mask.type.itemsize, bits.shape[0]
    packed = np.packbits(bits, axis=1, bitorder="little")
    items = -(-packed.shape[1] // size)
    if items * size != packed.shape[1]:
        packed = np.pad(packed, ((0, 0), (0, items * size - packed.shape[1])))
    put(mask, rows, items, packed.view(mask.type.dtype.storage))


def pack_stream(mask: Tile, bits: Lanes, pitch: int, nbytes: int) -> None:
    """In one stream from the mask's first byte, `pitch` bits from row to row, padded by zeros."""
    rows, cols = bits.shape
    image = np.zeros(max(rows * pitch, nbytes * 8), np.bool_)
    image[: rows * pitch].reshape(rows, pitch)[:, :cols] = bits
    stream(mask).view(np.uint8)[:nbytes] = np.packbits(image, bitorder="little")[:nbytes]


def unpack(mask: Tile, rows: int, cols: int) -> npt.NDArray[np.bool_]:
    """The first rows x cols bits of a mask."""
    size = mask.type.itemsize
    packed = region(mask, rows, -(-cols // (8 * size)))
    if packed.strides[1] != size:
        packed = np.ascontiguousarray(packed)
    unpacked = np.unpackbits(packed.view(np.uint8), axis=1, count=cols, bitorder="little")
    return unpacked.view(np.bool_)
