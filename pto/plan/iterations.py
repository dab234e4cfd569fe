"""Integers of a program in all blocks and iterations at once, without running its instructions.

Only arithmetic, loop counters and block numbers are evaluated, and only for values that are asked
for. A value that depends on data or on a number of the call is not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pto.core.primitives import on_arrays
from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning import Lane
from pto.isa.meaning.scalar.arith import kind_of
from pto.isa.meaning.scalar.unit import (
    BLOCK_COUNT,
    BLOCK_INDEX,
    SUB_BLOCK_COUNT,
    SUB_BLOCK_INDEX,
)
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.target.facts import Profile
from pto.verify.operation import constant

Ints = npt.NDArray[np.int64]
MOST: Final = 1 << 16  # iterations of a loop nest that are looked at
_QUICK: Final[Mapping[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": np.minimum,
    "max": np.maximum,
}
_THROUGH: Final = (Control.SECTION, Control.SCOPE, Control.REGION)  # run once where they stand


class Unknown(Exception):
    """A value that arithmetic on block numbers and loop counters does not give."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The iterations in which the operations of a block run, over all blocks of the launch."""

    outer: Space | None
    index: Ints  # of each iteration, the iteration around it; of the outermost, its block
    depth: int

    @property
    def count(self) -> int:
        return len(self.index)

    def blocks(self) -> Ints:
        """The block that each iteration belongs to."""
        return self.index if self.outer is None else self.outer.blocks()[self.index]


class Spread(NamedTuple):
    """A value that differs between iterations."""

    space: Space
    data: npt.NDArray[Any]

    def at(self, space: Space) -> npt.NDArray[Any]:
        """The same value in each iteration of a space inside its own."""
        steps: list[Ints] = []
        while space is not self.space and space.outer is not None:
            steps.append(space.index)
            space = space.outer
        data = self.data
        while steps:
            data = data[steps.pop()]
        return data


Number = int | Spread


def over(fn: Callable[..., Any], *given: Number) -> Number:
    """fn(given), iteration by iteration where one of them is spread."""
    spaces = [g.space for g in given if isinstance(g, Spread)]
    if not spaces:
        return fn(*given)
    space = max(spaces, key=lambda s: s.depth)
    return Spread(space, fn(*(g.at(space) if isinstance(g, Spread) else g for g in given)))


class Iterations:
    """Values and iterations of the functions of one launch."""

    def __init__(
        self, profile: Profile, blocks: int, agents: int, numbers: Mapping[int, int]
    ) -> None:
        """`agents`: of one block. `numbers`: known arguments, by id of the value."""
        self._profile = profile
        self._blocks, self._agents = blocks, agents
        self.adapts = False  # a value that was asked for depends on the number of blocks
        self._values: dict[int, Number | None] = dict(numbers)
        self._spaces: dict[int, Space | None] = {}

    # ---- iterations

    def space(self, block: Block) -> Space:
        """The iterations of a block; raises Unknown."""
        key = id(block)
        if key not in self._spaces:
            self._spaces[key] = None
            self._spaces[key] = self._made(block, block.region.owner)
        found = self._spaces[key]
        if found is None:
            raise Unknown
        return found

    def _made(self, block: Block, op: Operation) -> Space:
        if op.control is Control.FUNCTION:
            return self._root()
        if op.parent is None:
            raise Unknown
        around = self.space(op.parent)
        if op.control in _THROUGH:
            return around
        if op.control is Control.FOR:
            return self._loop(block, op, around)
        if op.control is Control.IF:
            taken = self.value(op.operands[0])
            holds = taken.at(around) if isinstance(taken, Spread) else taken
            chosen = np.broadcast_to(np.equal(holds, op.regions[0].block is block), around.count)
            return Space(around, np.flatnonzero(chosen), around.depth + 1)
        raise Unknown

    def _root(self) -> Space:
        if self._blocks * self._agents > MOST:
            raise Unknown
        found = self._spaces.get(0)
        if found is None:
            blocks = np.repeat(np.arange(self._blocks), self._agents)
            found = self._spaces[0] = Space(None, blocks, 0)
        return found

    def _loop(self, block: Block, op: Operation, around: Space) -> Space:
        low, high, by = (_at(self.value(v), around) for v in op.operands[:3])
        if np.min(by) < 1:
            raise Unknown
        turns = np.broadcast_to(np.maximum(-((low - high) // by), 0), around.count)
        total = int(turns.sum())
        if total > MOST:
            raise Unknown
        index = np.repeat(np.arange(around.count), turns)
        found = Space(around, index, around.depth + 1)
        nth = np.arange(total) - np.repeat(np.cumsum(turns) - turns, turns)
        low, by = (n[index] if np.ndim(n) else n for n in (low, by))
        counter = block.args[0]
        kind = kind_of(counter.type)
        self._values[id(counter)] = Spread(found, (low + by * nth).astype(kind))
        return found

    # ---- values

    def value(self, value: Value) -> Number:
        """A number of the program; raises Unknown."""
        key = id(value)
        if key not in self._values:
            self._values[key] = None
            self._values[key] = self._evaluated(value)
        found = self._values[key]
        if found is None:
            raise Unknown
        return found

    def _evaluated(self, value: Value) -> Number:
        op, known = value.maker, constant(value)
        if known is not None:
            return known
        if op is None:
            return self._counter(value)
        body = op.body
        if body is BLOCK_INDEX:
            root = self._root()
            return Spread(root, root.index)
        if body is SUB_BLOCK_INDEX:
            root = self._root()
            return Spread(root, np.arange(root.count) % self._agents)
        if body is BLOCK_COUNT:
            self.adapts = True
            return self._blocks
        if body is SUB_BLOCK_COUNT:
            return self._agents
        if op.traits.operator == "select":
            return over(np.where, *(self.value(v) for v in op.operands))
        if op.row is None or not isinstance(body, Lane) or len(op.results) != 1:
            raise Unknown
        traits, wide = op.traits, all(map(_is_wide, (*op.operands, *op.results)))
        if wide and traits.same_number:
            return self.value(op.operands[0])
        if wide and traits.signed is not False and traits.operator in _QUICK:
            return over(_QUICK[traits.operator], *map(self.value, op.operands))
        return self._computed(op, Case(op, op.row, self._profile, constant), body)

    def _counter(self, value: Value) -> Number:
        """Of a loop, which its space gives; any other argument of a block is not known."""
        owner = value.owner
        loop = owner.region.owner if isinstance(owner, Block) else None
        if not isinstance(owner, Block) or loop is None or loop.control is not Control.FOR:
            raise Unknown
        if value is not owner.args[0]:
            raise Unknown
        self.space(owner)
        return self.value(value)

    def _computed(self, op: Operation, case: Case, body: Lane) -> Number:
        if not all(map(_is_integer, (*op.operands, *op.results))):
            raise Unknown
        given = [self.value(v) for v in op.operands]
        if not any(isinstance(g, Spread) for g in given):
            if body.quick is None:
                raise Unknown
            return body.quick(case)(*given)
        kinds = [kind_of(v.type) for v in op.operands]
        fn, out = on_arrays(body.function(case)), kind_of(op.results[0].type)

        def run(*numbers: Any) -> Any:
            sources = [np.asarray(n).astype(k) for n, k in zip(numbers, kinds, strict=True)]
            if body.needs is not None and not np.all(body.needs(*sources)):
                raise Unknown
            return fn(*sources).astype(out)

        return over(run, *given)


def _at(number: Number, space: Space) -> Any:
    return number.at(space) if isinstance(number, Spread) else number


def _is_wide(value: Value) -> bool:
    """Whether NumPy's numbers of 64 bits compute as the program does."""
    return isinstance(value.type, t.Scalar) and value.type.name in ("index", "i64")


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, t.Scalar) and not value.type.is_float
