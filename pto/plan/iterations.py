"""Integers of a program in all blocks and iterations at once, without running its instructions.

Only arithmetic, loop counters and block numbers are evaluated, and only on demand. A value that
depends on data or on a number of the call is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pto.core.primitives import on_arrays
from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning.kinds import Lane
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

Ints = npt.NDArray[np.int64]
MOST: Final = 1 << 16  # iterations of a loop nest that are evaluated
_THROUGH: Final = (Control.SECTION, Control.SCOPE, Control.REGION)  # run once


class NotStatic(Exception):
    """A value that does not follow from block numbers and loop counters."""


@dataclass(frozen=True, slots=True, eq=False)
class IterSpace:
    """The iterations in which the operations of a block run, over all blocks of the launch."""

    outer: IterSpace | None
    index: Ints  # the enclosing iteration of each; for the outermost, its block
    depth: int

    @property
    def count(self) -> int:
        return len(self.index)

    def blocks(self) -> Ints:
        """The block that each iteration belongs to."""
        return self.index if self.outer is None else self.outer.blocks()[self.index]


class PerIter(NamedTuple):
    """A value that differs between iterations."""

    space: IterSpace
    data: npt.NDArray[Any]

    def at(self, space: IterSpace) -> npt.NDArray[Any]:
        """The same value in each iteration of a space inside its own."""
        steps: list[Ints] = []
        while space is not self.space and space.outer is not None:
            steps.append(space.index)
            space = space.outer
        data = self.data
        while steps:
            data = data[steps.pop()]
        return data


Number = int | PerIter


def in_space(number: Number, space: IterSpace) -> Any:
    """A number in each iteration of a space; an integer if it is the same in all of them."""
    return number.at(space) if isinstance(number, PerIter) else number


def over(fn: Callable[..., Any], *numbers: Number) -> Number:
    """fn(given), iteration by iteration where one of them is spread."""
    spaces = [g.space for g in numbers if isinstance(g, PerIter)]
    if not spaces:
        return fn(*numbers)
    space = max(spaces, key=lambda s: s.depth)
    return PerIter(space, fn(*(in_space(g, space) for g in numbers)))


class Iterations:
    """Values and iterations of the functions of one launch."""

    def __init__(
        self, profile: Profile, blocks: int, agents: int, numbers: Mapping[Value, int]
    ) -> None:
        """`agents`: of one block. `numbers`: known arguments."""
        self._profile = profile
        self._blocks, self._agents = blocks, agents
        self.adapts = False  # an evaluated value depends on the number of blocks
        self._values: dict[Value, Number | None] = dict(numbers)
        self._spaces: dict[Block | None, IterSpace | None] = {}

    # ---- iterations

    def space(self, block: Block) -> IterSpace:
        """The iterations of a block; raises NotStatic."""
        if block not in self._spaces:
            self._spaces[block] = None
            self._spaces[block] = self._made(block, block.region.owner)
        space = self._spaces[block]
        if space is None:
            raise NotStatic
        return space

    def _made(self, block: Block, op: Operation) -> IterSpace:
        if op.control is Control.FUNCTION:
            return self._root()
        if op.parent is None:
            raise NotStatic
        around = self.space(op.parent)
        if op.control in _THROUGH:
            return around
        if op.control is Control.FOR:
            return self._loop(block, op, around)
        if op.control is Control.IF:
            holds = in_space(self.value(op.operands[0]), around)
            chosen = np.broadcast_to(np.equal(holds, op.regions[0].block is block), around.count)
            return IterSpace(around, np.flatnonzero(chosen), around.depth + 1)
        raise NotStatic

    def _root(self) -> IterSpace:
        if self._blocks * self._agents > MOST:
            raise NotStatic
        root = self._spaces.get(None)
        if root is None:
            blocks = np.repeat(np.arange(self._blocks), self._agents)
            root = self._spaces[None] = IterSpace(None, blocks, 0)
        return root

    def _loop(self, block: Block, op: Operation, around: IterSpace) -> IterSpace:
        low, high, by = (in_space(self.value(v), around) for v in op.operands[:3])
        if np.min(by) < 1:
            raise NotStatic
        turns = np.broadcast_to(np.maximum(-((low - high) // by), 0), around.count)
        total = int(turns.sum())
        if total > MOST:
            raise NotStatic
        index = np.repeat(np.arange(around.count), turns)
        space = IterSpace(around, index, around.depth + 1)
        nth = np.arange(total) - np.repeat(np.cumsum(turns) - turns, turns)
        low, by = (n[index] if np.ndim(n) else n for n in (low, by))
        counter = block.args[0]
        kind = kind_of(counter.type)
        self._values[counter] = PerIter(space, (low + by * nth).astype(kind))
        return space

    # ---- values

    def value(self, value: Value) -> Number:
        """A number of the program; raises NotStatic."""
        if value not in self._values:
            self._values[value] = None
            self._values[value] = self._evaluated(value)
        number = self._values[value]
        if number is None:
            raise NotStatic
        return number

    def _evaluated(self, value: Value) -> Number:
        op, constant = value.maker, value.number
        if constant is not None:
            return constant
        if op is None:
            return self._counter(value)
        body = op.body
        if body is BLOCK_INDEX:
            root = self._root()
            return PerIter(root, root.index)
        if body is SUB_BLOCK_INDEX:
            root = self._root()
            return PerIter(root, np.arange(root.count) % self._agents)
        if body is BLOCK_COUNT:
            self.adapts = True
            return self._blocks
        if body is SUB_BLOCK_COUNT:
            return self._agents
        if op.traits.operator == "select":
            return over(np.where, *(self.value(v) for v in op.operands))
        if not isinstance(body, Lane) or len(op.results) != 1:
            raise NotStatic
        return self._computed(op, Case(op, self._profile), body)

    def _counter(self, value: Value) -> Number:
        """The value of a loop counter, from its space; any other block argument is unknown."""
        owner = value.owner
        loop = owner.region.owner if isinstance(owner, Block) else None
        if not isinstance(owner, Block) or loop is None or loop.control is not Control.FOR:
            raise NotStatic
        if value is not owner.args[0]:
            raise NotStatic
        self.space(owner)
        return self.value(value)

    def _computed(self, op: Operation, case: Case, body: Lane) -> Number:
        if not all(map(_is_integer, (*op.operands, *op.results))):
            raise NotStatic
        operands = [self.value(v) for v in op.operands]
        if not any(isinstance(g, PerIter) for g in operands):
            if body.quick is None:
                raise NotStatic
            return body.quick(case)(*operands)
        kinds = [kind_of(v.type) for v in op.operands]
        fn, out = on_arrays(body.function(case)), kind_of(op.results[0].type)

        def run(*numbers: Any) -> Any:
            sources = [np.asarray(n).astype(k) for n, k in zip(numbers, kinds, strict=True)]
            if body.needs is not None and not np.all(body.needs(*sources)):
                raise NotStatic
            return fn(*sources).astype(out)

        return over(run, *operands)


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, t.Scalar) and not value.type.is_float
