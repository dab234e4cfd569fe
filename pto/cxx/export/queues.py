"""Queues between the sides of a core: `TPipe`, and what is pushed, popped and freed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pto.core.errors import fail
from pto.cxx.export.places import declare_tile
from pto.ir.graph import Operation
from pto.isa.meaning.order.ring import slot_count
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool, Int
from pto.isa.row.order import Free, OfQueue, Open, Order, Pop, Push, Slots

if TYPE_CHECKING:
    from pto.cxx.export.function import Writer

_SPLITS = ("TILE_NO_SPLIT", "TILE_UP_DOWN", "TILE_LEFT_RIGHT")
_WAYS = {1: "DIR_C2V", 2: "DIR_V2C", 3: "DIR_BOTH"}


def _number(op: Operation, name: str, default: int = 0) -> int:
    found = op.attrs.get(name)
    return found.value if isinstance(found, Int) else default


def _slots(writer: Writer, op: Operation) -> None:
    writer.texts[id(op.results[0])] = hex(writer.placement.address(op))


def _open(writer: Writer, op: Operation) -> None:
    way, size, n = _number(op, "dir_mask"), _number(op, "slot_size"), _number(op, "id")
    names = ("gm_slot_buffer", "c2v_consumer_buf", "v2c_consumer_buf")
    if op.results or op.group("gm_slot_tensor"):
        raise fail("PTO-U249", "C++ is written for queues with a consumer buffer, by number")
    found = [op.operand(name) for name in names]
    room, *buffers = (None if v is None else writer.text(v) for v in found)
    given = [f"(__gm__ void*){room or 'nullptr'}", *(b or "0" for b in buffers)]
    whole = op.attrs.get("nosplit")
    slots = slot_count(way, _number(op, "slot_num"))
    kind = [str(4 * n), f"Direction::{_WAYS[way]}", str(size), str(slots)]
    kind += [
        str(_number(op, "local_slot_num", slots)),
        *(["true"] if isinstance(whole, Bool) and whole.value else []),
    ]
    writer.line(f"TPipe<{', '.join(kind)}> {_queue(op)}({', '.join(given)});")


def _queue(op: Operation) -> str:
    return f"queue{_number(op, 'id')}"


def _split(op: Operation) -> str:
    return f"TileSplitAxis::{_SPLITS[_number(op, 'split')]}"


def _push(writer: Writer, op: Operation) -> None:
    tile = op.operand("tile")
    assert tile is not None
    name, queue = writer.text(tile), _queue(op)
    writer.line(f"TPUSH<decltype({queue}), decltype({name}), {_split(op)}>({queue}, {name});")


def _pop(writer: Writer, op: Operation) -> None:
    result = op.results[0]
    if not isinstance(result.type, t.TileBuf):
        raise fail("PTO-U249", "C++ is written for queues of tiles")
    name, queue = declare_tile(writer, result), _queue(op)
    writer.line(f"TPOP<decltype({queue}), decltype({name}), {_split(op)}>({queue}, {name});")


def _free(writer: Writer, op: Operation) -> None:
    queue = _queue(op)
    writer.line(f"TFREE<decltype({queue}), {_split(op)}>({queue});")


def _refused(writer: Writer, op: Operation) -> None:
    raise fail("PTO-U249", "C++ is written for queues of tiles by number")


_KINDS: dict[type[Order], Callable[[Writer, Operation], None]] = {
    Slots: _slots,
    Open: _open,
    Push: _push,
    Pop: _pop,
    Free: _free,
}


def of_queue(op: Operation) -> Callable[[Writer, Operation], None] | None:
    """How an operation on a queue is written; None for others and for queues held by a value."""
    order = op.row.order if op.row is not None else None
    if order is None or not isinstance(order, Slots | Open | OfQueue):
        return None
    if isinstance(order, OfQueue) and op.group(order.handle):
        return None
    return _KINDS.get(type(order), _refused)
