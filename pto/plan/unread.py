"""Tiles that a function writes and never reads: the work that fills them has no effect.

A tile counts as read if any alias of it is more than a destination: an operand that is read, read
and written, or scratch, an argument of a call, a value that a region yields. A tile at an address
is read if one that shares bytes with it is. There is no warning for a second destination of an
instruction if its other destination is read, nor for functions with pointers into local buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation, Value
from pto.isa.row import types as t
from pto.plan.stores import is_name, tile_of


@dataclass(slots=True)
class _Tile:
    """A tile of the function, with all its aliases."""

    value: Value
    writers: list[Operation] = field(default_factory=list[Operation])
    is_read: bool = False
    start: int | None = None  # its address; None: the planner places it

    def meets(self, other: _Tile) -> bool:
        """True if two tiles at addresses share bytes."""
        mine, theirs = self.value.type, other.value.type
        if not isinstance(mine, t.TileBuf) or not isinstance(theirs, t.TileBuf):
            return False
        if self.start is None or other.start is None or mine.tile.space is not theirs.tile.space:
            return False
        ends = self.start + mine.tile.nbytes, other.start + theirs.tile.nbytes
        return self.start < ends[1] and other.start < ends[0]


def unread(function: Operation) -> Iterator[Diagnostic]:
    """A warning for each tile that is written and never read."""
    tiles: dict[Value, _Tile] = {}
    for op in function.walk():
        if not _note(op, tiles):
            return
    for tile in [candidate for candidate in tiles.values() if candidate.is_read]:
        for other in tiles.values():
            other.is_read |= tile.meets(other)
    read = {key for key, tile in tiles.items() if tile.is_read}
    for tile in tiles.values():
        if (
            tile.writers
            and not tile.is_read
            and not any(_is_useful(op, read) for op in tile.writers)
        ):
            op = tile.writers[0]
            idle = f"writes tile {tile.value.name}, and nothing reads it"
            yield op.finding("PTO-V220", idle, "warning", help=_HELP)


_HELP = "store it, use it, or leave the instruction out"


def _note(op: Operation, tiles: dict[Value, _Tile]) -> bool:
    """Record the accesses of an operation to tiles; False if some aliases cannot be followed."""
    row = op.row
    if row.traits.allocates and len(op.results) == 1 and isinstance(op.results[0].type, t.TileBuf):
        address = op.group(row.traits.allocates)
        start = address[0].number if address else None
        tiles[op.results[0]] = _Tile(op.results[0], start=start)
        return not address or start is not None
    if any(_is_local(v) for v in (*op.operands, *op.results)):
        return False
    if is_name(op):
        return True
    for value in op.operands:
        tile = tiles.get(tile_of(value))
        if tile is None:
            continue
        if _is_destination(op, value) and row.order is None and not _reads(op, value):
            tile.writers.append(op)
        else:
            tile.is_read = True
    return True


def _reads(op: Operation, value: Value) -> bool:
    """True if a destination is also an operand that is read."""
    return value in op.given("in", "inout", "tmp")


def _is_local(value: Value) -> bool:
    type = value.type
    if isinstance(type, t.MultiTile):
        return True
    return isinstance(type, t.Ptr | t.MemRef) and type.space.is_local


def _is_useful(op: Operation, read: AbstractSet[Value]) -> bool:
    """True if another destination of an operation is read."""
    return any(tile_of(value) in read for value in op.operands if _is_destination(op, value))


def _is_destination(op: Operation, value: Value) -> bool:
    return value in op.given("out")
