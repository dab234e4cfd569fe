"""Infers result types that the text may leave out from the operands; None if not possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pto.ir.graph import Operation, Value
from pto.isa.row.attributes import Array, Int
from pto.isa.row.types import Dim, TileBuf, Type, View


def _same(op: Operation) -> Type | None:
    return op.operands[0].type if op.operands else None


def _elem(op: Operation) -> Type | None:
    return getattr(op.operands[0].type, "elem", op.operands[0].type) if op.operands else None


def _partition(op: Operation) -> Type | None:
    """The type of a window on a view: constant sizes are static, other sizes `?`."""
    source = op.operands[0].type if op.operands else None
    sizes = [v.literal for v in op.group("sizes")]  # not through casts: PTOAS infers `?` for those
    if not isinstance(source, View) or len(sizes) != len(source.shape):
        return None
    shape = tuple(None if n is None or n < 0 else n for n in sizes)
    return View(shape, source.elem, partition=True)


def _window(op: Operation) -> tuple[TileBuf, tuple[int, int]] | None:
    """The parent tile and the size of a window on it."""
    source = op.operands[0].type if op.operands else None
    sizes = op.attrs.get("sizes")
    if not isinstance(source, TileBuf) or not isinstance(sizes, Array) or len(sizes.items) != 2:
        return None
    rows, cols = (n.value if isinstance(n, Int) else 0 for n in sizes.items)
    return (source, (rows, cols)) if rows > 0 and cols > 0 else None


def _part_of(source: TileBuf, shape: tuple[int, int], valid: tuple[Dim, Dim]) -> Type:
    tile = replace(source.tile, rows=shape[0], cols=shape[1], valid=valid)
    return TileBuf(source.elem, tile)


def _subview(op: Operation) -> Type | None:
    """All of the window is valid unless the text restricts it, whatever the parent's region."""
    window = _window(op)
    if window is None:
        return None
    source, shape = window
    counts = (op.operand("valid_row"), op.operand("valid_col"))
    rows, cols = (_at_most(v, size) for v, size in zip(counts, shape, strict=True))
    return _part_of(source, shape, (rows, cols))


def _at_most(value: Value | None, size: int) -> Dim:
    number = size if value is None else value.literal
    return None if number is None else max(0, min(number, size))


def _subset(op: Operation) -> Type | None:
    """The window's share of the parent's valid region.

    The region repeats along the tile (a wide workspace holds several of its size), so a window that
    starts where it ends sees a full one. PTOAS SubsetOp::inferReturnTypes.
    """
    window = _window(op)
    offsets = op.group("offsets")
    if window is None or len(offsets) != 2:
        return None
    source, shape = window
    rows, cols = (
        _share(valid, offset.literal, size)
        for valid, offset, size in zip(source.tile.valid, offsets, shape, strict=True)
    )
    return _part_of(source, shape, (rows, cols))


def _share(valid: Dim, offset: int | None, size: int) -> Dim:
    if valid is None or offset is None:
        return None
    return min(size, valid - offset % valid) if valid else 0


INFERRED: dict[str, Callable[[Operation], Type | None]] = {
    "same": _same,
    "elem": _elem,
    "partition": _partition,
    "subview": _subview,
    "subset": _subset,
}
FROM_NUMBERS = frozenset(("partition", "subview", "subset"))  # not from types and attributes alone
