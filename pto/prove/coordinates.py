"""The block number of a launch, written as the coordinates that a program computes from it.

`block // 4` and `block % 4` are two integers that together identify a block. With symbols for them
instead of the block number, formulas are sums again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Final, NamedTuple

from pto.prove.decide import highest, lowest, never_negative, not_above
from pto.prove.number import ZERO, Number, Quotient, Symbol, number, of, product, quotient

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
            atom, leaf = min(parts, key=lambda q: (len(q[0].by.terms), q[0].by.rest))
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
            if never_negative(atom.number) and not_above(atom.number + 1, atom.by):
                return _settled(n.replaced({atom: ZERO}))
            continue
        for factor in sorted({by, *(gcd(by, count) for _, count in atom.number.terms)} - {1}):
            small = frozenset((a, c) for a, c in atom.number.terms if c % factor)
            rest = Number(small, atom.number.rest % factor)
            low, high = lowest(rest), highest(rest)
            if low is not None and high is not None and low >= 0 and high < factor:
                exact = quotient(atom.number - rest, number(factor))
                return _settled(n.replaced({atom: quotient(exact, number(by // factor))}))
    return n
