"""Live-in analysis of local buffers: which bytes of a block the next block could read.

Every block starts with zeroed buffers. Blocks that reuse buffers need to clear only bytes that
operations write, and of those only bytes that may be read before they are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pto.core.memory import Space
from pto.core.pad import Pad
from pto.ir.graph import Operation
from pto.isa.meaning import Fold, Lane
from pto.isa.meaning.order.queue import POP_FROM
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.traits import RegionRule
from pto.run.jit.emit.tile.boxes import extent, field
from pto.run.jit.llvm.text import Val
from pto.run.jit.runtime.context import Needs
from pto.run.jit.runtime.values import SPACE_NUMBERS, Lowered, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter

Span = tuple[int, int, int]  # a buffer, first byte, end


class Reach:
    """Analyses the operations of one region, in the order of emission."""

    def __init__(self, emitter: Emitter, needs: Needs) -> None:
        self._e = emitter
        self._needs = needs
        self.sure: set[Span] = set()  # written on every path to this point

    def operation(self, op: Operation) -> None:
        """After an operation that is not control flow."""
        self.pointers(op)
        for value in (*op.operands, *op.results):
            if isinstance(value.type, t.TileBuf):
                self._uses(value.type.tile.space)
        for value in op.results:
            native = self._e.value(value) if isinstance(value.type, t.TileBuf) else None
            if native is not None and isinstance(native, TileDesc) and op.body is POP_FROM:
                self._needs.unsure.add(
                    native.memory
                )  # a slot, which the opening of the queue records
                self._needs.popped = max(self._needs.popped, native.type.nbytes)
            elif native is not None and isinstance(value.type, t.TileBuf):
                self.name(native, value.type)
        if op.row is None or op.traits.names_only or op.body is RESHAPE:
            return
        tiles = [
            (operand.role, native)
            for operand in op.row.operands
            for value in op.group(operand.name)
            if isinstance(native := self._e.value(value), TileDesc)
        ]
        exact = isinstance(op.body, Lane | Fold)
        fills = exact or fills_valid(op)
        region = _region([tile for _, tile in tiles]) if exact else None
        made: list[Span] = []
        for role, tile in tiles:
            if role in ("in", "inout") and not self._is_written(_used(tile, region)):
                self._needs.unsure.add(tile.memory)
            span = _filled(tile, written_region(op, tile)) if role == "out" and fills else None
            if span is not None:
                made.append(span)
        self.sure.update(made)

    def pointers(self, op: Operation) -> None:
        """A pointer may access any byte of its buffer."""
        for value in (*op.operands, *op.results):
            space = getattr(value.type, "space", None)
            if isinstance(value.type, t.Ptr | t.MemRef) and isinstance(space, Space):
                self._anywhere([space] if space.is_local else [])

    def _is_written(self, span: Span | None) -> bool:
        if span is None:
            return False
        space, first, end = span
        return span in self.sure or any(
            s == space and a <= first and end <= b for s, a, b in self.sure
        )

    def name(self, native: Lowered, type: t.TileBuf) -> None:
        span = _span(native) if isinstance(native, TileDesc) else None
        if span is not None:
            self._needs.spans.add(span)
        elif isinstance(native, TileDesc):
            self._anywhere([native.type.space])
        else:
            self._anywhere([type.tile.space])

    def _uses(self, space: Space) -> None:
        self._needs.used.add((self._e.compiler.side, SPACE_NUMBERS[space]))

    def _anywhere(self, spaces: Iterable[Space]) -> None:
        for space in spaces:
            self._uses(space)
            number = SPACE_NUMBERS[space]
            self._needs.unsure.add(number)
            self._needs.spans.add((number, 0, self._e.compiler.profile.buffers[space.value]))


def fills_valid(op: Operation) -> bool:
    """A load that pads nothing."""
    dst, pad = op.operand("dst"), op.operand("pad_value")
    if op.traits.region is not RegionRule.VIEW or dst is None or pad is not None:
        return False
    return isinstance(dst.type, t.TileBuf) and dst.type.tile.pad == Pad.NULL


def written_region(op: Operation, dst: TileDesc) -> tuple[Val, Val]:
    """The rows and columns of a destination that an operation writes: the valid ones; of a fold
    the first row or the first column."""
    rows, cols = dst.valid
    if isinstance(op.body, Fold):
        return (1, cols) if op.body.axis == "column" else (rows, 1)
    return rows, cols


def _region(tiles: Iterable[TileDesc]) -> tuple[int, int] | None:
    """The largest region that an elementwise instruction or a fold reads of its sources; None:
    all."""
    height = width = 0
    for rows, cols in (tile.valid for tile in tiles):
        if not (isinstance(rows, int) and isinstance(cols, int)):
            return None
        height, width = max(height, rows), max(width, cols)
    return height, width


def _span(tile: TileDesc) -> Span | None:
    """The bytes of a tile, where its place is known."""
    if not isinstance(tile.address, int):
        return None
    size = tile.type.nbytes if tile.pitch is None else extent(tile)
    return tile.memory, tile.address, tile.address + size


def _used(tile: TileDesc, region: tuple[int, int] | None) -> Span | None:
    """The bytes an instruction may read of a tile: those of a region, else all."""
    span = _span(tile)
    if span is None or region is None or tile.type.layout.is_boxed or tile.type.dtype.is_packed:
        return span
    rows, cols = map(min, region, tile.type.shape)
    if (rows, cols) == tile.type.shape:
        return span
    (down,), (across,) = (lines := field(tile)).rows, lines.cols
    nbytes = ((rows - 1) * down.step + (cols - 1) * across.step + 1) * tile.type.itemsize
    return (span[0], span[1], span[1] + max(0, nbytes)) if rows and cols else None


def _filled(tile: TileDesc, region: tuple[Val, Val]) -> Span | None:
    """The bytes of a region, if it is contiguous."""
    rows, cols = region
    if not isinstance(rows, int) or not isinstance(cols, int):
        return None
    used, values = _used(tile, (rows, cols)), rows * cols * tile.type.itemsize
    plain = not (tile.type.layout.is_boxed or tile.type.dtype.is_packed)
    whole = plain or (tile.pitch is None and region == tile.type.shape)
    return used if whole and used is not None and used[2] - used[1] == values else None
