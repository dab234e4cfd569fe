"""Tiles that a function reads before any operation has written them, found in program order.

Only tiles that the planner places are checked: one with an explicit address, or one behind a
pointer, may share bytes with other tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation, Value
from pto.isa.row import types as t
from pto.isa.row.traits import Control


def unwritten(function: Operation) -> Iterator[Diagnostic]:
    """A warning for each tile with a read as its first use."""
    used: set[Value] = set()
    found: list[tuple[Operation, Value]] = []
    for op in function.walk():
        row = op.row
        if row is None or (row.traits.allocates and op.group(row.traits.allocates)):
            return
        for value in op.operands if not is_name(op) else ():
            type = value.type
            if isinstance(type, t.Ptr | t.MemRef) and type.space.is_local:
                return
            if not isinstance(type, t.TileBuf) or (tile := tile_of(value)) in used:
                continue
            used.add(tile)
            if _reads(op, value) and _is_certain(op, tile):
                found.append((op, tile))
    for op, tile in found:
        message = f"'{op.name}' op reads tile {tile.name}, and nothing has written it before"
        yield Diagnostic("PTO-V219", message, op.loc, "warning", help=_HELP)


_HELP = "load or fill it first: pto.zeros, pto.full; until then its bytes have no defined value"


def is_name(op: Operation) -> bool:
    """True for an alias of a tile: a window, a reshape."""
    return op.traits.names_only or any(isinstance(r.type, t.TileBuf) for r in op.results)


def tile_of(value: Value) -> Value:
    """The tile of a window, reshape or other alias."""
    return value.origin(
        lambda op: (
            is_name(op) and not op.traits.allocates and isinstance(op.operands[0].type, t.TileBuf)
        )
    )


def _reads(op: Operation, value: Value) -> bool:
    row = op.row
    if row is None or op.control is not None or row.order is not None or row.body is None:
        return False
    # an optional operand may be scratch
    read = (o for o in row.operands if o.role == "in" and not o.optional)
    return any(v is value for o in read for v in op.group(o.name))


def _is_certain(op: Operation, tile: Value) -> bool:
    """True if the read always comes first: an allocation, and no condition between the two."""
    maker = tile.maker
    if maker is None or not maker.traits.allocates:
        return False
    inside = op
    while inside.parent is not maker.parent:
        around = inside.parent_op
        if around is None or around.control in (Control.IF, Control.WHILE):
            return False
        inside = around
    return True
