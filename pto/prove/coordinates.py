"""The block number of a launch, written as the coordinates that a program computes from it.

`block // 4` and `block % 4` are two integers that together identify a block. With symbols for them
instead of the block number, formulas are sums again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Final, NamedTuple

from pto.prove.decide import highest, lowest, never_negative, not_above
from pto.prove.number import (
    ZERO,
    Number,
    Quotient,
    Symbol,
    SymbolProduct,
    cofactor,
    factors_of,
    multiples,
    number,
    of,
    product,
    quotient,
)

_COORDINATES: Final = 8  # times that a coordinate is split into two


class Split(NamedTuple):
    """An integer, a number that it is divided by, its quotient and its remainder."""

    whole: Symbol
    by: Number
    over: Symbol
    rest: Symbol

    @property
    def place(self) -> Number:
        """The integer, in terms of both."""
        return product(of(self.over), self.by) + of(self.rest)


class Coordinates:
    """Quotients and remainders of the block number, where a program computes them: block // k and
    block % k are two coordinates, and k * (block // k) + block % k is the block number."""

    def __init__(self, block: Symbol, numbers: Sequence[Number]) -> None:
        self.leaves = [block]
        self.splits: list[Split] = []
        for _ in range(_COORDINATES):
            numbers = [_settled(n) for n in numbers]
            parts = [(q, s) for q in _quotients(numbers) for s in self.leaves if _is_part(q, s)]
            if not parts:
                break
            atom, leaf = min(parts, key=lambda q: _order(q[0].by))
            assert leaf.high is not None
            high = quotient(leaf.high, atom.by)
            over = Symbol(f"({leaf.name} // {atom.by})", "block", ZERO, high, leaf.depth)
            rest = Symbol(f"({leaf.name} % {atom.by})", "block", ZERO, atom.by - 1, leaf.depth)
            self.splits.append(Split(leaf, atom.by, over, rest))
            numbers = [n.replaced({leaf: self.splits[-1].place}) for n in numbers]
            at = self.leaves.index(leaf)
            self.leaves[at : at + 1] = [over, rest]

    def replaced(self, n: Number) -> Number:
        """A number with coordinates instead of the block number, and fewer quotients."""
        n = _settled(n)
        for split in self.splits:
            n = _settled(n.replaced({split.whole: split.place}))
        return n


def _order(by: Number) -> tuple[int, int, int]:
    """Divisors of few factors come first: the others are multiples of them."""
    factors = max((len(factors_of(atom)) for atom, _ in by.terms), default=0)
    return len(by.terms), factors, by.rest


def _is_part(atom: Quotient, leaf: Symbol) -> bool:
    """True for a quotient of a coordinate that depends on nothing else."""
    return atom.number == of(leaf) and all(s.is_fixed for s in atom.by.symbols())


def _quotients(numbers: Sequence[Number]) -> list[Quotient]:
    return [atom for n in numbers for atom in n.atoms() if isinstance(atom, Quotient)]


def _settled(n: Number) -> Number:
    """(k*q + r) // (k*m) is q // m where 0 <= r < k; r // b is 0 where 0 <= r < b."""
    for atom in _quotients([n]):
        by = atom.by.value
        if by is None:
            simpler = _by_unknown(atom)
            if simpler is not None:
                return _settled(n.replaced({atom: simpler}))
            continue
        for factor in sorted({by, *(gcd(by, count) for _, count in atom.number.terms)} - {1}):
            small = frozenset((a, c) for a, c in atom.number.terms if c % factor)
            rest = Number(small, atom.number.rest % factor)
            low, high = lowest(rest), highest(rest)
            if low is not None and high is not None and low >= 0 and high < factor:
                exact = quotient(atom.number - rest, number(factor))
                return _settled(n.replaced({atom: quotient(exact, number(by // factor))}))
    return n


def _by_unknown(atom: Quotient) -> Number | None:
    """The same for a divisor that is not a constant; None if nothing is known."""
    if never_negative(atom.number) and not_above(atom.number + 1, atom.by):
        return ZERO
    divisor = atom.by.atom
    if not isinstance(divisor, SymbolProduct):
        return None
    for factor in divisor.flat:
        exact, rest = multiples(atom.number, factor)
        others = cofactor(divisor, factor)
        if others is not None and never_negative(rest) and not_above(rest + 1, of(factor)):
            return quotient(exact, others)
    return None
