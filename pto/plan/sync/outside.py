"""Memory outside the core: which tensor an access belongs to, and when two windows are apart.

Tensors are told apart by the argument they come from. Windows of one view are told apart where
their offsets differ by known amounts; everything else is taken to overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pto.core.memory import Space
from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW, space_of
from pto.isa.row.traits import Control
from pto.verify.operation import constant

_DEEPEST = 64  # operations between an access and what it is part of
Loops = frozenset[int]  # by id of the operation


@dataclass(frozen=True, slots=True)
class Number:
    """A sum: known multiples of values, and a constant."""

    terms: tuple[tuple[int, int], ...] = ()  # (id of the value, how often), sorted
    rest: int = 0

    def plus(self, other: Number, times: int = 1) -> Number:
        terms = dict(self.terms)
        for key, count in other.terms:
            terms[key] = terms.get(key, 0) + times * count
        kept = tuple(sorted((key, count) for key, count in terms.items() if count))
        return Number(kept, self.rest + times * other.rest)

    def times(self, other: Number) -> Number | None:
        """None where both are unknown."""
        one, many = (self, other) if not self.terms else (other, self)
        return None if one.terms else Number().plus(many, one.rest)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a tensor. `view` None: the whole of it; `root` None: of any tensor."""

    root: Value | None
    view: Value | None = None
    offsets: tuple[Number, ...] = ()
    sizes: tuple[int | None, ...] = ()  # at most so many


@dataclass(frozen=True, slots=True)
class Turns:
    """How two accesses stand in loops: in one turn of those in `same`, the second in any later
    turn of `carried`, and in whatever turns of all others."""

    same: Loops = frozenset()
    carried: Operation | None = None


class Outside:
    """The windows of one function, each found once."""

    def __init__(self, function: Operation) -> None:
        self._arguments = {id(v) for v in function.regions[0].block.args}
        self._values: dict[int, Value] = {}
        self._found: dict[int, Window] = {}
        self._around: dict[int, Loops] = {}

    def of(self, value: Value) -> Window | None:
        """None for a value that points nowhere outside."""
        if space_of(value.type) is not Space.GM:
            return None
        found = self._found.get(id(value))
        if found is None:
            found = self._found[id(value)] = self._window(value)
        return found

    def _window(self, value: Value) -> Window:
        root, maker = self._root(value), value.maker
        if root is None or maker is None or maker.row is not PARTITION_VIEW:
            return Window(root)
        view = maker.operands[0]
        source = view.maker
        if source is None or source.row is not MAKE_TENSOR_VIEW or not self._is_plain(source):
            return Window(root)
        offsets = tuple(self._number(v) for v in maker.group("offsets"))
        return Window(root, view, offsets, tuple(_most(v) for v in maker.group("sizes")))

    def _root(self, value: Value) -> Value | None:
        for _ in range(_DEEPEST):
            if id(value) in self._arguments:
                return value
            maker = value.maker
            inner = None if maker is None or maker.regions else next(_pointers(maker), None)
            if inner is None:
                return None
            value = inner
        return None

    def _is_plain(self, view: Operation) -> bool:
        """Dimensions nest: indices that differ in one of them never lead to one element."""
        groups = zip(view.group("shape"), view.group("strides"), strict=False)
        dims = [(self._number(count), self._number(stride)) for count, stride in groups]
        dims = [d for d in dims if d[0] != Number((), 1)]
        if all(not stride.terms for _, stride in dims):
            dims.sort(key=lambda d: -d[1].rest)
        return any(
            all(_holds(outer, inner) for outer, inner in pairwise(way))
            for way in (dims, dims[::-1])
        )

    # ---- numbers

    def _number(self, value: Value, depth: int = 0) -> Number:
        known = constant(value)
        if known is not None:
            return Number((), known)
        maker = value.maker
        work = _work(maker) if maker is not None and depth < _DEEPEST else None
        found = None
        if maker is not None and work is not None:
            found = work([self._number(v, depth + 1) for v in maker.operands])
        if found is None:
            self._values[id(value)] = value
            found = Number(((id(value), 1),))
        return found

    # ---- apart

    def are_apart(self, a: Window, b: Window, turns: Turns) -> bool:
        """Whether the later access `b` never touches what the earlier one, `a`, does."""
        if a.root is None or b.root is None:
            return False
        if a.root is not b.root:
            return True
        if a.view is None or a.view is not b.view or not self._loops(a.view) <= turns.same:
            return False
        return any(
            self._never_meet(one, other, size, behind, turns)
            for one, other, size, behind in zip(
                a.offsets, b.offsets, a.sizes, b.sizes, strict=False
            )
        )

    def _never_meet(
        self, a: Number, b: Number, size_a: int | None, size_b: int | None, turns: Turns
    ) -> bool:
        """Two stretches of one dimension: `b` begins `rest + n * step` after `a`, n >= 1."""
        ours, theirs = dict(a.terms), dict(b.terms)
        step = 0
        for key in ours.keys() | theirs.keys():
            if ours.get(key) != theirs.get(key):
                return False
            value = self._values[key]
            if self._loops(value) <= turns.same:
                continue
            width = _step(value, turns.carried)
            if width is None:
                return False
            step += ours[key] * width
        nearest = b.rest - a.rest + step
        if step >= 0 and size_a is not None and nearest >= size_a:
            return True
        return step <= 0 and size_b is not None and -nearest >= size_b

    def _loops(self, value: Value) -> Loops:
        """The loops in whose turns a value may differ."""
        found = self._around.get(id(value))
        if found is None:
            owner = value.owner
            inside = owner.region.owner if isinstance(owner, Block) else owner
            above = [] if inside is None else [inside, *inside.ancestors()]
            if isinstance(owner, Operation):
                above = above[1:]
            found = frozenset(id(op) for op in above if op.is_loop)
            self._around[id(value)] = found
        return found


def _pointers(op: Operation) -> Iterator[Value]:
    return (v for v in op.operands if space_of(v.type) is Space.GM)


def _holds(outer: tuple[Number, Number], inner: tuple[Number, Number]) -> bool:
    """One step of the outer dimension passes over the whole inner one."""
    span = inner[0].times(inner[1])
    if span is None:
        return False
    return span == outer[1] or (not span.terms and not outer[1].terms and outer[1].rest > span.rest)


def _step(value: Value, loop: Operation | None) -> int | None:
    """How much a loop's counter grows in a turn; None for another value, or where nobody knows."""
    if loop is None or loop.control is not Control.FOR:
        return None
    return constant(loop.operands[2]) if value is loop.regions[0].block.args[0] else None


def _most(value: Value) -> int | None:
    """A number the value never exceeds."""
    known = constant(value)
    if known is not None or value.maker is None or not _is_least(value.maker):
        return known
    return min((n for v in value.maker.operands if (n := constant(v)) is not None), default=None)


def _is_least(op: Operation) -> bool:
    return op.traits.operator == "min"


def _sum(sign: int) -> Callable[[Sequence[Number]], Number | None]:
    return lambda parts: parts[0].plus(parts[1], sign)


Work = Callable[[Sequence[Number]], Number | None]
_SUMS: dict[str, Work] = {
    "+": _sum(1),
    "-": _sum(-1),
    "*": lambda parts: parts[0].times(parts[1]),
}


def _work(op: Operation) -> Work | None:
    """How the number an operation gives follows from those it takes."""
    same = op.traits.same_number
    return (lambda parts: parts[0]) if same else _SUMS.get(op.traits.operator)
