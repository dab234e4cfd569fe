"""The memory layout of a tile, as an SVG picture for a page."""

from __future__ import annotations

from html import escape

import numpy as np

from pto.core.tile import TileType
from pto.view.tile_picture import MOST_LINES, MOST_STEPS, cut, strokes

_CELLS = 24  # greatest number of coloured rows and columns
_WIDE, _HIGH = 260.0, 150.0  # of a picture, in pixels
_LEAST, _STEP = 64.0, 16.0  # of a side; with few elements, this much for each
_APART = 3.0  # pixels between lines along memory, so that they are distinguishable


def svg(tile: TileType) -> str:
    """The tile, darker with growing address, a line along memory, and the valid region."""
    scale = min(_WIDE / tile.cols, _HIGH / tile.rows)
    high, wide = (max(min(_LEAST, _STEP * n), n * scale) for n in tile.shape)
    x, y = wide / tile.cols, high / tile.rows
    rows, cols = (np.linspace(0, n, min(n, _CELLS), endpoint=False) for n in tile.shape)
    at = tile.offset(rows.astype(np.intp)[:, None], cols.astype(np.intp)[None, :])
    shade = at / max(1, int(at.max()))
    cells = "".join(
        f'<rect x="{c * x:.1f}" y="{r * y:.1f}" width="{wide / len(cols) + 0.3:.1f}"'
        f' height="{high / len(rows) + 0.3:.1f}" fill="hsl(205 62% {86 - 50 * shade[i, j]:.0f}%)"/>'
        for i, r in enumerate(rows)
        for j, c in enumerate(cols)
    )
    path = " ".join(f"{c * x:.1f},{r * y:.1f}" for r, c in _path(tile, x, y))
    line = f'<polyline points="{path}" fill="none" stroke="#d4573b" stroke-width="1.2"/>'
    size = f'width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.1f} {high:.1f}"'
    drawn = f'<g shape-rendering="crispEdges">{cells}</g>{line}{_valid(tile, x, y)}'
    return f'<svg {size} role="img">{drawn}</svg>'


def caption(tile: TileType) -> str:
    """The order of its elements in words."""
    outer, inner = strokes(tile.layout)
    if inner is None:
        return f"elements {outer}"
    rows, cols = tile.box
    return f"boxes of {rows}x{cols} {outer}; in a box {inner}"


def _path(tile: TileType, x: float, y: float) -> list[tuple[float, float]]:
    """Row and column of points along memory: boxes, or the ends of rows or columns.

    None if they would be too close together; `x` and `y` are the pixels of an element.
    """
    pieces = cut(tile)
    if min(pieces.height * y, pieces.width * x) < _APART:
        return []
    if tile.layout.is_boxed:
        return [(float(r), float(c)) for c, r in pieces.centres[:MOST_STEPS]]
    half, ends = 0.5, (pieces.height - 0.5, pieces.width - 0.5)
    starts = [(r + half, c + half) for r, c in pieces.origins[:MOST_LINES].tolist()]
    return [
        point for r, c in starts for point in ((r, c), (r - half + ends[0], c - half + ends[1]))
    ]


def _valid(tile: TileType, x: float, y: float) -> str:
    """A frame around the valid region, if it is not the whole tile."""
    rows, cols = (n if v is None else v for n, v in zip(tile.shape, tile.valid, strict=True))
    if (rows, cols) == tile.shape:
        return ""
    title = escape(f"valid: {rows}x{cols}")
    return (
        f'<rect width="{cols * x:.1f}" height="{rows * y:.1f}" fill="none" stroke="#e8590c"'
        f' stroke-width="3"><title>{title}</title></rect>'
    )
