"""The local buffers of a function: type, size in bytes and lifetime of each.

Buffers without an address are placed in `memory.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pto.core.errors import fail
from pto.core.memory import Space, space
from pto.ir.graph import Operation, Value
from pto.ir.liveness import Lifetime, Timeline
from pto.isa.meaning.cube.factors import SCALES
from pto.isa.meaning.handle.config import ASSIGN, SCALE_ADDRESS
from pto.isa.meaning.handle.memref import DECLARE
from pto.isa.meaning.handle.view import CAST_POINTER
from pto.isa.meaning.order.queue import POP
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool, Enum, Int, Str
from pto.verify.operation import constant


@dataclass(frozen=True, slots=True, eq=False)
class LocalBuffer:
    """Bytes of a local buffer that belong to one operation.

    `root` is the value that refers to them; without one they are reserved for the whole function.
    `alive` is None for a buffer that is never used, which may have any address.
    """

    op: Operation
    name: str
    type: str
    space: Space
    nbytes: int
    root: Value | None = None
    fixed: int | None = None
    alive: Lifetime | None = None

    def living(self, times: Timeline) -> LocalBuffer:
        """The same buffer with its lifetime."""
        return replace(self, alive=times.whole if self.root is None else times.of(self.root))


def buffers(function: Operation) -> Iterator[LocalBuffer]:
    """Every buffer the operations of a function make, in program order."""
    filled = {v for op in function.walk() for v in _filled_by(op)}
    for op in function.walk():
        for buffer in _made(op) if op.results else ():
            is_elsewhere = buffer.root in filled
            yield replace(buffer, nbytes=0, fixed=0) if is_elsewhere else buffer


def scaled(function: Operation) -> dict[Value, Value]:
    """Scales of MX products -> their operands. The matrix unit finds scales by the address of the
    operand (pto-isa TMatmul.hpp: mad_mx takes no other)."""
    found: dict[Value, Value] = {}
    for op in function.walk():
        tiles = {v.type.tile.space: v for v in op.operands if isinstance(v.type, t.TileBuf)}
        for operand, scale in SCALES.items():
            if operand in tiles and scale in tiles:
                found[tiles[scale]] = tiles[operand]
    return found


def unplaced(function: Operation, times: Timeline) -> Iterator[Operation]:
    """Operations that use local memory with an address or size that is no constant."""
    for op in function.walk():
        if any(constant(v) is None for v in _addresses(op)):
            yield op
        if _is_raw_pointer(op) and op.operands[0] not in times.names:
            yield op


def _is_raw_pointer(op: Operation) -> bool:
    """A local pointer made from a number."""
    if op.body is not CAST_POINTER or not op.operands or not op.results:
        return False
    source, result = op.operands[0].type, op.results[0].type
    return isinstance(source, t.Scalar) and isinstance(result, t.Ptr) and result.space.is_local


def _filled_by(op: Operation) -> list[Value]:
    """Tiles that get their address from this operation: their own declaration reserves nothing."""
    if op.body is SCALE_ADDRESS:
        return op.group("dst")
    values = op.group("tile") if op.body in (POP, ASSIGN) else []
    return [v for v in values if v.maker and v.maker.body is DECLARE]


def _addresses(op: Operation) -> list[Value]:
    return op.group(op.traits.allocates)


def _made(op: Operation) -> Iterator[LocalBuffer]:
    """The buffers of an operation; several for a multiple buffer."""
    if op.row is RESERVE_BUFFER:
        yield _reserved(op)
    elif op.traits.allocates:
        for address in _addresses(op) or (None,):
            yield from _handle(op, address)


def _handle(op: Operation, address: Value | None) -> Iterator[LocalBuffer]:
    value = op.results[0]
    at = None if address is None else constant(address)
    if address is not None and at is None:
        return
    name, type = f"%{value.name}", value.type
    if isinstance(type, t.TileBuf):
        tile = type.tile
        yield LocalBuffer(op, name, str(tile), tile.space, tile.nbytes, value, at)
    elif isinstance(type, t.MultiTile):
        tile, size = type.slot.tile, type.count * type.slot.tile.nbytes
        yield LocalBuffer(op, name, f"{type.count} of {tile}", tile.space, size, value, at)
    elif isinstance(type, t.MemRef) and type.space.is_local:
        shape = "x".join("?" if n is None else str(n) for n in type.shape)
        words = f"{type.space.value} {shape}x{type.elem.name}"
        yield LocalBuffer(op, name, words, type.space, _memref_bytes(op, type), value, at)


def _memref_bytes(op: Operation, type: t.MemRef) -> int:
    given = iter(op.group("sizes"))
    size = 1 if type.elem.dtype is None else type.elem.dtype.itemsize
    for extent in type.shape:
        number = extent
        if number is None:
            value = next(given, None)
            number = None if value is None else constant(value)
        if number is None or number < 0:
            raise fail(
                "PTO-M123",
                f"'{op.name}' op makes a buffer whose size is known only when the program runs",
                loc=op.loc,
                help="local buffers need constant sizes; narrow the valid region instead",
            )
        size *= number
    return size


def _reserved(op: Operation) -> LocalBuffer:
    name, size, base = (op.attrs.get(k) for k in ("name", "size", "base"))
    where, auto = op.attrs.get("location"), op.attrs.get("autoAlloc")
    placed = isinstance(auto, Bool) and not auto.value and isinstance(base, Int)
    return LocalBuffer(
        op,
        name.value if isinstance(name, Str) else "",
        "queue",
        space(where.value) if isinstance(where, Enum) else Space.UB,
        size.value if isinstance(size, Int) else 0,
        fixed=base.value if placed and isinstance(base, Int) else None,
    )
