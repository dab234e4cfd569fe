"""Lane functions on tiles: over the destination's valid region, in any layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import Lane
from pto.isa.rules import Case
from pto.run.core import Core


def lane(case: Case, body: Lane) -> Callable[..., None]:
    """dst[i,j] = fn(sources[i,j]); reads come before the write, so dst may be a source."""
    fn = body.function(case)
    roles = [o.role for o in case.row.operands]
    dst_at = roles.index("inout") if "inout" in roles else roles.index("out")
    ins = [i for i, role in enumerate(roles) if role in ("in", "inout")]

    def step(core: Core, *operands: Any) -> None:
        dst: Tile = operands[dst_at]
        rows, cols = dst.get_valid()
        if rows == 0 or cols == 0:
            return
        sources = [source(operands[i], rows, cols, dst) for i in ins if operands[i] is not None]
        dst.write_valid(fn(*sources))

    return step


def source(operand: Any, rows: int, cols: int, dst: Tile) -> Any:
    """A tile as an array that covers the domain, or a scalar as one element of dst's type."""
    if isinstance(operand, Tile):
        return region(operand, rows, cols)
    return np.asarray(operand, dtype=dst.type.dtype.numpy)


def region(tile: Tile, rows: int, cols: int) -> Any:
    """The first rows x cols elements, inside the tile's own valid region or not (seed 002)."""
    height, width = tile.type.shape
    if rows > height or cols > width:
        raise fail(
            "PTO-S131",
            f"{tile.type} is read over {rows}x{cols}, more than it has",
            help="the destination's valid region is the domain of the instruction",
        )
    plain = tile.view()
    if plain is not None:
        return plain[:rows, :cols]
    whole = tile.read()
    return whole if (rows, cols) == (height, width) else whole[:rows, :cols]
