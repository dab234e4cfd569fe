"""Shapes of tiles for matrices of any shape."""

from __future__ import annotations


def fitted(rows: int, cols: int, elements: int) -> tuple[int, int]:
    """Rows and columns of tiles of at most `elements` elements that cover a matrix: lines as long
    as possible, of whole 32 elements, then as many rows as fit."""
    width = min(-(-cols // 32) * 32, elements)
    return max(1, min(rows, elements // width)), width


def around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """The number of elements before an axis, along it, and after it: an array as three axes."""
    axis %= len(shape)
    before, after = 1, 1
    for n in shape[:axis]:
        before *= n
    for n in shape[axis + 1 :]:
        after *= n
    return before, shape[axis], after
