"""Views of global memory and accumulators for the bench: what the tests of movement share."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from pto.core.global_layout import global_layout
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from tests.machine import Bench

TILES = {
    "ND": "",
    "DN": ", blayout=col_major",
    "NZ": ", blayout=col_major, slayout=row_major",
    "ZN": ", slayout=col_major",
    "ZZ": ", slayout=row_major",
    "ACC": ", blayout=col_major, slayout=row_major, fractal=1024",
}
FILL = 0xA5  # what Bench leaves in bytes nobody wrote


def view(
    bench: Bench,
    name: str,
    array: np.ndarray,
    elem: str,
    shape: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
    layout: str = "ND",
) -> np.ndarray:
    """`!pto.partition_tensor_view` over the caller's array; returns the array, which is live."""
    kind = dtype(elem)
    flat = array.reshape(-1)
    memory = bench.core.device.attach(flat)
    sizes = array.shape if shape is None else shape
    value = GlobalTensor.of(memory, 0, kind, sizes, strides, global_layout(layout))
    bench.values[name] = value
    bench.types[name] = f"!pto.partition_tensor_view<{'x'.join(map(str, sizes))}x{elem}>"
    return array


def untouched(tile: Tile) -> np.ndarray:
    """Which elements of a tile still hold the filler of the bench."""
    items = np.ascontiguousarray(tile.read()).view(tile.type.dtype.storage)
    return items == int.from_bytes(bytes([FILL]) * tile.type.itemsize, "little")


def inside(shape: tuple[int, int], rows: int, cols: int) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[:rows, :cols] = True
    return mask


def word(scale: float, *, offset: int = 0, signed: bool = False, shift: int = 0) -> int:
    """A scale word: f32 in bits 0-31, shift - 1 in 32-35, offset in 37-45, sign in 46."""
    bits = int(np.float32(scale).view(np.uint32))
    moved = (offset & 0x1FF) << 37 | int(signed) << 46
    return bits | moved | (max(shift, 1) - 1) << 32


def numbered(rows: int, cols: int, kind: Any = np.float32) -> np.ndarray:
    """0, 1, 2, ... row by row."""
    return np.arange(rows * cols).reshape(rows, cols).astype(kind)
