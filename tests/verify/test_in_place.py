"""Overlaps of a destination with a source that do no harm, against rows copied one by one."""

from itertools import product

import numpy as np

from pto.core.dtypes import dtype
from pto.core.tile import Role, TileType
from pto.isa.rules.tile import row_by_row

ROWS, COLS = 4, 8  # of f32


def survives(offset: int, pitch: int, step: int) -> bool:
    """Whether copying row by row gives what the source held before; offsets in bytes."""
    base = 4 * ROWS * max(pitch, step)
    memory = np.arange(3 * base, dtype=np.int64)
    width = 4 * COLS
    before = [memory[base + offset + r * pitch :][:width].copy() for r in range(ROWS)]
    for r in range(ROWS):
        memory[base + r * step :][:width] = memory[base + offset + r * pitch :][:width]
    after = [memory[base + r * step :][:width] for r in range(ROWS)]
    return all(np.array_equal(a, b) for a, b in zip(after, before, strict=True))


def test_an_overlap_is_allowed_only_if_rows_in_order_survive_it():
    tile = TileType.of(Role.VEC, dtype("f32"), ROWS, COLS)
    allowed = 0
    for offset, pitch, step in product(range(-256, 257, 16), (32, 64), (32, 64)):
        if row_by_row(tile, tile, offset, (pitch, step)) and offset:
            assert survives(offset, pitch, step), (offset, pitch, step)
            allowed += 0 < offset < ROWS * step
    assert allowed > 5  # a destination that follows its source
    assert not row_by_row(tile, tile, -32, (32, 32))  # it runs ahead
    assert not row_by_row(tile, tile, 16, (32, 32))  # half a row further
