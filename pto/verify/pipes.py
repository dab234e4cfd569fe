"""Queues between cube and vector side: both ends must exist and agree on how tiles are split."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Block, Module, Operation
from pto.isa.meaning.order.ring import period_of
from pto.isa.row.attributes import Bool, integer, word
from pto.isa.row.order import Allocate, Free, OfQueue, OpenQueue, Pop, Push, QueueSlots
from pto.isa.row.traits import Control
from pto.isa.row.types import TileBuf
from pto.isa.rules.rule import LIBRARY
from pto.target.facts import Profile

# The bit of dir_mask that a frontend user needs, by its side: cube to vector, vector to cube.
_PRODUCER, _CONSUMER = {"cube": 1, "vector": 2}, {"vector": 1, "cube": 2}
_ODD = {3, 4}  # splits into halves that differ
_BOTH = 3  # dir_mask of a bidirectional queue

# The direction of each buffer operand; the lowered forms have one buffer for their one direction.
_BUFFER_WAYS = {"c2v_consumer_buf": 1, "v2c_consumer_buf": 2, "local_addr": 1, "peer_local_addr": 2}

Key = tuple[int, str, str]  # direction, function that reserves the buffer, name of the buffer


@dataclass(frozen=True, slots=True)
class QueueEnd:
    """One initialisation of a pipe: the buffers and operations that use it."""

    op: Operation
    function: str
    keys: frozenset[Key]
    users: tuple[Operation, ...]
    nosplit: bool | None
    is_local: bool  # slots in the consumer's buffer

    @property
    def splits(self) -> set[int]:
        """How users split tiles."""
        return {split for user in self.users if (split := integer(user.attrs, "split")) is not None}


def is_end(op: Operation) -> bool:
    return isinstance(op.order, OpenQueue)


def is_lowered(op: Operation) -> bool:
    """True if the end of the queue is an SSA value (lowered form), not an id."""
    return is_end(op) and bool(op.results)


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    ends: list[QueueEnd] = []
    for function in module.functions():
        for op in function.walk():
            if is_end(op):
                ends.append(_end(op, function, profile))
                yield from _anchored(op, ends[-1])
                if profile.sync.queue_slots == "local":
                    yield from _popped_ahead(function, ends[-1])
        yield from _addressed(function)
    for end in ends:
        yield from _own_split(end)
    yield from _peers(ends)


def buffers(op: Operation, function: Operation) -> Iterator[tuple[Key, Operation]]:
    """The buffers an initialisation uses, and the operations that name them."""
    mask = integer(op.attrs, "dir_mask") or 0
    for operand, usual in _BUFFER_WAYS.items():
        way = mask if is_lowered(op) and mask != _BOTH else usual
        for value in op.group(operand) if mask & way else ():
            maker = value.maker
            if maker is not None and isinstance(maker.order, QueueSlots):
                yield (way, *_buffer_key(maker, function)), maker


def _buffer_key(maker: Operation, function: Operation) -> tuple[str, str]:
    home = word(maker.attrs, "peer_func")
    return function.symbol if home is None else home, word(maker.attrs, "name") or ""


def slots(op: Operation) -> tuple[int, int]:
    """How many slots a queue has in each direction, and the bytes of one."""
    usual = 4 if integer(op.attrs, "dir_mask") == _BOTH else 8
    return integer(op.attrs, "slot_num") or usual, integer(op.attrs, "slot_size") or 0


def _end(op: Operation, function: Operation, profile: Profile) -> QueueEnd:
    keys = frozenset(key for key, _ in buffers(op, function))
    value = op.attrs.get("nosplit")
    nosplit = value.value if isinstance(value, Bool) else None
    users = tuple(user for user in function.walk() if _uses(user, op))
    return QueueEnd(op, function.symbol, keys, users, nosplit, is_local(op, profile))


def is_local(op: Operation, profile: Profile) -> bool:
    """True if slots are in the consumer's buffer: a5 ignores `gm_slot_buffer` of frontend forms."""
    if is_lowered(op):
        return isinstance(op.order, OpenQueue) and op.order.in_local
    in_global = op.group("gm_slot_buffer") and profile.sync.queue_slots == "gm"
    return not (in_global or op.group("gm_slot_tensor"))


def _uses(user: Operation, op: Operation) -> bool:
    """Lowered users name their pipe; frontend users belong to the function's pipes of that id."""
    if not isinstance(user.order, OfQueue):
        return False
    return op.results[0] in user.operands if is_lowered(op) else _is_of(op, user)


def _is_of(op: Operation, user: Operation) -> bool:
    return _way(user) is not None and _id(user) == _id(op)


def _way(user: Operation) -> int | None:
    """The direction of a user that names its queue by id; None for other operations."""
    order = user.order
    if not isinstance(order, OfQueue) or order.handle in user.row.operand_names:
        return None
    return (_PRODUCER if isinstance(order, Push | Allocate) else _CONSUMER)[user.row.scope]


def _id(op: Operation) -> int:
    return integer(op.attrs, "id") or 0


def _addressed(function: Operation) -> Iterator[Diagnostic]:
    """Frontend users must name exactly one queue of their function, with their direction."""
    queues = {_id(op): op for op in function.walk() if is_end(op) and not is_lowered(op)}
    for op in function.walk():
        way, queue = _way(op), queues.get(_id(op))
        if way is None:
            continue
        mask = integer(queue.attrs, "dir_mask") if queue else None
        if queue is None:
            unknown = f"names queue {_id(op)}, which its function does not initialise"
            yield op.finding("PTO-D060", unknown)
        elif mask is not None and not mask & way:
            against = f"uses queue {_id(op)} against its dir_mask of {mask}"
            note = Note("the queue is initialised here", queue.loc)
            yield op.finding("PTO-D060", against, notes=(note,))


def _anchored(op: Operation, end: QueueEnd) -> Iterator[Diagnostic]:
    order = op.order
    in_local = isinstance(order, OpenQueue) and order.in_local
    if in_local and "flag_base" not in op.attrs and not end.keys:
        yield op.finding(
            "PTO-S120",
            "requires local_addr to come from pto.reserve_buffer or "
            "pto.import_reserved_buffer when 'flag_base' is not explicit",
        )


def _popped_ahead(function: Operation, end: QueueEnd) -> Iterator[Diagnostic]:
    """Pops of a queue whose last tile was not freed, where slots are freed together. TFREE of a5
    signals by the number of tiles that were popped, not freed: pto-isa a5/TFree.hpp."""
    count, _ = slots(end.op)
    if not end.is_local or period_of(count) < 2 or not function.has_body:
        return
    late = dict[Operation, Operation]()
    _taken(function.regions[0].block, set(end.users), None, late)
    for pop, before in late.items():
        note = Note("the tile that is not free is taken here", before.loc)
        yield pop.finding(LIBRARY, _AHEAD, "warning", (note,), _COPY)


_AHEAD = (
    "takes a tile of a queue before the last one is freed: the header counts pops, so that it would"
    " signal no free slot, or too many"
)
_COPY = "free each tile before the next pop of its queue; copy it if it is needed longer"


def _taken(
    block: Block,
    users: AbstractSet[Operation],
    last: Operation | None,
    late: dict[Operation, Operation],
) -> Operation | None:
    """The pop whose tile is not free behind a block; `last`: in front of it. `late` gets the pops
    of a tile before the one in front is freed."""
    for op in block.ops:
        if op in users and isinstance(op.order, Pop):
            if last is not None:
                late.setdefault(op, last)
            last = op
        elif op in users and isinstance(op.order, Free):
            last = None
        ends = [_taken(b, users, last, late) for region in op.regions for b in region.blocks]
        if op.control is Control.FOR or op.control is Control.WHILE:
            for b in (b for region in op.regions for b in region.blocks):
                _taken(b, users, ends[-1], late)
        last = next((end for end in ends if end is not None), None) if ends else last
    return last


def _own_split(end: QueueEnd) -> Iterator[Diagnostic]:
    unsplit = {s == 0 for s in end.splits}
    if end.splits & _ODD and end.is_local:
        message = f"'{end.op.name}' op: halves of odd size need a queue through global memory"
        yield Diagnostic("PTO-S122", message, end.op.loc)
    elif len(unsplit) > 1:
        yield _conflict(end, sorted(end.splits))
    elif end.nosplit is not None and unsplit and unsplit != {end.nosplit}:
        option = f"'nosplit = {'true' if end.nosplit else 'false'}'"
        needed = "split = 0" if True in unsplit else "a split other than 0"
        conflict = f"explicit {option} conflicts with users that require {needed}"
        yield end.op.finding("PTO-S121", conflict)


def _conflict(end: QueueEnd, splits: list[int], other: QueueEnd | None = None) -> Diagnostic:
    values = ", ".join(map(str, splits))
    notes = (Note("the peer is initialised here", other.op.loc),) if other else ()
    conflict = f"conflicting pipe split usage across peer pipe init ops: {values}"
    return end.op.finding("PTO-S122", conflict, notes=notes)


def _peers(ends: list[QueueEnd]) -> Iterator[Diagnostic]:
    for n, end in enumerate(ends):
        others = [e for e in ends if e.function != end.function and e.keys & end.keys]
        others += _only_namesake(end, ends)
        if _is_alone(end, others):
            yield end.op.finding(
                "PTO-S123",
                "requires a complete peer init pair when its buffer comes from "
                "pto.reserve_buffer or pto.import_reserved_buffer",
            )
        for other in ends[n + 1 :]:
            if other not in others:
                continue
            kinds = {s == 0 for s in end.splits | other.splits}
            if end.splits and other.splits and len(kinds) > 1:
                yield _conflict(end, sorted(end.splits | other.splits), other)
            yield from _disagreement(end, other)
            yield from (*_reinterpreted(end, other), *_reinterpreted(other, end))


def _only_namesake(end: QueueEnd, ends: list[QueueEnd]) -> list[QueueEnd]:
    """The other end of a queue of entries in global memory, if exactly one end has its id."""
    if end.keys or is_lowered(end.op):
        return []
    named = [e for e in ends if not is_lowered(e.op) and _id(e.op) == _id(end.op) and e is not end]
    alone = len(named) == 1 and not named[0].keys and named[0].op.row is not end.op.row
    return named if alone and named[0].function != end.function else []


def _is_alone(end: QueueEnd, others: list[QueueEnd]) -> bool:
    """Lowered queues are paired by their buffer; a frontend end may leave its peer to a caller."""
    if others or not end.keys:
        return False
    if is_lowered(end.op):
        return "flag_base" not in end.op.attrs
    return any(home != end.function for _, home, _ in end.keys)


def _disagreement(end: QueueEnd, other: QueueEnd) -> Iterator[Diagnostic]:
    """Both ends of a queue must declare the same directions and the same slots."""
    mine, theirs = (_shape(e) for e in (end, other))
    if mine != theirs:
        note = Note("the other end is initialised here", other.op.loc)
        unlike = f"has {mine}, the other end of the queue {theirs}"
        yield end.op.finding("PTO-S197", unlike, notes=(note,))


def _shape(end: QueueEnd) -> str:
    count, size = slots(end.op)
    return f"dir_mask {integer(end.op.attrs, 'dir_mask')} and {count} slots of {size} bytes"


def _reinterpreted(producer: QueueEnd, consumer: QueueEnd) -> Iterator[Diagnostic]:
    """A slot in L1 has the layout of the pushed tile: pto-isa a5/TPush.hpp, a5/TInsert.hpp."""
    if not producer.is_local:
        return
    pushes = [op for op in producer.users if isinstance(op.order, Push)]
    for pop in (op for op in consumer.users if isinstance(op.order, Pop)):
        read, written = _layout_of(pop, "mat"), {_layout_of(op, "vec"): op for op in pushes}
        for layout, push in written.items():
            if layout is None or read is None or layout == read:
                continue
            note = Note(f"{layout} is pushed here", push.loc)
            help = f"copy the tile to one with layout {read} before the push (tmov)"
            unlike = f"reads {read} from slots that hold {layout}"
            yield pop.finding("PTO-S198", unlike, "warning", (note,), help)


def _layout_of(op: Operation, role: str) -> str | None:
    """The layout of a pushed or popped tile in this role."""
    types = [v.type for v in (*op.results, *op.operands) if isinstance(v.type, TileBuf)]
    return next((type.tile.layout.name for type in types if type.tile.role.value == role), None)
