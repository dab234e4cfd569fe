"""Layout conversions of feature maps and filters: NCHW to NC1HWC0, NC1HWC0 to FRACTAL_Z, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, select
from pto.isa.meaning.tile.img2col import number
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case

# Axes of each layout, slowest first: group, n, channel, depth, height, width; a channel is split
# into its block of c0 (k) and its index in the block (o). Filters pad n to a multiple of 16.
ORDERS = {
    "NCHW": "nchw",
    "GNCHW": "gnchw",
    "NCDHW": "ncdhw",
    "NHWC": "nhwc",
    "NC1HWC0": "nkhwo",
    "GNC1HWC0": "gnkhwo",
    "NDC1HWC0": "ndkhwo",
    "FRACTAL_Z": "gkhwno",
    "FRACTAL_Z_3D": "dkhwno",
}
LOADED = {**ORDERS, "FRACTAL_Z_3D": "kdhwno"}  # a5 TLoad.hpp: [C1DHW, N/16, 16, C0]


def _sizes(case: Case, batch: int) -> dict[str, int]:
    sizes = {name: number(case, name) for name in (*"gncdhw", "c0")}
    for name, size in sizes.items():
        if size < 1:
            words = f"'{case.row.name}' op expects attribute {name} to be at least 1: it is {size}"
            raise fail("PTO-T070", words)
    c0 = sizes["c0"]
    return {**sizes, "n": batch or sizes["n"], "k": -(-sizes["c"] // c0), "o": c0}


def _split(flat: Lanes, order: str, sizes: Mapping[str, int]) -> dict[str, Lanes]:
    """The index along every axis of an element of memory."""
    parts: dict[str, Lanes] = {}
    for axis in reversed(order):
        parts[axis], flat = flat % sizes[axis], flat // sizes[axis]
    if "k" in order:
        parts["c"] = parts["k"] * sizes["o"] + parts["o"]
    else:
        parts["k"], parts["o"] = parts["c"] // sizes["o"], parts["c"] % sizes["o"]
    return parts


def _joined(at: Mapping[str, Any], order: str, sizes: Mapping[str, int]) -> Any:
    """The element of memory at an index; axes missing in the layout are 0."""
    flat: Any = 0
    for axis in order:
        flat = flat * sizes[axis] + at.get(axis, 0)
    return flat


def _count(order: str, sizes: Mapping[str, int]) -> int:
    total = 1
    for axis in order:
        total *= sizes[axis]
    return total


def _reorder(case: Case, orders: Mapping[str, str]) -> Callable[..., None]:
    """Write dst item by item from its position in src, zero where src has no such n or c.

    A view is memory in its own order, and may have gaps between its dimensions.
    """
    source, target = (orders[case.word(name) or ""] for name in ("src_order", "dst_order"))
    theirs, target_sizes = (_sizes(case, number(case, name)) for name in ("pitch", "room"))
    n = number(case, "n")
    c = number(case, "c")
    is_view = case.tile("src") is None
    needs, makes = _count(source, theirs), _count(target, target_sizes)

    def run(x: Mover, src: Any, *rest: Tile) -> None:
        dst, (rows, width) = rest[-1], src.matrix_shape if is_view else (1, x.items(src))
        _enough(x, "src", needs, rows * width)
        _enough(x, "dst", makes, x.items(dst))
        stored = dst.type.dtype.storage

        def cell(_: Lanes, j: Lanes) -> Any:
            at = _split(j, target, target_sizes)
            inside, flat = (at["n"] < n) & (at["c"] < c), _joined(at, source, theirs)
            if is_view:
                value = x.read(src, flat // width, flat % width, inside)
            else:
                value = x.item(src, flat, inside)
            return j, select(inside, value.view(stored), x.word(0, stored)), None

        x.place(1, makes, cell, dst)

    return run


def _enough(x: Mover, name: str, count: int, have: int) -> None:
    x.require(
        count <= have,
        lambda: fail("PTO-S173", f"{name} has {have} elements, but its sizes require {count}"),
    )


TRANSPOSE = Move(lambda case: _reorder(case, ORDERS))
LOAD = Move(lambda case: _reorder(case, LOADED))
