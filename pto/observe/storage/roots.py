"""The allocation of each value of a program, and whether its tiles need a watched run.

Most programs have disjoint tiles that are used completely and never freed: then nothing can be
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.memory import Space
from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.row import types as t
from pto.isa.row.order import Free

_LOCAL = (t.TileBuf, t.MemRef, t.Ptr)


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """An operation that makes a new tile: an allocation, a declaration, a pop."""

    op: Operation
    value: Value

    @property
    def name(self) -> str:
        return f"%{self.value.name}"


def is_local(type: t.Type) -> bool:
    if isinstance(type, t.TileBuf):
        return True
    return isinstance(type, t.MemRef | t.Ptr) and type.space.is_local


class Roots:
    """The allocations of some functions, and the values that may refer to each."""

    def __init__(self, functions: list[Operation]) -> None:
        self.all: list[Root] = []
        self._of: dict[Value, tuple[int, ...]] = {}  # value -> indices of roots
        for function in functions:
            roots = [Root(op, v) for op in function.walk() for v in _made(op)]
            first = len(self.all)
            names = aliases(function, [r.value for r in roots])
            self._of.update({v: tuple(first + n for n in numbers) for v, numbers in names.items()})
            self.all += roots

    def of(self, value: Value) -> tuple[int, ...]:
        return self._of.get(value, ())

    def needs_look(self, functions: list[Operation]) -> bool:
        """True if tiles may overlap, end before their shape does, or be freed."""
        if not self.all:
            return False
        rows = [op.row for f in functions for op in f.walk()]
        if any(isinstance(row.order, Free) for row in rows):
            return True
        values = [v for f in functions for op in f.walk() for v in op.results]
        if any(isinstance(v.type, t.Ptr) and self.of(v) for v in values):
            return True
        return any(map(_is_partial, values)) or self._may_overlap()

    def _may_overlap(self) -> bool:
        ranges: dict[Space, list[tuple[int, int]]] = {}
        for root in self.all:
            if not isinstance(root.value.type, t.TileBuf):
                return True
            address = root.op.operand("addr") if "addr" in _operands(root.op) else None
            if address is None:
                continue  # the planner keeps live tiles disjoint
            at, tile = address.number, root.value.type.tile
            if at is None:
                return True
            placed = ranges.setdefault(tile.space, [])
            if any(at < end and start < at + tile.nbytes for start, end in placed):
                return True
            placed.append((at, at + tile.nbytes))
        return False


def _operands(op: Operation) -> tuple[str, ...]:
    return op.row.operand_names


def _made(op: Operation) -> Iterator[Value]:
    if any(is_local(v.type) for v in op.operands) or op.regions:
        return
    yield from (v for v in op.results if isinstance(v.type, t.TileBuf | t.MemRef))


def _is_partial(value: Value) -> bool:
    return isinstance(value.type, t.TileBuf) and value.type.tile.valid != value.type.tile.shape
