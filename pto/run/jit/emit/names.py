"""Alias analysis of tiles: which tiles share bytes with no other name of the program, and which may
be read before they are written.

The planner gives one address to tiles with disjoint lifetimes. A tile that reads bytes which it has
not written sees the bytes of the previous tile there, so these must be in memory. The analysis is
conservative: a tile counts as exposed unless its first use writes everything that later uses read.

`LiveIn` collects the bytes that the next block could read. Every block starts with zeroed buffers.
Blocks that reuse buffers clear only bytes that operations write, and of those only bytes that may
be read before they are written (`Exposed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pto.core.memory import Space
from pto.ir.graph import Block, Module, Operation, Value
from pto.isa.meaning.handle.view import ALLOC_TILE, SET_VALID
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.meaning.order.queue import POP_FROM
from pto.isa.meaning.tile import extract, move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.fill import FILL
from pto.isa.meaning.tile.img2col import IMG2COL
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.run.jit.emit.tile.tile_layouts import extent
from pto.run.jit.runtime.context import Needs
from pto.run.jit.runtime.values import SPACE_NUMBERS, Lowered, TileDesc

if TYPE_CHECKING:
    from pto.run.jit.emit.emitter import Emitter


Region = tuple[int | Value | None, ...]  # rows and columns: a number, or the value that says it
Span = tuple[Space, int, int]  # a buffer, first byte, end
_NO_PLACE = t.Scalar | t.View | t.VReg | t.Mask | t.Align | t.Vector | t.EventIdArray
_WHOLE = (move.LOAD, FILL, extract.EXTRACT, IMG2COL)  # beside lanes and conversions: fill `dst`


class Names:
    """The addresses of the tiles of a program; `planned` gives those that the planner chose."""

    def __init__(self, module: Module, planned: Callable[[Operation], int | None]) -> None:
        self._planned = planned
        self._spans: dict[int, Span] = {}  # by value
        self._is_known = self._look(module.walk())
        tiles = (op.results[0] for op in module.walk() if op.body is ALLOC_TILE)
        self._tiles = [(tile, span) for tile in tiles if (span := self.span(tile)) is not None]
        self.exposed = Exposed(module.walk())

    def span(self, tile: Value) -> Span | None:
        """The bytes of a tile that is allocated at a known address."""
        maker = tile.maker
        if maker is None or maker.body is not ALLOC_TILE or not isinstance(tile.type, t.TileBuf):
            return None
        given = maker.operand("addr")
        start = self._planned(maker) if given is None else given.number
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
        if own is None or self.exposed.anywhere:
            return True
        sharing = (other for other, span in self._tiles if other is not tile and meet(own, span))
        return any(map(self.exposed, sharing))

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


class Exposed:
    """Analyses the uses of the tiles of a module."""

    def __init__(self, ops: Iterable[Operation]) -> None:
        self._uses: dict[int, list[tuple[int, Operation]]] = {}  # by value, in program order
        self._known: dict[int, bool] = {}
        self.anywhere = False  # True if a pointer is made of a number: it may lead to any byte
        for n, op in enumerate(ops):
            for value in {id(v): v for v in op.operands}.values():
                if isinstance(value.type, t.TileBuf):
                    self._uses.setdefault(id(value), []).append((n, op))
            self.anywhere |= _makes_place(op)

    def __call__(self, tile: Value) -> bool:
        """True if a tile may be read before it is written."""
        tile = tile.origin(lambda op: op.body is RESHAPE)
        found = self._known.get(id(tile))
        if found is None:
            found = self._known[id(tile)] = not self._is_covered(tile)
        return found

    def _is_covered(self, tile: Value) -> bool:
        """True if the first use of a tile, by any name, writes everything that later uses read."""
        names = self._names(tile)
        uses = [(n, op, v) for v in names for n, op in self._uses.get(id(v), []) if _touches(op, v)]
        if not uses:
            return True
        (begin, first, named), *others = sorted(uses, key=lambda use: use[0])
        if any(op.control is not None or _names(op) for _, op, _ in uses):
            return False  # a window, or handed on
        inside = all(_is_inside(op, first.parent) for _, op, _ in others)
        if not inside or not self.fills(first, named):
            return False
        if all(map(_is_whole, names)):
            return True
        if not all(self._has_one_region(value, begin, first) for value in names):
            return False
        if len(names) > 1 and len({self._length(value) for value in names} - {None}) != 1:
            return False
        return all(self._reads_valid(op, value) for _, op, value in others)

    def _has_one_region(self, tile: Value, begin: int, first: Operation) -> bool:
        """True if the valid region of a tile is not set after its first use, number `begin`."""
        sets = [(n, op) for n, op in self._uses.get(id(tile), []) if op.body is SET_VALID]
        early = all(n < begin and _is_inside(first, op.parent) for n, op in sets)
        return early and tile not in self._region(tile)

    def _names(self, tile: Value) -> list[Value]:
        """A tile and its other names."""
        found = [tile]
        for value in found:
            more = (op.results[0] for _, op in self._uses.get(id(value), []) if op.body is RESHAPE)
            found += more
        return found

    def _length(self, tile: Value) -> int | Value | None:
        """The number of valid elements of a vector (a row or a column), which come first in memory;
        a tile that is no vector is returned itself."""
        type = tile.type
        if not isinstance(type, t.TileBuf) or 1 not in type.tile.shape:
            return tile
        rows, cols = self._region(tile)
        return rows if cols == 1 else cols if rows == 1 else tile

    def fills(self, op: Operation, tile: Value) -> bool:
        """True if an operation writes all valid elements of a tile, and reads none of them."""
        if op.operand("dst") is not tile or op.operands.count(tile) != 1:
            return False
        if next(o.role for o in op.row.operands if o.name == "dst") != "out":
            return False
        body = op.body
        own = self._region(tile)
        source = op.operand("src")
        if source is not None and body is move.MOVE:  # writes the common region of both
            return self._region(source) == own
        if source is not None and isinstance(body, Fold):  # one line, none of an empty source
            given, along = self._region(source), int(body.axis == "row")
            some = isinstance(count := given[along], int) and count > 0
            return some and own[along] == 1 and given[1 - along] == own[1 - along]
        return isinstance(body, Lane | Conversion) or body in _WHOLE

    def _reads_valid(self, op: Operation, tile: Value) -> bool:
        """True if an operation reads no more of a tile than is valid."""
        body, own = op.body, self._region(tile)
        if isinstance(body, Fold) or body is move.STORE:
            return True
        if op.results:  # a number: the first element is valid
            return all(value.number == 0 for value in op.operands if value is not tile)
        if not isinstance(body, Lane | Conversion) and body is not move.MOVE:
            return False
        needed = list(own)
        if isinstance(body, Lane) and body.spread is not None:
            needed[body.spread == "row"] = None  # one row, or one column, is spread along it
        others = [v for v in op.operands if isinstance(v.type, t.TileBuf) and v is not tile]
        return all(
            limit is None or side == limit or _is_less(side, limit)
            for other in others
            for side, limit in zip(self._region(other), needed, strict=True)
        )

    def _region(self, tile: Value) -> Region:
        """The valid region of a tile; a region that changes is represented by the tile itself."""
        sets = [op for _, op in self._uses.get(id(tile), []) if op.body is SET_VALID]
        maker, type = tile.maker, tile.type
        if len(sets) > 1 or maker is None or not isinstance(type, t.TileBuf):
            return (tile, tile)
        said = sets[0] if sets else maker
        names = zip(("valid_row", "valid_col"), type.tile.valid, strict=True)
        return tuple(_number(said.operand(name)) if side is None else side for name, side in names)


def _names(op: Operation) -> bool:
    """True if an operation gives another name to bytes: a window, a pointer."""
    return any(not isinstance(result.type, t.Scalar) for result in op.results)


def _touches(op: Operation, tile: Value) -> bool:
    """True if an operation may access bytes of a tile: renaming does not, and scratch operands are
    not used."""
    if op.body is SET_VALID or op.body is RESHAPE:
        return False
    rows = op.row.operands
    roles = {o.role for o in rows if tile in op.group(o.name)}
    return roles != {"tmp"}


def _number(value: Value | None) -> int | Value | None:
    """The number that a value always is, else the value."""
    known = None if value is None else value.number
    return known if isinstance(known, int) else value


def _is_less(side: int | Value | None, limit: int | Value | None) -> bool:
    return isinstance(side, int) and isinstance(limit, int) and side <= limit


def _is_whole(tile: Value) -> bool:
    type = tile.type
    return isinstance(type, t.TileBuf) and type.tile.valid == type.tile.shape


def _is_inside(op: Operation, block: Block | None) -> bool:
    """True if a block, or an operation of it, holds an operation."""
    return op.parent is block or any(outer.parent is block for outer in op.ancestors())


def _makes_place(op: Operation) -> bool:
    """True if a number becomes a place in local memory."""
    if op.body is RESHAPE or not any(isinstance(v.type, t.Scalar) for v in op.operands):
        return False
    return any(isinstance(r.type, t.Ptr | t.MemRef) and r.type.space.is_local for r in op.results)


# ---- live-in analysis of local buffers


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


def _span(tile: TileDesc) -> tuple[int, int, int] | None:
    """The buffer and bytes of a tile, where its place is known."""
    if not isinstance(tile.address, int):
        return None
    size = tile.type.nbytes if tile.pitch is None else extent(tile)
    return tile.memory, tile.address, tile.address + size
