"""Proof that the blocks of a kernel are independent: no block accesses bytes that another writes.

Two windows of two blocks are disjoint if they are disjoint along one axis. Along an axis a window
begins at a sum of multiples of integers that may differ between the blocks: coordinates of the
block, loop counters, data. If such an integer s has the factor c in both windows, and all other
terms move them by at most |c| less their size, then windows with different s are disjoint. For
equal s its term cancels, and the next integer is tried. If all coordinates of the block are covered
in this way, different blocks are disjoint.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

from pto.prove.bounds import unproved
from pto.prove.decide import highest, implied, never_negative, not_above, simplified
from pto.prove.facts import KernelUses, MemUse
from pto.prove.number import ZERO, Number, Symbol, cofactor, factors_of, number, of, product
from pto.prove.values import Guards, ViewAxis, ViewPart


@dataclass(frozen=True, slots=True)
class BlockPair:
    """Two uses that may touch the same bytes in different blocks, the first of them a write."""

    write: MemUse
    other: MemUse


def conflicts(uses: KernelUses, *, inside: bool = False, of_subs: bool = False) -> list[BlockPair]:
    """Pairs of uses that are not proved to be disjoint in different blocks. If there is none, the
    blocks are independent, as far as all uses are known. `inside`: windows
    are taken to stay inside of their views. `of_subs`: in different sub-blocks of one block."""
    left: list[BlockPair] = []
    if uses.launch.blocks.value == 1 and not of_subs:
        return left
    same = frozenset(uses.coordinates) if of_subs else frozenset[Symbol]()
    differ = list(uses.launch.sub.symbols()) if of_subs else uses.coordinates
    differ = [s for s in differ if highest(of(s)) != 0]
    written = {id(use.window.root) for use in uses.uses if use.writes}
    cases = [_Case.of(use) for use in uses.uses if id(use.window.root) in written]
    cases = [case for case in cases if not case.is_empty]
    for ours, theirs in combinations_with_replacement(cases, 2):
        a, b = ours.use, theirs.use
        if a.window.root is b.window.root and (a.writes or b.writes):
            pinned = _pinned(ours, theirs, differ)
            others = [s for s in differ if s not in pinned]
            if others and not _apart(ours, theirs, inside, others, same | pinned):
                left.append(BlockPair(a, b) if a.writes else BlockPair(b, a))
    return left


class _Case(NamedTuple):
    """A use with a non-empty window."""

    use: MemUse
    window: ViewPart
    given: Guards
    is_empty: bool

    @classmethod
    def of(cls, use: MemUse) -> _Case:
        window = use.window
        sizes = [part for axis in window.axes for part in implied(axis.size - 1)]
        guards = tuple(dict.fromkeys((*(p for g in use.given for p in implied(g)), *sizes)))
        if any(g.value is not None and g.value < 0 for g in guards):
            return cls(use, window, guards, True)
        return cls(use, window.mapped(lambda n: simplified(n, guards)), guards, False)

    def only_value(self, symbol: Symbol) -> Number | None:
        """The one value of an integer with which the use runs: 0 under `if block == 0`."""
        for g in self.given:
            value = g + of(symbol)
            at_most_one = all(s.is_fixed for s in value.symbols())
            if at_most_one and never_negative(of(symbol) - value, self.given):
                return value
        return None


def _pinned(a: _Case, b: _Case, differ: Sequence[Symbol]) -> set[Symbol]:
    """The integers that have one and the same value wherever the two uses run."""
    values = {s: a.only_value(s) for s in differ}
    return {s for s, value in values.items() if value is not None and value == b.only_value(s)}


def _apart(a: _Case, b: _Case, inside: bool, differ: Sequence[Symbol], same: Set[Symbol]) -> bool:
    """True if two uses share no byte where an integer of `differ` is another one, and those of
    `same` are the same."""
    if _same_frame(a.window, b.window) and _nests(a, inside) and _nests(b, inside):
        axes = list(zip(a.window.axes, b.window.axes, strict=True))
        if _told_apart(axes, differ, same):
            return True
    return _told_apart([(_flat(a.window), _flat(b.window))], differ, same)


def _same_frame(a: ViewPart, b: ViewPart) -> bool:
    """True for windows of one view, or of views with the same layout."""
    shapes = [[(axis.stride, axis.extent) for axis in w.axes] for w in (a, b)]
    fixed = all(s.is_fixed for n in (a.base, *(x.stride for x in a.axes)) for s in n.symbols())
    return a.base == b.base and fixed and shapes[0] == shapes[1] and bool(a.axes)


def _nests(case: _Case, inside: bool) -> bool:
    """True if indices that differ along one axis give different bytes: a step along an axis exceeds
    all inner axes, and the window does not leave its view."""
    guards = case.given
    if not inside and unproved(case.window, guards) is not None:
        return False
    axes = [axis for axis in case.window.axes if axis.extent.value != 1]
    if all(axis.stride.value is not None for axis in axes):
        axes.sort(key=lambda axis: -axis.stride.rest)
    return all(
        not_above(product(inner.extent, inner.stride), outer.stride, guards)
        for outer, inner in pairwise(axes)
    ) and all(never_negative(axis.stride - case.window.itemsize) for axis in axes[-1:])


def _flat(window: ViewPart) -> ViewAxis:
    """The range from the first to the last byte, as one axis."""
    steps = (product(axis.size - 1, axis.stride) for axis in window.axes)
    length = sum(steps, number(window.itemsize))
    return ViewAxis(window.start, length, number(1), length)


Axes = Sequence[tuple[ViewAxis, ViewAxis]]


def _told_apart(axes: Axes, differ: Sequence[Symbol], same: Set[Symbol]) -> bool:
    """True if windows that differ in an integer are disjoint along an axis."""
    decided = {*same}  # windows that differ in one of these, if they can, are disjoint
    left = set(differ)
    while left:
        second = _Second(decided)
        moved = [(ours, second.axis(theirs)) for ours, theirs in axes]
        symbol = next((s for s in _candidates(axes, decided) if second.decides(s, moved)), None)
        if symbol is None:
            return False
        decided.add(symbol)
        left.discard(symbol)
    return True


def _candidates(axes: Axes, decided: set[Symbol]) -> list[Symbol]:
    """Integers that move a window along an axis, the farthest first."""
    candidates: dict[Symbol, tuple[bool, int]] = {}
    for axis, _ in axes:
        for atom, count in axis.offset.terms:
            flat = factors_of(atom)
            for candidate in flat:
                if (
                    isinstance(candidate, Symbol)
                    and not candidate.is_fixed
                    and candidate not in decided
                ):
                    candidates[candidate] = max(
                        candidates.get(candidate, (False, 0)), (len(flat) > 1, abs(count))
                    )
    return sorted(candidates, key=lambda s: candidates[s], reverse=True)


class _Second:
    """The formulas of the second of two blocks: its integers differ from those of the first, except
    for arguments and `known` ones."""

    def __init__(self, decided: Set[Symbol]) -> None:
        self._known = decided
        self._copies: dict[Symbol, Symbol] = {}

    def number(self, n: Number) -> Number:
        return n.replaced({s: of(self._copy(s)) for s in n.symbols()})

    def axis(self, axis: ViewAxis) -> ViewAxis:
        return replace(axis, offset=self.number(axis.offset), size=self.number(axis.size))

    def _copy(self, s: Symbol) -> Symbol:
        if s.is_fixed or s in self._known:
            return s
        if s not in self._copies:
            low, high = (None if n is None else self.number(n) for n in (s.low, s.high))
            self._copies[s] = Symbol(s.name, s.kind, low, high, s.depth)
        return self._copies[s]

    def decides(self, symbol: Symbol, axes: Axes) -> bool:
        """True if windows with different values of a symbol are disjoint along an axis."""
        return any(self._along(symbol, a, b) for a, b in axes)

    def _along(self, symbol: Symbol, a: ViewAxis, b: ViewAxis) -> bool:
        """The symbol may be larger in either window, by at least one."""
        other = self._copy(symbol)
        factor = _factor(a.offset, symbol)
        if factor is None or factor == ZERO or _factor(b.offset, other) != factor:
            return False
        ours = a.offset - product(factor, of(symbol))
        theirs = b.offset - product(factor, of(other))
        reach = next((way for way in (factor, -factor) if never_negative(way)), None)
        return (
            reach is not None
            and not_above(ours + a.size, theirs + reach)
            and not_above(theirs + b.size, ours + reach)
        )


def _factor(n: Number, symbol: Symbol) -> Number | None:
    """The factor of a symbol if it is the same in all blocks; else None."""
    factor = ZERO
    for atom, count in n.terms:
        others = cofactor(atom, symbol)
        if others is not None:
            factor += others.times(count)
        elif symbol in of(atom).symbols():
            return None
    return factor if all(s.is_fixed for s in factor.symbols()) else None
