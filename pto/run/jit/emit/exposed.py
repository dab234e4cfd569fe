"""Tiles that may be read before they are written.

The planner gives one address to tiles with disjoint lifetimes. A tile that reads bytes which it has
not written sees the bytes of the previous tile there, so these must be in memory. The analysis is
conservative: a tile counts as exposed unless its first use writes everything that later uses read.
"""

from __future__ import annotations

from collections.abc import Iterable

from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning import Fold, Lane
from pto.isa.meaning.handle.view import SET_VALID
from pto.isa.meaning.tile import extract, move
from pto.isa.meaning.tile.convert import Conversion
from pto.isa.meaning.tile.fill import FILL
from pto.isa.meaning.tile.img2col import IMG2COL
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.verify.operation import constant

Region = tuple[int | Value | None, ...]  # rows and columns: a number, or the value that says it
_WHOLE = (move.LOAD, FILL, extract.EXTRACT, IMG2COL)  # beside lanes and conversions: fill `dst`


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
        found = self._known.get(id(tile))
        if found is None:
            found = self._known[id(tile)] = not self._is_covered(tile)
        return found

    def _is_covered(self, tile: Value) -> bool:
        names, uses = self._names(tile), list[tuple[int, Operation, Value]]()
        for value in names:
            uses += [
                (n, op, value) for n, op in self._uses.get(id(value), []) if _touches(op, value)
            ]
        if not uses:
            return True
        (_, first, named), *others = sorted(uses, key=lambda use: use[0])
        if any(op.row is None or op.control is not None or _names(op) for _, op, _ in uses):
            return False  # a window, or handed on
        inside = all(_is_inside(op, first.parent) for _, op, _ in others)
        if not inside or not self._fills(first, named):
            return False
        if all(map(_is_whole, names)):
            return True
        if len(names) > 1 and len({self._length(value) for value in names} - {None}) != 1:
            return False
        return all(self._reads_valid(op, value) for _, op, value in others)

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

    def _fills(self, op: Operation, tile: Value) -> bool:
        """True if an operation writes all valid elements of a tile, and reads none of them."""
        if op.operand("dst") is not tile or op.operands.count(tile) != 1 or op.row is None:
            return False
        if next(o.role for o in op.row.operands if o.name == "dst") != "out":
            return False
        body, own = op.body, self._region(tile)
        if isinstance(body, Fold):
            return own[body.axis == "row"] == 1
        if body is move.MOVE:
            source = op.operand("src")
            return source is not None and self._region(source) == own
        return isinstance(body, Lane | Conversion) or body in _WHOLE

    def _reads_valid(self, op: Operation, tile: Value) -> bool:
        """True if an operation reads no more of a tile than is valid."""
        body, own = op.body, self._region(tile)
        if isinstance(body, Fold) or body is move.STORE:
            return True
        if op.results:  # a number: the first element is valid
            return all(constant(value) == 0 for value in op.operands if value is not tile)
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
    rows = op.row.operands if op.row is not None else ()
    roles = {o.role for o in rows if tile in op.group(o.name)}
    return roles != {"tmp"}


def _number(value: Value | None) -> int | Value | None:
    """The number that a value always is, else the value."""
    known = None if value is None else constant(value)
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
