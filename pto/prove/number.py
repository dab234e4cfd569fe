"""Integers of a program as formulas: sums of multiples of symbols, minima, maxima and quotients.

A symbol is a size, a block number, a loop counter or an unknown value. It has bounds, which may be
formulas of other symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final, Literal, TypeVar

Kind = Literal["argument", "block", "counter", "value", "data"]  # data: read from an array


@dataclass(eq=False, slots=True)
class Symbol:
    """An unknown integer. Its bounds are formulas of symbols of smaller depth."""

    name: str
    kind: Kind
    low: Number | None = None
    high: Number | None = None
    depth: int = 0

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return (
            self.depth
        )  # sets have the same order in every run, so the search for proofs does too

    @property
    def is_fixed(self) -> bool:
        """True if it is the same in all blocks and iterations of a launch."""
        return self.kind == "argument"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest or the largest of several numbers."""

    parts: frozenset[Number]
    is_least: bool

    def __repr__(self) -> str:
        return f"{'min' if self.is_least else 'max'}({', '.join(sorted(map(str, self.parts)))})"


@dataclass(frozen=True, slots=True)
class Quotient:
    """Rounded down; the divisor is positive."""

    number: Number
    by: Number

    def __repr__(self) -> str:
        return f"({_grouped(self.number)} // {_grouped(self.by)})"


@dataclass(frozen=True, slots=True)
class SymbolProduct:
    """The product of unknown numbers, with repetitions."""

    factors: frozenset[tuple[Atom, int]]

    def __repr__(self) -> str:
        return "*".join(str(atom) for atom, count in _sorted(self.factors) for _ in range(count))

    @property
    def flat(self) -> list[Atom]:
        return [atom for atom, count in self.factors for _ in range(count)]


Atom = Symbol | Extreme | Quotient | SymbolProduct
A = TypeVar("A", Extreme, Quotient, SymbolProduct)


def _sorted(terms: Iterable[tuple[Atom, int]]) -> list[tuple[Atom, int]]:
    return sorted(terms, key=lambda term: str(term[0]))


@dataclass(frozen=True, slots=True)
class Number:
    """A constant `rest` plus multiples of atoms."""

    terms: frozenset[tuple[Atom, int]] = frozenset()
    rest: int = 0

    def __add__(self, other: Number | int) -> Number:
        if isinstance(other, int):
            return Number(self.terms, self.rest + other)
        if not other.terms or not self.terms:
            return Number(self.terms | other.terms, self.rest + other.rest)
        terms = dict(self.terms)
        for atom, count in other.terms:
            terms[atom] = terms.get(atom, 0) + count
        return _made(terms, self.rest + other.rest)

    def __neg__(self) -> Number:
        return self.times(-1)

    def __sub__(self, other: Number | int) -> Number:
        return self + (-other)

    def times(self, count: int) -> Number:
        """The number times a constant."""
        if count in (0, 1):
            return self if count else ZERO
        return Number(frozenset((a, n * count) for a, n in self.terms), self.rest * count)

    @property
    def value(self) -> int | None:
        """The value, if it is a constant."""
        return None if self.terms else self.rest

    @property
    def atom(self) -> Atom | None:
        """The atom, if it is one alone."""
        if len(self.terms) != 1 or self.rest:
            return None
        (atom, count), *_ = self.terms
        return atom if count == 1 else None

    def of(self, atom: Atom) -> int:
        """The coefficient of an atom."""
        return dict(self.terms).get(atom, 0)

    def without(self, atom: Atom) -> Number:
        return Number(
            frozenset(t for t in self.terms if t[0] is not atom and t[0] != atom), self.rest
        )

    def first(self, kind: type[A]) -> tuple[A, int] | None:
        """A term of which the atom is of this kind."""
        return next(((a, n) for a, n in self.terms if isinstance(a, kind)), None)

    def atoms(self) -> Iterator[Atom]:
        """All atoms that it depends on, directly or inside of others."""
        for atom, _ in self.terms:
            yield atom
            for part in _parts(atom):
                yield from part.atoms()

    def symbols(self) -> Iterator[Symbol]:
        return (atom for atom in self.atoms() if isinstance(atom, Symbol))

    def replaced(self, places: Mapping[Atom, Number]) -> Number:
        """The number with numbers instead of atoms, wherever they occur."""
        total = number(self.rest)
        for atom, count in self.terms:
            total += _replaced(atom, places).times(count)
        return total

    def __str__(self) -> str:
        parts = [_term(atom, count) for atom, count in _sorted(self.terms)]
        if self.rest or not parts:
            parts.append(f"{'-' if self.rest < 0 else '+'} {abs(self.rest)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else text.replace("- ", "-", 1)


def _grouped(n: Number) -> str:
    return f"({n})" if len(n.terms) + bool(n.rest) > 1 else str(n)


def _term(atom: Atom, count: int) -> str:
    sign = "-" if count < 0 else "+"
    return f"{sign} {atom}" if abs(count) == 1 else f"{sign} {abs(count)}*{atom}"


def _made(terms: Mapping[Atom, int], rest: int) -> Number:
    return Number(frozenset((a, n) for a, n in terms.items() if n), rest)


ZERO: Final = Number()


def number(value: int) -> Number:
    return Number(frozenset(), value)


def of(atom: Atom) -> Number:
    return Number(frozenset([(atom, 1)]))


def _parts(atom: Atom) -> Sequence[Number]:
    """The numbers that an atom is made of."""
    match atom:
        case Symbol():
            return ()
        case Extreme(parts):
            return tuple(parts)
        case Quotient(of_what, by):
            return of_what, by
        case SymbolProduct():
            return [of(factor) for factor in atom.flat]


def _replaced(atom: Atom, places: Mapping[Atom, Number]) -> Number:
    replacement = places.get(atom)
    if replacement is not None:
        return replacement
    parts = [part.replaced(places) for part in _parts(atom)]
    match atom:
        case Symbol():
            return of(atom)
        case Extreme(_, is_least):
            return reduce(minimum if is_least else maximum, parts)
        case Quotient():
            return quotient(*parts)
        case SymbolProduct():
            return reduce(product, parts)


# ---- arithmetic


def product(a: Number, b: Number) -> Number:
    if a.value is not None or b.value is not None:
        return a.times(b.value) if b.value is not None else b.times(a.rest)
    total = number(a.rest * b.rest) + Number(a.terms).times(b.rest) + Number(b.terms).times(a.rest)
    for one, count in a.terms:
        for other, times in b.terms:
            factors: dict[Atom, int] = {}
            for atom in (*factors_of(one), *factors_of(other)):
                factors[atom] = factors.get(atom, 0) + 1
            total += of(SymbolProduct(frozenset(factors.items()))).times(count * times)
    return total


def factors_of(atom: Atom) -> list[Atom]:
    return atom.flat if isinstance(atom, SymbolProduct) else [atom]


def cofactor(atom: Atom, factor: Atom) -> Number | None:
    """An atom divided by a factor; None if it is not its factor."""
    others = factors_of(atom)
    for part in factors_of(factor):
        if part not in others:
            return None
        others.remove(part)
    return reduce(product, map(of, others), number(1))


def multiples(n: Number, factor: Atom) -> tuple[Number, Number]:
    """The terms that are multiples of an atom, divided by it, and the rest."""
    exact, left = ZERO, n
    for atom, count in n.terms:
        others = cofactor(atom, factor)
        if others is not None:
            exact += others.times(count)
            left -= of(atom).times(count)
    return exact, left


def quotient(a: Number, by: Number) -> Number:
    """a // by, of a divisor that is known to be positive."""
    if by.value == 1:
        return a
    if by.value is None:
        exact, left = _divided(a, by)
        return exact if left == ZERO else exact + of(Quotient(left, by))
    if len(a.terms) == 1 and not a.rest:
        (atom, count), *_ = a.terms
        if isinstance(atom, Quotient) and count == 1 and atom.by.value is not None:
            return quotient(atom.number, by.times(atom.by.value))
    inside = {atom: n % by.value for atom, n in a.terms}
    exact = _made({atom: n // by.value for atom, n in a.terms}, a.rest // by.value)
    left = _made(inside, a.rest % by.value)
    return exact if left.value is not None else exact + of(Quotient(left, by))


def _divided(a: Number, by: Number) -> tuple[Number, Number]:
    """The quotient of the terms that are multiples of an unknown divisor, and the rest."""
    if a == by:
        return number(1), ZERO
    divisor = by.atom
    return (ZERO, a) if divisor is None else multiples(a, divisor)


def minimum(a: Number, b: Number) -> Number:
    return _extreme(a, b, is_least=True)


def maximum(a: Number, b: Number) -> Number:
    return _extreme(a, b, is_least=False)


def _extreme(a: Number, b: Number, is_least: bool) -> Number:
    gap = (a - b).value
    if gap is not None:
        return a if (gap < 0) == is_least and gap else b
    parts = {part for n in (a, b) for part in _alternatives(n, is_least)}
    return of(Extreme(frozenset(parts), is_least))


def _alternatives(n: Number, is_least: bool) -> list[Number]:
    """The parts of a number that is itself a minimum or maximum."""
    if len(n.terms) == 1:
        (atom, count), *_ = n.terms
        if isinstance(atom, Extreme) and atom.is_least == is_least and count == 1:
            return [part + n.rest for part in atom.parts]
    return [n]


def evaluated(n: Number, values_of: Mapping[Symbol, int]) -> int | None:
    """The value of a number; None if a symbol has none."""
    total = n.rest
    for atom, count in n.terms:
        value = _value(atom, values_of)
        if value is None:
            return None
        total += count * value
    return total


def _value(atom: Atom, values_of: Mapping[Symbol, int]) -> int | None:
    if isinstance(atom, Symbol):
        return values_of.get(atom)
    values = [evaluated(part, values_of) for part in _parts(atom)]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    match atom:
        case Extreme(_, is_least):
            return min(numbers) if is_least else max(numbers)
        case Quotient():
            return numbers[0] // numbers[1] if numbers[1] else None
        case SymbolProduct():
            return prod(numbers)
