"""The bytes of a value: ranges of local buffers. Global memory is in `outside.py`.

Addresses are the planner's; a value that it does not know may be anywhere in its buffer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from pto.core.memory import Space
from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.handle.view import space_of
from pto.isa.meaning.handle import config
from pto.isa.row import types as t
from pto.isa.row.attributes import integer
from pto.isa.row.order import OfQueue, OpenQueue, Pop
from pto.plan.buffers import FunctionPlan
from pto.target.facts import Profile

_BINDS = (config.SUBVIEW, config.ALIAS)  # dst becomes another name for bytes of src
_STORAGE = (t.Ptr, t.TileBuf, t.MemRef)


class Stretch(NamedTuple):
    """A range of bytes of one local buffer."""

    space: Space
    start: int
    end: int


def local_space(value: Value) -> Space | None:
    """The local buffer that a value refers to; None for everything else."""
    space = space_of(value.type)
    return space if space is not None and space.is_local else None


class Storage:
    """The byte ranges of the values of one function.

    `others` are starts of the same buffers in other plans: a buffer may be at any of them.
    """

    def __init__(
        self, plan: FunctionPlan, others: Sequence[Sequence[int]], profile: Profile
    ) -> None:
        function = plan.function
        self._room = profile.buffers
        self._reserved: dict[Operation, set[Stretch]] = {}
        ranges_of: dict[Value, set[Stretch]] = {}
        for starts in ([p.start for p in plan.placed], *others):
            self._add(plan, starts, ranges_of)
        taken = {v: op for op in function.walk() for v in popped(op)}
        for value in _unplaced(function, ranges_of):
            ranges_of[value] = self._elsewhere(value, taken.get(value))
        self._names = aliases(function, ranges_of)
        self._known = [frozenset(stretches) for stretches in ranges_of.values()]
        self._bound = _bound(function)
        self._found: dict[Value, frozenset[Stretch]] = {}

    def _add(
        self, plan: FunctionPlan, starts: Sequence[int], ranges_of: dict[Value, set[Stretch]]
    ) -> None:
        for placed, start in zip(plan.placed, starts, strict=True):
            buffer = placed.buffer
            stretch = Stretch(buffer.space, start, start + buffer.nbytes)
            if buffer.root is None:
                self._reserved.setdefault(buffer.op, set()).add(stretch)
            elif buffer.nbytes:
                ranges = ranges_of.setdefault(buffer.root, set())
                if buffer.alive is not None:  # a buffer without uses has no address
                    ranges.add(stretch)

    def _elsewhere(self, value: Value, pop: Operation | None) -> set[Stretch]:
        """A tile of a queue is in the bytes reserved for it; anything else may be anywhere."""
        space = local_space(value)
        if space is None:
            return set()
        buffers = () if pop is None else _reserved_for(pop, self._reserved)
        stretches = {s for op in buffers for s in self._reserved[op] if s.space is space}
        return stretches or {self.whole(space)}

    def whole(self, space: Space) -> Stretch:
        return Stretch(space, 0, max(self._room[space.value], 1))

    def of(self, value: Value) -> frozenset[Stretch]:
        """The local bytes that a value may refer to; empty for one in global memory."""
        stretches = self._found.get(value)
        if stretches is None:
            self._found[value] = frozenset()  # for names that refer to each other
            stretches = self._found[value] = frozenset(self._find(value))
        return stretches

    def _find(self, value: Value) -> Iterator[Stretch]:
        space = local_space(value)
        if space is None:
            return
        names = self._names.get(value)
        if names is None:
            yield self.whole(space)
        for n in names or ():
            yield from self._known[n]
        for other in self._bound.get(value, ()):
            yield from self.of(other)


def popped(op: Operation) -> list[Value]:
    if not isinstance(op.order, Pop):
        return []
    return [*op.results, *op.group("tile")]


def queue_of(op: Operation) -> int | None:
    """The id of the queue that an operation uses; None if it holds the queue."""
    held = isinstance(op.order, OfQueue) and op.order.handle in op.row.operand_names
    return None if held else integer(op.attrs, "id") or 0


def _reserved_for(pop: Operation, reserved: Iterable[Operation]) -> list[Operation]:
    """The operations that reserve the buffer of a queue: all of the function if it is held."""
    number, buffers = queue_of(pop), list(reserved)
    opened = [
        use
        for op in buffers
        for use in op.results[0].uses
        if isinstance(use.order, OpenQueue) and queue_of(use) == number
    ]
    mine = [op for op in buffers if any(op.results[0] in use.operands for use in opened)]
    return buffers if number is None else mine or buffers


def _unplaced(function: Operation, placed: Container[Value]) -> Iterator[Value]:
    """Values that begin a buffer without a planned address: arguments, tiles of queues, ..."""
    yield from function.regions[0].block.args
    for op in function.walk():
        if not any(isinstance(v.type, _STORAGE) for v in op.operands) or "callee" in op.attrs:
            local = (v for v in op.results if local_space(v) is not None)
            yield from (v for v in local if v not in placed)


def _bound(function: Operation) -> dict[Value, list[Value]]:
    sources: dict[Value, list[Value]] = {}
    for op in function.walk():
        if op.row.body in _BINDS:
            for dst in op.group("dst"):
                sources.setdefault(dst, []).extend(op.group("src"))
    return sources
