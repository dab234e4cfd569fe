"""Alias analysis of tiles: which tiles share bytes with no other name of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pto.core.memory import Space
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.handle.view import ALLOC_TILE
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.exposed import Exposed
from pto.verify.operation import constant

Span = tuple[Space, int, int]  # a buffer, first byte, end
_NO_PLACE = t.Scalar | t.View | t.VReg | t.Mask | t.Align | t.Vector | t.EventIdArray


class Names:
    """The addresses of the tiles of a program; `planned` gives those that the planner chose."""

    def __init__(self, module: Module, planned: Callable[[Operation], int | None]) -> None:
        self._planned = planned
        self._spans: dict[int, Span] = {}  # by value
        self._is_known = self._look(module.walk())
        tiles = (op.results[0] for op in module.walk() if op.body is ALLOC_TILE)
        self._tiles = [(tile, span) for tile in tiles if (span := self.span(tile)) is not None]
        self._exposed = Exposed(module.walk())

    def span(self, tile: Value) -> Span | None:
        """The bytes of a tile that is allocated at a known address."""
        maker = tile.maker
        if maker is None or maker.body is not ALLOC_TILE or not isinstance(tile.type, t.TileBuf):
            return None
        given = maker.operand("addr")
        start = self._planned(maker) if given is None else constant(given)
        type = tile.type.tile
        return None if start is None else (type.space, start, start + type.nbytes)

    def is_alone(self, tile: Value) -> bool:
        """True if only uses of this tile access its bytes: no other tile of the program overlaps
        it, or the planner chose the address, and tiles that share it write before they read."""
        maker = tile.maker
        if maker is None or maker.body is not ALLOC_TILE:
            return False
        if maker.operand("addr") is None:
            return not self._is_seen_later(tile)
        own = self.span(tile) if self._is_known else None
        if own is None:
            return False
        return not any(n != id(tile) and meet(own, other) for n, other in self._spans.items())

    def _is_seen_later(self, tile: Value) -> bool:
        """True if a tile that shares the address may read bytes of this one."""
        own = self.span(tile)
        if own is None or self._exposed.anywhere:
            return True
        sharing = (other for other, span in self._tiles if other is not tile and meet(own, span))
        return any(map(self._exposed, sharing))

    def _look(self, ops: Iterable[Operation]) -> bool:
        """Collect all tiles; False if the program can make other names for local memory."""
        for op in ops:
            args = [a for region in op.regions for block in region.blocks for a in block.args]
            for value in (*op.results, *args):
                if isinstance(value.type, _NO_PLACE) or _is_global(value.type):
                    continue
                if value.maker is not None and value.maker.body is RESHAPE:
                    continue  # the tile under another name, which is a use of it
                found = self.span(value)
                if found is None:
                    return False
                self._spans[id(value)] = found
            if op.control is Control.CALL:
                return False
        return True


def meet(a: Span, b: Span) -> bool:
    """True if two spans share bytes."""
    return a[0] is b[0] and a[1] < b[2] and b[1] < a[2]


def _is_global(type: t.Type) -> bool:
    return isinstance(type, t.Ptr | t.MemRef) and type.space is Space.GM
