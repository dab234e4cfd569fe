"""Mutations that break the order of a program: each is applied, judged and undone.

A removed operation shows by its flag that has no counterpart any more. The other mutations keep
flags in pairs and numbers in range, so that only data can show them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pto.core.memory import Space
from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.row import order as kinds
from pto.isa.row import types as t
from pto.isa.row.attributes import Enum, Int, Str
from pto.isa.row.traits import Control
from pto.isa.scalar.arith import CONSTANT, XORI
from pto.observe.order.scopes import pairs_of
from pto.run.order.resolve import is_ordering

_PIPES = ("MTE2", "V", "MTE3", "MTE1", "M", "FIX")
_BARS = ("VST_VLD", "VLD_VST", "VST_VST", "VST_LD", "ST_VLD")
_ALIGNED = 32
PLACES = "overlapping addresses"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its `kind`, its operation, and the function that makes it."""

    kind: str
    op: Operation
    make: Callable[[], None]
    other: Operation | None = None  # a further operation that it changes

    @contextmanager
    def edit(self) -> Generator[None]:
        """Make the change while entered: then blocks, operands and attributes are as before."""
        ops = [self.op] if self.other is None else [self.op, self.other]
        before = [(op, op.operands, dict(op.attrs)) for op in ops]
        blocks = [(block, list(block.ops)) for block in {op.home for op in ops}]
        self.make()
        try:
            yield
        finally:
            for block, inside in blocks:
                block.set_ops(inside)
            for op, operands, attrs in before:
                if op.operands is not operands:
                    op.set_operands(operands)
                op.attrs.clear()
                op.attrs.update(attrs)


def changes(functions: Sequence[Operation]) -> Iterator[Change]:
    """All changes of some functions, grouped by kind."""
    ops = [op for f in functions for op in f.walk()]
    ordering = [op for op in ops if is_ordering(op)]
    for op in ordering:
        yield Change(op.name.removeprefix("pto."), op, op.erase)
    yield from _of_flags(ordering)
    yield from _of_signals(ordering)
    yield from _of_barriers(ordering)
    yield from _of_places(ops)


# ---- flags


def _of_flags(ops: Sequence[Operation]) -> Iterator[Change]:
    sets = [op for op in ops if isinstance(_order(op), kinds.SetFlag)]
    waits = [op for op in ops if isinstance(_order(op), kinds.WaitFlag)]
    pairs = list(_pairs(sets, waits))
    for first, second in pairs:
        yield Change("pair of flags", first, partial(_erase, first, second), second)
    for first, second in pairs:
        pipe = _other_pipe(first)
        if pipe is not None:
            make = partial(_set_attr, (first, second), _order(first).src, pipe)
            yield Change("wrong pipe", first, make, second)
    for first, second in pairs:
        pipe = _row_pipe(second)
        if pipe is not None:
            make = partial(_set_attr, (first, second), _order(first).dst, pipe)
            yield Change("wrong phase", first, make, second)
    for n, first in enumerate(sets):
        others = (op for op in sets[n + 1 :] if _pipes(op) == _pipes(first) and not op.operands)
        second = next((op for op in others if not first.operands and _id(op) != _id(first)), None)
        if second is not None:
            yield Change("swapped ids", first, partial(_swap_ids, first, second), second)
    for wait in waits:
        if _neighbour(wait, 1) is not None:
            yield Change("late wait", wait, partial(_move, wait, 1))
    for op in sets:
        if _neighbour(op, -1) is not None:
            yield Change("early set", op, partial(_move, op, -1))
    for op in (*sets, *waits):
        if op.operands:
            yield Change("parity off by one", op, partial(_use_other_parity, op))


def _order(op: Operation) -> Any:
    return op.row.order


def _pipes(op: Operation) -> tuple[Any, Any]:
    order = _order(op)
    return op.attrs.get(order.src), op.attrs.get(order.dst)


def _id(op: Operation) -> Any:
    return id(op.operands[0]) if op.operands else op.attrs.get("event_id")


def _pairs(
    sets: Sequence[Operation], waits: Sequence[Operation]
) -> Iterator[tuple[Operation, Operation]]:
    """Pairs of a set and the later wait in its block that takes it."""
    for first in sets:
        for second in waits:
            same = second.parent is first.parent and _id(first) == _id(second)
            if same and _pipes(first) == _pipes(second) and _at(first) < _at(second):
                yield first, second
                break


def _other_pipe(op: Operation) -> Enum | None:
    src, dst = _pipes(op)
    if not isinstance(src, Enum) or not isinstance(dst, Enum) or src.kind != "pipe":
        return None
    names = [Enum("pipe", f"PIPE_{name}") for name in _PIPES]
    return next(name for name in names if name not in (src, dst))


def _row_pipe(wait: Operation) -> Enum | None:
    """The pipe that the row of an operation names, for a wait for an earlier phase of it."""
    dst, behind = _pipes(wait)[1], wait.home.ops[_at(wait) + 1 :]
    op = next((op for op in behind if _touches(op)), None)
    row = None if op is None else op.row
    if row is None or not row.phases or not isinstance(row.pipe, str):
        return None
    pipe = Enum("pipe", f"PIPE_{row.pipe}")
    is_phase = isinstance(dst, Enum) and dst.kind == "pipe" and dst != pipe
    return pipe if is_phase and pipe != _pipes(wait)[0] else None


# ---- signals and barriers


def _of_signals(ops: Sequence[Operation]) -> Iterator[Change]:
    """Remove a signal between cores, on both sides."""
    sent = [op for op in ops if isinstance(_order(op), kinds.SendSignal)]
    heard = [op for op in ops if isinstance(_order(op), kinds.WaitSignal)]
    for first in sent:
        for second in heard:
            if second.attrs.get("event_id") == first.attrs.get("event_id"):
                yield Change("missing signal", first, partial(_erase, first, second), second)
                break


def _of_barriers(ops: Sequence[Operation]) -> Iterator[Change]:
    for op in ops:
        order = _order(op)
        if isinstance(order, kinds.MemoryBarrier):
            yield from _of_memory_barrier(op, order)
        elif isinstance(order, kinds.Barrier) and isinstance(op.attrs.get(order.pipe), Enum):
            now = op.attrs[order.pipe]
            other = Enum("pipe", "PIPE_MTE2" if now != Enum("pipe", "PIPE_MTE2") else "PIPE_MTE3")
            make = partial(_set_attr, (op,), order.pipe, other)
            yield Change("barrier of another pipe", op, make)


def _of_memory_barrier(op: Operation, order: kinds.MemoryBarrier) -> Iterator[Change]:
    now = op.attrs.get(order.kind)
    if not isinstance(now, Enum | Str):
        return
    covered = set(pairs_of(now.value))
    other = next(bar for bar in _BARS if not covered & set(pairs_of(bar)))
    to = Enum(now.kind, other) if isinstance(now, Enum) else Str(other)
    yield Change("wrong mem_bar", op, partial(_set_attr, (op,), order.kind, to))


# ---- places


def _of_places(ops: Sequence[Operation]) -> Iterator[Change]:
    """Move a written buffer onto the one before it: completely, and from its middle on."""
    last_addresses: dict[Space, tuple[int, int]] = {}  # the last two addresses
    written = {v for op in ops for v in op.given("out", "inout")}
    for op in ops:
        placed = _place(op)
        if placed is None or (isinstance(op.results[0].type, t.Ptr) and not _flows(op, written)):
            continue
        space, at, now = placed
        before = last_addresses.get(space)
        last_addresses[space] = now, at
        if before is None or before[0] == now:
            continue
        middle = (before[0] + now) // 2 // _ALIGNED * _ALIGNED
        for address in {before[0], middle} - {now}:
            yield Change(PLACES, op, partial(_set_number, op, at, address))


def _flows(op: Operation, into: set[Value]) -> bool:
    """True if a pointer, or one derived from it, is among some values."""
    function = next(op.around(Control.FUNCTION))
    return not into.isdisjoint(aliases(function, [op.results[0]]))


def _place(op: Operation) -> tuple[Space, int, int] | None:
    """The space of a local buffer, the number of its address operand, and the address."""
    if not op.results:
        return None
    type_of_result, name = op.results[0].type, op.row.traits.allocates
    if name and isinstance(type_of_result, t.TileBuf):
        group, space = op.group(name), type_of_result.tile.space
    elif (
        isinstance(type_of_result, t.Ptr)
        and type_of_result.space.is_local
        and len(op.operands) == 1
    ):
        group, space = op.operands, type_of_result.space
    else:
        return None
    number = group[0].number if group else None
    if number is None:
        return None
    return space, next(n for n, v in enumerate(op.operands) if v is group[0]), number


# ---- how changes are made


def _at(op: Operation) -> int:
    return op.home.ops.index(op)


def _erase(*ops: Operation) -> None:
    for op in ops:
        op.erase()


def _set_attr(ops: Sequence[Operation], name: str, value: Any) -> None:
    for op in ops:
        op.attrs[name] = value


def _swap_ids(a: Operation, b: Operation) -> None:
    a.attrs["event_id"], b.attrs["event_id"] = b.attrs["event_id"], a.attrs["event_id"]


def _neighbour(op: Operation, step: int) -> int | None:
    """The position of the next operation with work, forwards or backwards."""
    ops, n = op.home.ops, _at(op) + step
    while 0 <= n < len(ops):
        neighbour = ops[n]
        if neighbour.regions or (neighbour.row.order is None and _touches(neighbour)):
            return n
        n += step
    return None


def _touches(op: Operation) -> bool:
    is_place = any(isinstance(v.type, t.PLACES) for v in op.operands)
    return is_place and not op.results and op.row.pipe != "none"


def _move(op: Operation, step: int) -> None:
    """Move an operation past the next one with work, or before the previous one."""
    block = op.home
    to = _neighbour(op, step)
    at = _at(op)
    op.erase()
    block.insert(at if to is None else to, op)


def _use_other_parity(op: Operation) -> None:
    """Use the other of two alternating ids."""
    old = op.operands[0]
    one = _number(1, old.type)
    other = Operation.of(XORI, [old, one.results[0]])
    op.home.insert(_at(op), one, other)
    op.set_operand(0, other.new_result(old.type, "other"))


def _set_number(op: Operation, at: int, number: int) -> None:
    constant = _number(number, op.operands[at].type)
    op.home.insert(_at(op), constant)
    op.set_operand(at, constant.results[0])


def _number(value: int, type: t.Type) -> Operation:
    constant = Operation.of(CONSTANT, attrs={"value": Int(value, type)})
    constant.results = [Value(type, "mutated", constant)]
    return constant
