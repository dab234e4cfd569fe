"""Tiles that come out of a queue: what reads them in their slot, and when the slot is free.

A popped tile lies in a slot until it is freed, and slots are freed in the order of the pops. It
can therefore stand for the tile that it is moved to, as long as no later tile of the queue has
to be freed
before it. The vector core can also copy it; nothing copies from L1 to L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pto.ir.graph import Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, GET_VALIDSHAPE, SET_VALIDSHAPE
from pto.isa.meaning.kinds import Lane
from pto.isa.row.attributes import integer
from pto.isa.row.types import TileBuf
from pto.transform.cores import VECTOR

SLOTS = (2, 4, 8)  # the numbers of slots that a queue may have


@dataclass(slots=True, eq=False)
class Popped:
    """A pop, and the move of its tile to the tile that the function had before it was split."""

    to: str  # the core that pops
    pop: Operation
    move: Operation | None = None  # None: nothing reads the tile, or all read it in its slot
    end: Operation = field(init=False)  # the slot is free behind it

    def __post_init__(self) -> None:
        self.end = self.move or self.pop

    @property
    def tile(self) -> Value:
        return self.pop.results[0]

    def bind(self) -> bool:
        """Read the tile in its slot where that is possible; false if it has to be copied."""
        if self.move is None:
            return True
        moved = self.move.operands[1]
        users = sorted(_work_on(moved, self.move), key=lambda u: _place(_beside(u, self.pop)))
        first = users[0] if users else None
        if (
            self.to == VECTOR
            and first is not None
            and _overwrites(first, moved, self.pop)
            and not self._pops_until(first)
        ):
            self.end = first
            for name in (o.name for o in self.end.row.operands if o.role == "in"):
                group = self.end.group(name)
                self.end.set_group(name, [self.tile if v is moved else v for v in group])
        elif _is_filled_by(moved, self.move) and self._is_in_time(users):
            self.end = _beside(users[-1], self.pop) if users else self.pop
            for use in [u for u in moved.uses if _is_behind(u, self.move)]:
                use.set_operands([self.tile if v is moved else v for v in use.operands])
        else:
            return False
        self.move.erase()
        self.move = None
        return True

    def _is_in_time(self, users: Sequence[Operation]) -> bool:
        """True if no later tile of the queue has to be freed before these operations are done."""
        if any(user.control is not None for user in users):
            return False
        pops = self._pops_until(users[-1]) if users else []
        beside = all(pop.home is self.pop.home for pop in pops)
        return beside and not (self.to == VECTOR and pops)

    def _pops_until(self, user: Operation) -> list[Operation]:
        """The pops of the same queue between this one and the operation that contains `user`."""
        end = _place(_beside(user, self.pop))
        between = self.pop.home.ops[_place(self.pop) + 1 : end + 1]
        return [inner for op in between for inner in op.walk() if self.is_alike(inner)]

    def is_alike(self, op: Operation) -> bool:
        """True for a pop of the same queue."""
        return op.row is self.pop.row and queue_of(op) == queue_of(self.pop)


def free_order(popped: Sequence[Popped]) -> list[tuple[Popped, Operation]]:
    """Each tile of a queue with the operation behind which its slot is freed, in this order."""
    out: list[tuple[Popped, Operation]] = []
    last: dict[object, Operation] = {}  # by block
    for pop in popped:
        before = last.get(pop.pop.home, pop.end)
        last[pop.pop.home] = end = max(before, pop.end, key=_place)
        out.append((pop, end))
    return out


def slots_needed(order: Sequence[tuple[Popped, Operation]]) -> int | None:
    """The slots with which a producer never waits for a tile that is freed later; None: too many.

    Slots are given back half a ring at a time, the two of a small ring together.
    """
    most = 1
    for pop, end in order:
        ops = pop.pop.home.ops
        between = ops[_place(pop.pop) : _place(end) + 1]
        most = max(most, sum(pop.is_alike(op) for op in between))
    return next((n for n in SLOTS if most <= (1 if n == SLOTS[0] else n // 2 + 1)), None)


def queue_of(op: Operation) -> int:
    """The number of the queue that an instruction uses."""
    return integer(op.attrs, "id") or 0


def _place(op: Operation) -> int:
    return op.home.ops.index(op)


def _beside(op: Operation, other: Operation) -> Operation:
    """The operation in the block of `other` that is `op` or contains it; else `other`."""
    return next((o for o in (op, *op.ancestors()) if o.parent is other.parent), other)


def _is_behind(op: Operation, other: Operation) -> bool:
    return _place(_beside(op, other)) > _place(other)


def _work_on(tile: Value, move: Operation) -> Iterator[Operation]:
    """The operations behind a move that use its tile, also by another name of it."""
    for use in dict.fromkeys(tile.uses):
        named = [v for v in use.results if isinstance(v.type, TileBuf)]
        if named:
            yield from (user for value in named for user in _work_on(value, move))
        elif use.row not in (GET_VALIDSHAPE, SET_VALIDSHAPE) and _is_behind(use, move):
            yield use


def _is_filled_by(tile: Value, move: Operation) -> bool:
    """True if a move is the first use of a tile, and all others come behind it in its block."""
    maker = tile.maker
    described = (GET_VALIDSHAPE, SET_VALIDSHAPE)
    others = [use for use in tile.uses if use is not move and use.row not in described]
    is_own = maker is not None and maker.row is ALLOC_TILE
    return is_own and all(_is_behind(use, move) for use in others)


def _overwrites(op: Operation, tile: Value, pop: Operation) -> bool:
    """True for an elementwise operation that puts its result where it read the tile."""
    return op.parent is pop.parent and isinstance(op.body, Lane) and tile in op.given("out")
