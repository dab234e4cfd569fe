"""What a block can leave in local buffers, and whether the block after it could see that.

Blocks begin with buffers of zeros. Blocks that follow each other in the same buffers need only
those bytes cleared that operations name; and of these only where one may be read before it is
written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.meaning import Fold, Lane
from pto.isa.row import types as t
from pto.run.jit.border.context import Needs
from pto.run.jit.border.values import SPACE_NUMBERS, Native, TilePlace
from pto.run.jit.emit.tile.boxes import extent
from pto.run.jit.emit.written import fills_valid

if TYPE_CHECKING:
    from pto.run.jit.emit.table import Emitter

Span = tuple[int, int, int]  # a buffer, first byte, end


class Reach:
    """Follows the operations of one piece, in the order they are written in."""

    def __init__(self, emitter: Emitter, needs: Needs) -> None:
        self._e = emitter
        self._needs = needs
        self.sure: set[Span] = set()  # written on every way that leads here

    def operation(self, op: Operation) -> None:
        """After an operation that is not control flow."""
        self.pointers(op)
        for value in op.results:
            if isinstance(value.type, t.TileBuf):
                self.name(self._e.value(value), value.type)
        if op.row is None or op.traits.names_only:
            return
        exact = isinstance(op.row.body, Lane | Fold)
        fills = exact or fills_valid(op)
        made: list[Span] = []
        for operand in op.row.operands:
            for value in op.group(operand.name):
                native = self._e.value(value)
                if not isinstance(native, TilePlace):
                    continue
                span = _span(native)
                if operand.role in ("in", "inout") and not self._is_written(span):
                    self._needs.unsure.add(native.memory)
                if operand.role == "out" and fills and span is not None and _is_full(native):
                    made.append(span)
        self.sure.update(made)

    def pointers(self, op: Operation) -> None:
        """What lies behind them may be any byte of the buffer."""
        for value in (*op.operands, *op.results):
            space = getattr(value.type, "space", None)
            if isinstance(value.type, t.Ptr | t.MemRef) and isinstance(space, Space):
                self._anywhere([space] if space.is_local else [])

    def _is_written(self, span: Span | None) -> bool:
        if span is None:
            return False
        space, first, end = span
        return any(s == space and a <= first and end <= b for s, a, b in self.sure)

    def name(self, native: Native, type: t.TileBuf) -> None:
        span = _span(native) if isinstance(native, TilePlace) else None
        if span is not None:
            self._needs.spans.add(span)
        elif isinstance(native, TilePlace):
            self._anywhere([native.type.role.space])
        else:
            self._anywhere([type.tile.role.space])

    def _anywhere(self, spaces: Iterable[Space]) -> None:
        for space in spaces:
            number = SPACE_NUMBERS[space]
            self._needs.unsure.add(number)
            self._needs.spans.add((number, 0, self._e.compiler.profile.buffers[space.value]))


def _span(tile: TilePlace) -> Span | None:
    """The bytes of a tile, where its place is known."""
    if not isinstance(tile.address, int):
        return None
    size = tile.type.nbytes if tile.pitch is None else extent(tile)
    return tile.memory, tile.address, tile.address + size


def _is_full(tile: TilePlace) -> bool:
    """Whether all of its bytes are of its valid region."""
    values = tile.type.rows * tile.type.cols * tile.type.itemsize
    return tile.pitch is None and tile.valid == tile.type.shape and values == tile.type.nbytes
