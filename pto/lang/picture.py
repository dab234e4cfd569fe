"""A tile as text: its values, with the valid region marked."""

from __future__ import annotations

from pto.core.dtypes import decode
from pto.core.tile import Tile

_MOST = 12  # rows and columns shown


def picture(tile: Tile) -> str:
    """Values of the valid region; `·` is an element outside it."""
    rows, cols = tile.get_valid()
    height, width = min(tile.type.rows, _MOST), min(tile.type.cols, _MOST)
    values = decode(tile.type.dtype, tile.read())
    lines = [
        f"{tile.type} at {tile.memory.space.value} {tile.address:#x}, valid {rows}x{cols}",
    ]
    for r in range(height):
        cells = [f"{values[r, c]:.5g}" if r < rows and c < cols else "·" for c in range(width)]
        bar = ["|"] if 0 < cols < width else []
        line_cells = cells[:cols] + bar + cells[cols:] if cols < width else cells
        more = " ..." if tile.type.cols > width else ""
        lines.append(" ".join(f"{cell:>8}" if cell != "|" else cell for cell in line_cells) + more)
        if r + 1 == rows < height:
            lines.append("-" * len(lines[-1]))
    if tile.type.rows > height:
        lines.append(f"     ... {tile.type.rows} rows")
    return "\n".join(lines)
