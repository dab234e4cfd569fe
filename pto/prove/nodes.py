"""The operations of a function that matter for order: work, flags of the program, queues."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from pto.ir.graph import Operation
from pto.isa.meaning.order.ring import TO_CUBE, TO_VECTOR, WHOLE, period_of
from pto.isa.row.attributes import integer
from pto.isa.row.flag import Flag, flag_of, key_of
from pto.isa.row.order import (
    Acquire,
    CoreBarrier,
    Free,
    FullFence,
    Notify,
    OfFlag,
    OfQueue,
    OpenQueue,
    Pop,
    Publish,
    Push,
    QueueSlots,
    Release,
    SetFlag,
    TestSignal,
    WaitUntil,
    Within,
    WriteBack,
)
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.plan.sync.effects import NUMBER, SyncWork
from pto.plan.sync.tree import CallNode, Node, TreeReader
from pto.verify import pipes


class Undecided(Exception):
    """A property that was not decided: the operation, and the reason."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(why)
        self.op = op
        self.why = why


@dataclass(slots=True, eq=False)
class SignalNode(Node):
    """A set of a flag or a wait for it."""

    key: Flag
    is_set: bool
    pipe: int


@dataclass(frozen=True, slots=True)
class Ring:
    """One direction of a queue. `copies`: a pop copies its tile and gives the slot back."""

    key: pipes.Key
    slots: int
    slot_size: int
    split: int
    copies: bool

    @property
    def period(self) -> int:
        """The number of slots that a consumer reports free together."""
        return period_of(self.slots)


@dataclass(slots=True, eq=False)
class QueueNode(Node):
    """A push, a pop or a free. It waits on `pipe`."""

    ring: Ring
    work: SyncWork | None
    pipe: int


@dataclass(slots=True, eq=False)
class CacheNode(Node):
    """A write-back of all lines of the data cache."""


@dataclass(slots=True, eq=False)
class MeetNode(Node):
    """A barrier of all cores of a kind."""

    kind: str


_FOLLOWED = (Within, FullFence, QueueSlots, Notify, WaitUntil, TestSignal, Publish)


@dataclass(slots=True, kw_only=True)
class OrderReader(TreeReader):
    """Nodes including the flags of the program itself, operations on queues, called functions."""

    called: Callable[[CallNode], list[Node]]
    ends: dict[Hashable, Operation]  # of queues, by handle or number

    def read(self, op: Operation) -> Iterator[Node]:
        order = op.row.order
        if isinstance(order, OfFlag):
            yield self._flag(op, order)
        elif isinstance(order, OfQueue):
            yield self._queue(op, order)
        elif isinstance(order, OpenQueue):
            self._open(op)
        elif isinstance(order, WriteBack):
            word = Case(op, self.effects.profile).word(order.how)
            if not op.group(order.place) or word == order.all:
                yield CacheNode(op)
        elif isinstance(order, CoreBarrier):
            if op.operands:
                raise Undecided(op, "it counts the cores that take part")
            kind = Case(op, self.effects.profile).word(order.kind) or "mix"
            yield MeetNode(op, kind)
        elif isinstance(order, Acquire | Release):
            raise Undecided(op, "buffer ids are not followed")
        elif order is not None and not isinstance(order, _FOLLOWED):
            raise Undecided(op, "it synchronises with others")
        else:
            for item in TreeReader.read(self, op):
                yield from self.called(item) if isinstance(item, CallNode) else (item,)

    def _flag(self, op: Operation, order: OfFlag) -> SignalNode:
        profile = self.effects.profile
        number = op.operands[0].number if op.operands else None
        if op.operands and number is None:
            raise Undecided(op, "its event id is not a constant")
        flag = flag_of(Case(op, profile), number)
        is_set = isinstance(order, SetFlag)
        pipe = NUMBER.get(flag.src if is_set else flag.dst)
        if pipe is None:
            raise Undecided(op, "its pipe is not followed")
        return SignalNode(op, key_of(flag, profile.sync.flag_identity), is_set, pipe)

    # ---- queues

    def _open(self, op: Operation) -> None:
        name = op.results[0] if op.results else integer(op.attrs, "id") or 0
        if name in self.ends or any(o.is_loop or o.control is Control.IF for o in op.ancestors()):
            raise Undecided(op, "it may open a queue again, or not at all")
        self.ends[name] = op

    def _queue(self, op: Operation, order: OfQueue) -> QueueNode:
        handle = op.operand(order.handle)
        end = self.ends.get(handle or integer(op.attrs, order.id) or 0)
        work = self.effects.of(op)
        if end is None or not isinstance(order, Push | Pop | Free):
            raise Undecided(op, "its queue, or its slot, is not known")
        if work is None and isinstance(order, Push):
            raise Undecided(op, "it pushes no tile")
        pipe = NUMBER["S"] if work is None else work.pipe
        return QueueNode(op, self._ring(op, end), work, pipe)

    def _ring(self, op: Operation, end: Operation) -> Ring:
        function = next(op.around(Control.FUNCTION))
        is_cube = (self.side or op.side()) == "cube"
        way = TO_VECTOR if is_cube is isinstance(op.order, Push) else TO_CUBE
        keys = [key for key, _ in pipes.buffers(end, function) if key[0] == way]
        if not keys:
            raise Undecided(op, "its queue has no buffer of its own")
        count, size = pipes.slots(end)
        copies = not pipes.is_local(end, self.effects.profile)
        return Ring(keys[0], count, size, integer(op.attrs, "split") or WHOLE, copies)
