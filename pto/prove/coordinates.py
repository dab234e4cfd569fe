"""The block number of a launch, written as the coordinates that a program computes from it.

`block // 4` and `block % 4` are two integers that together identify a block. With symbols for them
instead of the block number, formulas are sums again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Final, NamedTuple

from pto.prove.decide import highest, lowest, never_negative, not_above
from pto.prove.number import (
    ZERO,
    Atom,
    Least,
    Most,
    Number,
    Quotient,
    Symbol,
    SymbolProduct,
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


class Coordinates:
    """Quotients and remainders of the block number, where a program computes them: block // k and
    block % k are two coordinates, and k * (block // k) + block % k is the block number."""

    def __init__(self, block: Symbol, numbers: Sequence[Number]) -> None:
        self.leaves = [block]
        self._places: list[tuple[Symbol, Number]] = []
        self.splits: list[Split] = []
        for _ in range(_COORDINATES):
            numbers = [_settled(n) for n in numbers]
            found = [q for q in _quotients(numbers) if self._leaf(q) is not None]
            if not found:
                break
            atom = min(found, key=lambda q: (len(q.by.terms), q.by.rest))
            leaf = self._leaf(atom)
            assert leaf is not None and leaf.high is not None
            high = quotient(leaf.high, atom.by)
            over = Symbol(f"({leaf.name} // {atom.by})", "block", ZERO, high, leaf.depth)
            rest = Symbol(f"({leaf.name} % {atom.by})", "block", ZERO, atom.by - 1, leaf.depth)
            place = product(of(over), atom.by) + of(rest)
            self._places.append((leaf, place))
            self.splits.append(Split(leaf, atom.by, over, rest))
            numbers = [n.replaced({leaf: place}) for n in numbers]
            at = self.leaves.index(leaf)
            self.leaves[at : at + 1] = [over, rest]

    def replaced(self, n: Number) -> Number:
        """A number with coordinates instead of the block number, and fewer quotients."""
        n = _settled(n)
        for leaf, place in self._places:
            n = _settled(n.replaced({leaf: place}))
        return n

    def _leaf(self, atom: Quotient) -> Symbol | None:
        """The coordinate of which an atom is a quotient, if it depends on nothing else."""
        known = all(s.is_fixed for s in atom.by.symbols())
        return next((s for s in self.leaves if known and atom.number == of(s)), None)


def _atoms(n: Number) -> Iterator[Atom]:
    for atom, _ in n.terms:
        yield atom
        match atom:
            case Least(parts) | Most(parts):
                for part in parts:
                    yield from _atoms(part)
            case Quotient(inner, by):
                yield from _atoms(inner)
                yield from _atoms(by)
            case SymbolProduct():
                for factor in atom.flat:
                    yield from _atoms(of(factor))
            case Symbol():
                pass


def _quotients(numbers: Sequence[Number]) -> list[Quotient]:
    return [atom for n in numbers for atom in _atoms(n) if isinstance(atom, Quotient)]


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
                whole = quotient(atom.number - rest, number(factor))
                return _settled(n.replaced({atom: quotient(whole, number(by // factor))}))
    return n
