"""Windows on tiles and views: values that name part of another value's place; no data moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.global_tensor import GlobalTensor
from pto.isa.meaning.handle.view import as_tile, as_view, tile_type
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.row import types as t
from pto.isa.row.attributes import Array, Int
from pto.isa.rules.rule import Case


def sizes_of(case: Case) -> list[int]:
    """The written sizes of a window."""
    value = case.op.attrs.get("sizes")
    items = value.items if isinstance(value, Array) else ()
    return [n.value for n in items if isinstance(n, Int)]


def _subview(case: Case) -> Callable[..., Any]:
    """All of the window is valid unless operands say less, whatever of the parent is."""
    source_type, result = case.type("source"), case.op.results[0].type
    sizes = sizes_of(case)
    if not isinstance(result, t.TileBuf):
        return _part_of_view(source_type, sizes)
    type = tile_type(result)
    region = [
        size if valid is None else valid for valid, size in zip(type.valid, sizes, strict=True)
    ]

    def window(
        core: Machine, source: Any, offsets: list[int], rows: int | None, cols: int | None
    ) -> Any:
        valid = (
            region[0] if rows is None else min(rows, type.rows),
            region[1] if cols is None else min(cols, type.cols),
        )
        row, col = offsets
        return as_tile(source, source_type).window(row, col, type, valid)

    return window


def _part_of_view(source_type: t.Type | None, sizes: list[int]) -> Callable[..., GlobalTensor]:
    def part(core: Machine, source: Any, offsets: list[int], *valid: Any) -> GlobalTensor:
        return as_view(source, source_type).partition(offsets, sizes)

    return part


def _subset(case: Case) -> Callable[..., Any]:
    """Valid is the window's share of the parent's valid region.

    That region repeats along the tile (a wide workspace holds several of its size), so a window
    that starts where it ends sees a full one. PTOAS SubsetOp::inferReturnTypes.
    """
    source_type, type = case.type("source"), tile_type(case.op.results[0].type)

    def window(core: Machine, source: Any, offsets: list[int]) -> Any:
        parent = as_tile(source, source_type)
        row, col = offsets
        rows, cols = map(share, parent.get_valid(), offsets, type.shape)
        return parent.window(row, col, type, (rows, cols))

    return window


def share(valid: int, offset: int, size: int) -> int:
    """What of a valid extent a window of `size` from `offset` on sees."""
    return min(size, valid - offset % valid) if valid else 0


SUBVIEW = Do(_subview)
SUBSET = Do(_subset)
