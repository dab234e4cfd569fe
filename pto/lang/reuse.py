"""Temporaries in place: a result over the bytes of a source that nobody needs any more.

`e = pto.exp(t - m)` makes two tiles where a person would write both into `t`. Where an elementwise
instruction is the last to use a tile of the type and valid region of its result, the result is that
tile: the program has the allocations and regions of one written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, SET_VALIDSHAPE
from pto.isa.meaning import Lane
from pto.isa.row.types import TileBuf
from pto.isa.rules.rule import Rule


class Reuse:
    """Looks through the blocks of one function, in program order."""

    def __init__(self, function: Operation, temporaries: Iterable[Value]) -> None:
        self._function = function
        self._temporary = {id(v) for v in temporaries}
        self._same: dict[int, Value] = {}  # a value, and the one that stands for it
        self._settings: dict[int, list[Operation]] = {}  # of valid regions, by value
        self._gone: set[int] = set()  # operations
        for op in function.walk():
            if op.row is SET_VALIDSHAPE:
                self._settings.setdefault(id(op.operands[0]), []).append(op)

    def run(self) -> None:
        for op in list(self._function.walk()):
            for region in op.regions:
                for block in region.blocks:
                    self._block(block)
        for op in self._function.walk():
            op.operands[:] = [self.found(v) for v in op.operands]
            for region in op.regions:
                for block in region.blocks:
                    block.ops[:] = [each for each in block.ops if id(each) not in self._gone]

    def found(self, value: Value) -> Value:
        """What a value has become."""
        while id(value) in self._same:
            value = self._same[id(value)]
        return value

    def _root(self, value: Value) -> Value:
        """The allocation behind a value, which may be the same bytes seen otherwise."""
        value = self.found(value)
        maker = value.maker
        while maker is not None and maker.row is not ALLOC_TILE and maker.operands:
            value = self.found(maker.operands[0])
            maker = value.maker
        return value

    def _block(self, block: Block) -> None:
        last: dict[int, int] = {}
        for at, op in enumerate(block.ops):
            for inner in op.walk():
                for value in inner.operands:
                    if isinstance(value.type, TileBuf):
                        last[id(self._root(value))] = at
        written: set[int] = set()
        for at, op in enumerate(block.ops):
            for target in _written(op):
                made = self._root(target)
                fresh = id(made) not in written and id(made) in self._temporary
                written.add(id(made))
                if fresh and _is_elementwise(op) and _is_made_in(block, made):
                    self._merge(block, op, at, (made, target), last)

    def _merge(
        self,
        block: Block,
        op: Operation,
        at: int,
        result: tuple[Value, Value],
        last: dict[int, int],
    ) -> None:
        made, target = result
        for source in _read(op):
            old = self._root(source)
            seen = self.found(source)
            dead = last.get(id(old)) == at and _is_made_in(block, old)
            alike = old.type == made.type and seen.type == target.type
            if not dead or not alike or old is made or not self._one_region(block, made, old):
                continue
            if target is not made and not self._one_region(block, target, seen):
                continue
            self._replace(made, old)
            if target is not made:
                self._replace(target, seen)
            last[id(old)] = last.get(id(made), at)
            return

    def _one_region(self, block: Block, new: Value, old: Value) -> bool:
        """Surely the same valid region, set once for the new one."""
        mine, theirs = (self._settings.get(id(v), []) for v in (new, old))
        if not mine or not theirs:
            return not mine and not theirs
        here = mine[0].parent is block and theirs[-1].parent is block
        pairs = zip(mine[0].operands[1:], theirs[-1].operands[1:], strict=True)
        return len(mine) == 1 and here and all(a is b for a, b in pairs)

    def _replace(self, value: Value, by: Value) -> None:
        self._same[id(value)] = by
        maker: Any = value.owner
        self._gone |= {id(maker), *(id(op) for op in self._settings.get(id(value), ()))}


def _is_made_in(block: Block, value: Value) -> bool:
    maker = value.maker
    return maker is not None and maker.row is ALLOC_TILE and maker.parent is block


def _is_elementwise(op: Operation) -> bool:
    return isinstance(op.body, Lane)


def _of_role(op: Operation, role: str) -> list[Value]:
    operands = () if op.row is None else op.row.operands
    found = [v for o in operands if o.role == role for v in op.group(o.name)]
    return [v for v in found if isinstance(v.type, TileBuf)]


def _written(op: Operation) -> list[Value]:
    return _of_role(op, "out")


def _read(op: Operation) -> list[Value]:
    """Sources that the destination may be."""
    rules: Iterable[Rule] = () if op.row is None else op.row.rules
    apart = {id(v) for rule in rules for name in rule.apart for v in op.group(name)}
    return [v for v in _of_role(op, "in") if id(v) not in apart]
