"""Layouts of views in global memory, stated where strides and tiles agree on them."""

from __future__ import annotations

from pto.core.layout import FRACTAL_MX
from pto.ir.graph import Operation
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.row.attributes import Enum
from pto.isa.row.types import TileBuf
from pto.isa.rules.global_memory import line_axis


def state_columns(function: Operation) -> None:
    """Write `layout = dn` at a view that is column-major and is only moved by columns.

    PTOAS does not derive the layout from strides that are known only at run time. Scales of MX
    products have their own layouts.
    """
    for op in function.walk():
        if op.row is MAKE_TENSOR_VIEW and "layout" not in op.attrs and _is_turned(op):
            windows = op.results[0].uses
            moves = [use for window in windows for result in window.results for use in result.uses]
            if all(w.row is PARTITION_VIEW for w in windows) and all(map(_by_columns, moves)):
                op.attrs["layout"] = Enum("layout", "dn")


def _is_turned(op: Operation) -> bool:
    return [v.number == 1 for v in op.group("strides")[-2:]] == [True, False]


def _by_columns(op: Operation) -> bool:
    tiles = [v.type.tile for v in op.operands if isinstance(v.type, TileBuf)]
    return bool(tiles) and all(
        line_axis(tile.layout) == -2 and tile.layout.fractal != FRACTAL_MX for tile in tiles
    )
