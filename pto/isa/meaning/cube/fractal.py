"""Matrices in L1, L0A, L0B and L0C by pointer: strips of 32 bytes (16 elements in L0C) per row.

A strip holds C0 columns of every row, one row after the other; strips follow each other at a pitch.
This is layout NZ of `core/layout.py` with the pitch of a padded tile, so a tile's logical part is
read and written in place. Bounds are checked as for bursts.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.dtypes import DType
from pto.core.pointer import Pointer
from pto.isa.meaning.memory.burst import side

Array = npt.NDArray[Any]


def padded(count: int, step: int = FRACTAL_NZ_ROW) -> int:
    """`count` rounded up to a multiple of `step`."""
    return -(-count // step) * step


def _strips(
    name: str,
    verb: str,
    pointer: Pointer,
    size: tuple[int, int],
    pitch: int,
    step: int,
    wide: int,
    kind: DType,
) -> Array:
    """A live view (strip, row, `wide` items) of rows x columns.

    `pitch` is the distance of strips, and `step` that of rows, in rows of a strip.
    """
    rows, cols = size
    row, counts = wide * kind.itemsize, (-(-cols // wide), rows)
    strips = side(name, verb, pointer, counts, (pitch * row, step * row), row)
    return strips.bytes.view(kind.numpy)


def read_nz(name: str, pointer: Pointer, kind: DType, rows: int, cols: int, pitch: int) -> Array:
    """rows x cols items in strips of C0 columns; `pitch` counts rows."""
    wide = C0_SIZE_BYTE // kind.itemsize
    return logical(_strips(name, "reads", pointer, (rows, cols), pitch, 1, wide, kind), cols)


def accumulator(
    name: str,
    verb: str,
    pointer: Pointer,
    kind: DType,
    rows: int,
    cols: int,
    pitch: int,
    step: int = 1,
) -> Array:
    """A live view (strip, row, 16 items) of L0C; `pitch` and `step` count rows of 16 items."""
    return _strips(name, verb, pointer, (rows, cols), pitch, step, FRACTAL_NZ_ROW, kind)


def logical(strips: Array, cols: int) -> Array:
    """The matrix in a view (strip, row, item), its first `cols` columns."""
    count, rows, wide = strips.shape
    return strips.transpose(1, 0, 2).reshape(rows, count * wide)[:, :cols]


def write_strips(target: Array, matrix: Array) -> None:
    """Store a matrix in a view (strip, row, item); columns beyond it stay."""
    rows, cols = matrix.shape
    wide = target.shape[2]
    full = cols // wide
    inner = matrix[:, : full * wide].reshape(rows, full, wide)
    target[:full] = inner.transpose(1, 0, 2)
    if cols % wide:
        target[full, :, : cols % wide] = matrix[:, full * wide :]
