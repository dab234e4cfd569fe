"""Queues of one function: each needs its own id, name, hardware flags and buffer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation
from pto.isa.row.attributes import integer, word
from pto.isa.row.order import Pop, QueueSlots
from pto.isa.row.traits import Control
from pto.target.facts import Profile
from pto.target.npu import CROSS_CORE_IDS
from pto.verify import epilogues
from pto.verify.pipes import buffers, is_end, is_lowered, slots


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    for function in module.functions():
        ops = list(function.walk())
        queues = [op for op in ops if is_end(op)]
        yield from (*_ids(queues), *_names(ops))
        yield from (*_flags(queues, function), *_buffers(queues, function))
        yield from _peers(module, ops)
    yield from epilogues.check(module, profile)


def _peers(module: Module, ops: list[Operation]) -> Iterator[Diagnostic]:
    """A buffer is imported from one function: of the own module, else a public one of another."""
    for op in ops:
        peer = word(op.attrs, "peer_func")
        if peer is None or op.order != QueueSlots(is_imported=True):
            continue
        named = [f for f in module.functions() if _called(f) == peer and f.has_body]
        module_of_op = next(op.around(Control.MODULE), None)
        near = [f for f in named if next(f.around(Control.MODULE), None) is module_of_op]
        open_ = [f for f in named if word(f.attrs, "sym_visibility") in (None, "public")]
        count = len(near) or len(open_)
        if count != 1 and (near or count == 0 or len(open_) > 1):
            how = "none" if not count else f"{count} of them"
            yield op.finding("PTO-S197", f"imports from @{peer}: there is {how} to import from")
        elif not any(_reserves(f, op) for f in near or open_):
            name = word(op.attrs, "name")
            buffer_name = "a buffer" if name is None else f'"{name}"'
            yield op.finding("PTO-S197", f"imports {buffer_name}, which @{peer} does not reserve")


def _reserves(function: Operation, imported: Operation) -> bool:
    wanted = imported.attrs.get("name")
    ops = (op for op in function.walk() if op.order == QueueSlots())
    return any(op.attrs.get("name") == wanted for op in ops)


def _called(function: Operation) -> str:
    """The name by which other functions refer to this one."""
    logical = word(function.attrs, "pto.ptodsl.logical_name")
    return function.symbol if logical is None else logical


def _repeated(
    code: str, items: Iterable[tuple[Hashable, Operation]], words: str
) -> Iterator[Diagnostic]:
    """A finding for each operation with the key of an earlier one."""
    first: dict[Hashable, Operation] = {}
    for key, op in items:
        if first.setdefault(key, op) is not op:
            yield op.finding(code, words, notes=(Note("the first one is here", first[key].loc),))


def _ids(queues: list[Operation]) -> Iterator[Diagnostic]:
    ends = [(integer(op.attrs, "id") or 0, op) for op in queues if not is_lowered(op)]
    yield from _repeated("PTO-S194", ends, "has the id of another queue of its function")


def _names(ops: list[Operation]) -> Iterator[Diagnostic]:
    for kind, words in (
        (QueueSlots(), "has the name of another buffer of its function"),
        (QueueSlots(is_imported=True), "imports a buffer that its function imports already"),
    ):
        named = [
            ((op.attrs.get("name"), op.attrs.get("peer_func")), op)
            for op in ops
            if op.order == kind
        ]
        yield from _repeated("PTO-S195", named, words)


def _flags(queues: list[Operation], function: Operation) -> Iterator[Diagnostic]:
    """A queue takes two flags for each direction: pto-isa TPush.hpp."""
    total = 0
    for op in queues:
        before, total = total, total + (4 if integer(op.attrs, "dir_mask") == 3 else 2)
        if before <= CROSS_CORE_IDS < total:
            message = (
                f"'{op.name}' op: the queues of @{function.symbol} up to here take {total} "
                f"hardware flags, there are {CROSS_CORE_IDS}"
            )
            yield Diagnostic("PTO-D197", message, op.loc, help="2 for one direction, 4 for both")


def _buffers(queues: list[Operation], function: Operation) -> Iterator[Diagnostic]:
    used = [(key, op, maker) for op in queues for key, maker in buffers(op, function)]
    pairs = [(key, op) for key, op, _ in used]
    yield from _repeated("PTO-S196", pairs, "uses the buffer of another queue, the same way")
    for _, op, maker in used:
        count, size = slots(op)
        count = integer(op.attrs, "local_slot_num") or count
        nbytes, needed = integer(maker.attrs, "size"), count * size
        if op.row.scope == "vector" and _takes_halves(op, function):
            needed -= size // 2  # of the last slot
        if maker.order == QueueSlots() and nbytes is not None and 0 < nbytes < needed:
            few = f"reserves {nbytes} bytes for {count} slots of {size} bytes"
            note = Note("the queue is initialised here", op.loc)
            help = f"reserve {needed} bytes: other data may follow the buffer"
            yield maker.finding("PTO-M196", few, "warning", (note,), help)


def _takes_halves(queue: Operation, function: Operation) -> bool:
    """True if every pop of a queue takes the upper or lower half of a tile."""
    id = integer(queue.attrs, "id") or 0
    pops = [op for op in function.walk() if isinstance(op.order, Pop)]
    splits = [integer(op.attrs, "split") for op in pops if (integer(op.attrs, "id") or 0) == id]
    return bool(splits) and all(split == 1 for split in splits)
