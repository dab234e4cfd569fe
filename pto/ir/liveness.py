"""Alias and liveness analysis of buffers: which values may refer to a buffer, and its lifetime.

A buffer is identified by its root, the value that defines it. A position is the index of an
operation in program order within one function. The caller supplies the roots.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.row import types as t
from pto.isa.row.traits import Control

Flow = tuple[Value, Value]  # from, to


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From the first position to the last, both included."""

    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last

    def joined(self, other: Lifetime) -> Lifetime:
        return Lifetime(min(self.first, other.first), max(self.last, other.last))


# ---- the values that a value may alias


def aliases(
    function: Operation, roots: Iterable[Value], *, carried: bool = True
) -> dict[Value, tuple[int, ...]]:
    """Value -> indices of the roots that it may alias.

    Without `carried`, values passed from one iteration of a loop to the next are ignored.
    """
    follows: dict[Value, list[Value]] = {}
    for op in function.walk():
        for source, target in _flows(op, carried):
            follows.setdefault(source, []).append(target)
    sets: dict[Value, int] = {}  # a set of roots; bit n is root n
    for n, root in enumerate(roots):
        sets[root] = sets.get(root, 0) | 1 << n
    waiting = list(sets)
    while waiting:
        value = waiting.pop()
        for target in follows.get(value, ()):
            old = sets.get(target, 0)
            new = old | sets[value]
            if new != old:
                sets[target] = new
                waiting.append(target)
    return {value: tuple(_bits(bits)) for value, bits in sets.items()}


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _flows(op: Operation, carried: bool) -> Iterator[Flow]:
    """Pairs (a, b) such that `b` may alias every root that `a` may alias."""
    if op.control is Control.FOR:
        yield from _for_flows(op, carried)
    elif op.control is Control.WHILE:
        yield from _while_flows(op, carried)
    elif op.control in (Control.IF, Control.REGION):
        for region in op.regions:
            yield from zip(handed_on(region), op.results, strict=False)
    else:
        for source in op.operands:
            yield from ((source, r) for r in op.results if _passes(source.type, r.type))
        if op.regions and op.regions[0].blocks:  # a scope that captures
            yield from zip(op.operands, op.regions[0].block.args, strict=False)


def _for_flows(op: Operation, carried: bool) -> Iterator[Flow]:
    inits, yielded = op.group("inits"), handed_on(op.regions[0])
    for sources, targets in (
        (inits, carried_args(op)),
        (inits, op.results),  # zero iterations
        (yielded if carried else (), carried_args(op)),
        (yielded, op.results),
    ):
        yield from zip(sources, targets, strict=False)


def _while_flows(op: Operation, carried: bool) -> Iterator[Flow]:
    before, after = op.regions
    passed = handed_on(before)[1:]
    arguments = after.block.args if after.blocks else ()
    for sources, targets in (
        (op.operands, carried_args(op)),
        (passed, arguments),
        (passed, op.results),
        (handed_on(after) if carried else (), carried_args(op)),
    ):
        yield from zip(sources, targets, strict=False)


def carried_args(loop: Operation) -> list[Value]:
    """The loop-carried arguments of a loop's body."""
    region = loop.regions[0]
    args = region.block.args if region.blocks else []
    return args[len(args) - len(loop.group("inits")) :]


def handed_on(region: Region) -> list[Value]:
    """The operands of the terminator of a region."""
    ops = region.block.ops if region.blocks else []
    return ops[-1].operands if ops else []


_STORAGE = (t.TileBuf, t.MultiTile, t.MemRef, t.Async, t.PipeHandle)


def _is_number(type: t.Type) -> bool:
    return isinstance(type, t.Scalar) and not type.is_float


def _passes(source: t.Type, result: t.Type) -> bool:
    """True if the result may alias the source: handles derive from handles or addresses, and an
    address may become a number and an address again."""
    from_number = isinstance(source, t.Ptr) or _is_number(source)
    if isinstance(result, t.Ptr):
        return from_number or isinstance(source, _STORAGE)
    if _is_number(result):
        return from_number
    return isinstance(result, _STORAGE) and isinstance(source, (t.Ptr, *_STORAGE))


# ---- before which operations it is live

Roots = frozenset[Value]


def live_before(block: Block, after: Roots, step: Callable[[Operation, Roots], Roots]) -> Roots:
    """The roots that are live before a block, given those live after it.

    `step` gives the roots live before an operation without regions. It is called again for the
    operations of a loop, with more roots each time, until no more are found.
    """
    for op in reversed(block.ops):
        after = _live_around(op, after, step) if op.regions else step(op, after)
    return after


def _live_around(op: Operation, after: Roots, step: Callable[[Operation, Roots], Roots]) -> Roots:
    blocks = op.blocks()
    if op.control is Control.IF:
        ends = [live_before(block, after, step) for block in blocks]
        return ends[0] | (ends[1] if len(ends) == 2 else after)
    head = after
    while True:
        live = head
        for block in reversed(blocks):
            live = after | live_before(block, live, step)
        if live <= head or not op.is_loop:
            return live
        head = live


# ---- when it is used


@dataclass(slots=True)
class Timeline:
    """The operations of a function in program order, and when each root is used."""

    names: dict[Value, tuple[int, ...]]  # value -> indices of the roots it may alias
    order: list[Operation] = field(default_factory=list[Operation])
    made: dict[Value, int] = field(default_factory=dict[Value, int])  # value -> position
    alive: dict[Value, Lifetime] = field(default_factory=dict[Value, Lifetime])  # root -> lifetime

    @property
    def whole(self) -> Lifetime:
        return Lifetime(0, max(0, len(self.order) - 1))

    def of(self, root: Value) -> Lifetime | None:
        """None for a buffer that is never used."""
        return self.alive.get(root)


def timeline(function: Operation, roots: Iterable[Value], profile: str = "") -> Timeline:
    """The lifetime of each root's buffer, counting uses through any alias.

    `profile` matters for scratch operands: on some targets an instruction does not use them.

    A use inside a loop of a value from outside lasts for the whole loop. A buffer that both sides
    of a core use lives for the whole function: their sections run at the same time.
    """
    roots_listed = list(roots)
    walk = _LivenessWalk(roots_listed, aliases(function, roots_listed), profile)
    walk.visit(function)
    out = walk.out
    for n, sides in walk.sides.items():
        if len(sides) > 1:
            walk.extend((n,), out.whole.first, out.whole.last)
    return out


def is_handle(op: Operation) -> bool:
    """True if the operation only names or describes storage and accesses no byte."""
    return op.traits.names_only


def touched(op: Operation, profile: str) -> list[Value]:
    """The operands an operation really uses on a profile."""
    row = op.row
    if not any(profile in o.idle for o in row.operands):
        return op.operands
    return [v for o in row.used_on(profile) for v in op.group(o.name)]


class _LivenessWalk:
    """One pass over a function; the open loops are a stack."""

    def __init__(
        self, roots: list[Value], names: dict[Value, tuple[int, ...]], profile: str
    ) -> None:
        self.roots = roots
        self.names = names
        self.profile = profile
        self.out = Timeline(names)
        self.sides: dict[int, set[str]] = {}
        self.side = ""
        self.starts: list[int] = []
        self.held: list[set[int]] = []  # roots each open loop keeps alive

    def extend(self, roots: Iterable[int], first: int, last: int) -> None:
        for n in roots:
            key, span = self.roots[n], Lifetime(first, last)
            earlier = self.out.alive.get(key)
            self.out.alive[key] = span if earlier is None else earlier.joined(span)

    def visit(self, op: Operation) -> None:
        now = len(self.out.order)
        self.out.order.append(op)
        for value in touched(op, self.profile):
            self.use(value, op, now)
        outer = self.side
        self.side = op.traits.side or outer
        if op.is_loop:
            self.loop(op, now)
        else:
            self.inside(op, now)
        self.side = outer
        end = len(self.out.order) - 1
        self.out.made.update((v, end) for v in op.results)

    def inside(self, op: Operation, now: int) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.out.made.update((v, now) for v in block.args)
                for child in block.ops:
                    self.visit(child)

    def loop(self, op: Operation, now: int) -> None:
        for value in carried_args(op):
            self.extend(self.names.get(value, ()), now, now)
        self.starts.append(now)
        self.held.append(set())
        self.inside(op, now)
        self.starts.pop()
        self.extend(self.held.pop(), now, len(self.out.order) - 1)

    def use(self, value: Value, op: Operation, now: int) -> None:
        roots = self.names.get(value)
        if not roots:
            return
        if self.side:
            for n in roots:
                self.sides.setdefault(n, set()).add(self.side)
        outside = self.loops_without(value)
        if outside < len(self.held):
            self.held[outside].update(roots)
        elif not is_handle(op):
            self.extend(roots, now, now)

    def loops_without(self, value: Value) -> int:
        """The outermost open loop that began after the value was made."""
        return bisect_left(self.starts, self.out.made.get(value, 0) + 1)
