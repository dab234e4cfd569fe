"""Global memory: the tensor of an access, and when two windows are disjoint.

Tensors are distinguished by the argument they come from. Windows of one view are disjoint if their
offsets differ by known amounts; all other windows are assumed to overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.row.traits import Control
from pto.plan.stores import is_global
from pto.plan.stores import root as origin

_DEEPEST = 64  # operations from which one number is computed
Loops = frozenset[Operation]
_NO_TERMS = frozenset[tuple[Value, int]]()


@dataclass(frozen=True, slots=True)
class LinearSum:
    """A sum: known multiples of values, and a constant."""

    terms: frozenset[tuple[Value, int]] = _NO_TERMS  # (value, how often)
    rest: int = 0

    def plus(self, other: LinearSum, times: int = 1) -> LinearSum:
        terms = dict(self.terms)
        for key, count in other.terms:
            terms[key] = terms.get(key, 0) + times * count
        nonzero = frozenset((key, count) for key, count in terms.items() if count)
        return LinearSum(nonzero, self.rest + times * other.rest)

    def times(self, other: LinearSum) -> LinearSum | None:
        """The product; None if both are unknown."""
        one, many = (self, other) if not self.terms else (other, self)
        return None if one.terms else LinearSum().plus(many, one.rest)


@dataclass(frozen=True, slots=True, eq=False)
class MemWindow:
    """A part of a tensor. `view` None: the whole of it; `root` None: of any tensor."""

    root: Value | None
    view: Value | None = None
    offsets: tuple[LinearSum, ...] = ()
    sizes: tuple[int | None, ...] = ()  # at most so many


@dataclass(frozen=True, slots=True)
class Relation:
    """The loop iterations of two accesses: the same iteration of loops in `same`, a later iteration
    of `carried` for the second, and unrelated iterations of all other loops."""

    same: Loops = frozenset()
    carried: Operation | None = None


class GlobalViews:
    """The windows of one function, each found once."""

    def __init__(self, function: Operation) -> None:
        self._arguments = set(function.regions[0].block.args)
        self._found: dict[Value, MemWindow] = {}
        self._around: dict[Value, Loops] = {}

    def of(self, value: Value) -> MemWindow | None:
        """The window of a value; None if it does not refer to global memory."""
        if not is_global(value.type):
            return None
        window = self._found.get(value)
        if window is None:
            window = self._found[value] = self._window(value)
        return window

    def _window(self, value: Value) -> MemWindow:
        root, maker = origin(value), value.maker
        if root not in self._arguments:
            return MemWindow(None)
        if maker is None or maker.row is not PARTITION_VIEW:
            return MemWindow(root)
        view = maker.operands[0]
        source = view.maker
        if source is None or source.row is not MAKE_TENSOR_VIEW or not self._is_plain(source):
            return MemWindow(root)
        offsets = tuple(self._number(v) for v in maker.group("offsets"))
        return MemWindow(root, view, offsets, tuple(_most(v) for v in maker.group("sizes")))

    def _is_plain(self, view: Operation) -> bool:
        """True if dimensions nest: different indices never give one element."""
        groups = zip(view.group("shape"), view.group("strides"), strict=False)
        dims = [(self._number(count), self._number(stride)) for count, stride in groups]
        dims = [d for d in dims if d[0] != LinearSum(_NO_TERMS, 1)]
        if all(not stride.terms for _, stride in dims):
            dims.sort(key=lambda d: -d[1].rest)
        return any(
            all(_holds(outer, inner) for outer, inner in pairwise(way))
            for way in (dims, dims[::-1])
        )

    # ---- numbers

    def _number(self, value: Value, depth: int = 0) -> LinearSum:
        constant = value.number
        if constant is not None:
            return LinearSum(_NO_TERMS, constant)
        maker = value.maker
        work = _work(maker) if maker is not None and depth < _DEEPEST else None
        total = None
        if maker is not None and work is not None:
            total = work([self._number(v, depth + 1) for v in maker.operands])
        if total is None:
            total = LinearSum(frozenset({(value, 1)}))
        return total

    # ---- apart

    def are_apart(self, a: MemWindow, b: MemWindow, relation: Relation) -> bool:
        """True if the later access `b` never overlaps the earlier one, `a`."""
        if a.root is None or b.root is None:
            return False
        if a.root is not b.root:
            return True
        if a.view is None or a.view is not b.view or not self._loops(a.view) <= relation.same:
            return False
        return any(
            self._never_meet(one, other, size, behind, relation)
            for one, other, size, behind in zip(
                a.offsets, b.offsets, a.sizes, b.sizes, strict=False
            )
        )

    def _never_meet(
        self, a: LinearSum, b: LinearSum, size_a: int | None, size_b: int | None, relation: Relation
    ) -> bool:
        """Two intervals of one dimension: `b` begins `rest + n * step` after `a`, n >= 1."""
        ours, theirs = dict(a.terms), dict(b.terms)
        step = 0
        for value in ours.keys() | theirs.keys():
            if ours.get(value) != theirs.get(value):
                return False
            if self._loops(value) <= relation.same:
                continue
            width = _step(value, relation.carried)
            if width is None:
                return False
            step += ours[value] * width
        nearest = b.rest - a.rest + step
        if step >= 0 and size_a is not None and nearest >= size_a:
            return True
        return step <= 0 and size_b is not None and -nearest >= size_b

    def _loops(self, value: Value) -> Loops:
        """The loops in which a value may differ between iterations."""
        loops = self._around.get(value)
        if loops is None:
            owner = value.owner
            inside = owner.region.owner if isinstance(owner, Block) else owner
            above = [] if inside is None else [inside, *inside.ancestors()]
            if isinstance(owner, Operation):
                above = above[1:]
            loops = frozenset(op for op in above if op.is_loop)
            self._around[value] = loops
        return loops


def _holds(outer: tuple[LinearSum, LinearSum], inner: tuple[LinearSum, LinearSum]) -> bool:
    """True if one step of the outer dimension covers the whole inner one."""
    span = inner[0].times(inner[1])
    if span is None:
        return False
    return span == outer[1] or (not span.terms and not outer[1].terms and outer[1].rest > span.rest)


def _step(value: Value, loop: Operation | None) -> int | None:
    """The constant step of a loop counter; None for another value, or if it is not constant."""
    if loop is None or loop.control is not Control.FOR:
        return None
    return loop.operands[2].number if value is loop.regions[0].block.args[0] else None


def _most(value: Value) -> int | None:
    """An upper bound of the value."""
    constant = value.number
    if constant is not None or value.maker is None or value.maker.traits.operator != "min":
        return constant
    return min((n for v in value.maker.operands if (n := v.number) is not None), default=None)


def _sum(sign: int) -> Callable[[Sequence[LinearSum]], LinearSum | None]:
    return lambda parts: parts[0].plus(parts[1], sign)


Work = Callable[[Sequence[LinearSum]], LinearSum | None]
_SUMS: dict[str, Work] = {
    "+": _sum(1),
    "-": _sum(-1),
    "*": lambda parts: parts[0].times(parts[1]),
}


def _work(op: Operation) -> Work | None:
    """How the number of a result follows from those of the operands."""
    same = op.traits.same_number
    return (lambda parts: parts[0]) if same else _SUMS.get(op.traits.operator)
