"""Live-in analysis of local buffers: which bytes of a block the next block could read.

Every block starts with zeroed buffers. Blocks that reuse buffers need to clear only bytes that
operations write, and of those only bytes that may be read before they are written
(`names.Exposed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.meaning.order.queue import POP_FROM
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.run.jit.emit.tile.strided import extent
from pto.run.jit.runtime.context import Needs
from pto.run.jit.runtime.values import SPACE_NUMBERS, Lowered, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter

Span = tuple[int, int, int]  # a buffer, first byte, end


class LiveIn:
    """Collects the buffers and byte ranges that the operations of one region use."""

    def __init__(self, emitter: Emitter, needs: Needs) -> None:
        self._e = emitter
        self._needs = needs

    def operation(self, op: Operation) -> None:
        """After an operation that is not control flow."""
        self.pointers(op)
        for value in (*op.operands, *op.results):
            if isinstance(value.type, t.TileBuf):
                self._uses(value.type.tile.space)
        for value in op.results:
            native = self._e.value(value) if isinstance(value.type, t.TileBuf) else None
            if isinstance(native, TileDesc) and op.body is POP_FROM:
                # a slot, which the opening of the queue records
                self._needs.read_unwritten.add(native.memory)
                self._needs.popped = max(self._needs.popped, native.type.nbytes)
            elif native is not None and isinstance(value.type, t.TileBuf):
                self.name(native, value.type)
        if op.traits.names_only or op.body is RESHAPE:
            return
        exposed = self._e.compiler.names.exposed
        for operand in op.row.operands:
            for value in op.group(operand.name) if operand.role in ("in", "inout") else ():
                native = self._e.value(value)
                if isinstance(native, TileDesc) and exposed(value):
                    self._needs.read_unwritten.add(native.memory)

    def pointers(self, op: Operation) -> None:
        """A pointer may access any byte of its buffer."""
        for value in (*op.operands, *op.results):
            space = getattr(value.type, "space", None)
            if isinstance(value.type, t.Ptr | t.MemRef) and isinstance(space, Space):
                self._anywhere([space] if space.is_local else [])

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
            self._needs.read_unwritten.add(number)
            self._needs.spans.add((number, 0, self._e.compiler.profile.buffers[space.value]))


def _span(tile: TileDesc) -> Span | None:
    """The bytes of a tile, where its place is known."""
    if not isinstance(tile.address, int):
        return None
    size = tile.type.nbytes if tile.pitch is None else extent(tile)
    return tile.memory, tile.address, tile.address + size
