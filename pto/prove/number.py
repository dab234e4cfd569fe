"""Integers of a program as formulas: sums of multiples of symbols, minima, maxima and quotients.

A symbol is a size, a block number, a loop counter or an unknown value. It has bounds, which may be
formulas of other symbols. `at_least` decides whether a formula is never negative; it returns True
only if that follows from the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Literal

Kind = Literal["argument", "block", "counter", "value"]


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

    @property
    def is_fixed(self) -> bool:
        """True if it is the same in all blocks and iterations of a launch."""
        return self.kind == "argument"


@dataclass(frozen=True, slots=True)
class Least:
    """The smallest of several numbers."""

    parts: frozenset[Number]

    def __repr__(self) -> str:
        return f"min({', '.join(sorted(map(str, self.parts)))})"


@dataclass(frozen=True, slots=True)
class Most:
    """The largest of several numbers."""

    parts: frozenset[Number]

    def __repr__(self) -> str:
        return f"max({', '.join(sorted(map(str, self.parts)))})"


@dataclass(frozen=True, slots=True)
class Quotient:
    """Rounded down; the divisor is positive."""

    number: Number
    by: Number

    def __repr__(self) -> str:
        return f"({self.number} // {self.by})"


@dataclass(frozen=True, slots=True)
class SymbolProduct:
    """The product of unknown numbers, with repetitions."""

    factors: frozenset[tuple[Atom, int]]

    def __repr__(self) -> str:
        return "*".join(str(atom) for atom, count in _sorted(self.factors) for _ in range(count))

    @property
    def flat(self) -> list[Atom]:
        return [atom for atom, count in self.factors for _ in range(count)]


Atom = Symbol | Least | Most | Quotient | SymbolProduct


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
        found = dict(self.terms)
        for atom, count in other.terms:
            found[atom] = found.get(atom, 0) + count
        return _made(found, self.rest + other.rest)

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

    def of(self, atom: Atom) -> int:
        """The coefficient of an atom."""
        return dict(self.terms).get(atom, 0)

    def without(self, atom: Atom) -> Number:
        return Number(
            frozenset(t for t in self.terms if t[0] is not atom and t[0] != atom), self.rest
        )

    def symbols(self) -> Iterator[Symbol]:
        """All symbols that it depends on, directly or inside of atoms."""
        for atom, _ in self.terms:
            yield from _symbols(atom)

    def replaced(self, places: Mapping[Atom, Number]) -> Number:
        """The number with numbers instead of atoms, wherever they occur."""
        found = number(self.rest)
        for atom, count in self.terms:
            found += _replaced(atom, places).times(count)
        return found

    def __str__(self) -> str:
        parts = [_term(atom, count) for atom, count in _sorted(self.terms)]
        if self.rest or not parts:
            parts.append(f"{'-' if self.rest < 0 else '+'} {abs(self.rest)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else text.replace("- ", "-", 1)


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


def _symbols(atom: Atom) -> Iterator[Symbol]:
    match atom:
        case Symbol():
            yield atom
        case Least(parts) | Most(parts):
            for part in parts:
                yield from part.symbols()
        case Quotient(of_what, by):
            yield from of_what.symbols()
            yield from by.symbols()
        case SymbolProduct(factors):
            for factor, _ in factors:
                yield from _symbols(factor)


def _replaced(atom: Atom, places: Mapping[Atom, Number]) -> Number:
    found = places.get(atom)
    if found is not None:
        return found
    match atom:
        case Symbol():
            return of(atom)
        case Least(parts):
            return reduce(minimum, [p.replaced(places) for p in parts])
        case Most(parts):
            return reduce(maximum, [p.replaced(places) for p in parts])
        case Quotient(of_what, by):
            return quotient(of_what.replaced(places), by.replaced(places))
        case SymbolProduct():
            return reduce(product, [_replaced(a, places) for a in atom.flat])


# ---- arithmetic


def product(a: Number, b: Number) -> Number:
    if a.value is not None or b.value is not None:
        return a.times(b.value) if b.value is not None else b.times(a.rest)
    found = number(a.rest * b.rest) + Number(a.terms).times(b.rest) + Number(b.terms).times(a.rest)
    for one, count in a.terms:
        for other, times in b.terms:
            factors: dict[Atom, int] = {}
            for atom in (*_flat(one), *_flat(other)):
                factors[atom] = factors.get(atom, 0) + 1
            found += of(SymbolProduct(frozenset(factors.items()))).times(count * times)
    return found


def _flat(atom: Atom) -> list[Atom]:
    return atom.flat if isinstance(atom, SymbolProduct) else [atom]


def quotient(a: Number, by: Number) -> Number:
    """a // by, of a divisor that is known to be positive."""
    if by.value == 1:
        return a
    if by.value is None:
        whole, left = _divided(a, by)
        return whole if left == ZERO else whole + of(Quotient(left, by))
    if len(a.terms) == 1 and not a.rest:
        (atom, count), *_ = a.terms
        if isinstance(atom, Quotient) and count == 1 and atom.by.value is not None:
            return quotient(atom.number, by.times(atom.by.value))
    inside = {atom: n % by.value for atom, n in a.terms}
    whole = _made({atom: n // by.value for atom, n in a.terms}, a.rest // by.value)
    left = _made(inside, a.rest % by.value)
    return whole if left.value is not None else whole + of(Quotient(left, by))


def _divided(a: Number, by: Number) -> tuple[Number, Number]:
    """The quotient of the terms that are multiples of an unknown divisor, and the rest."""
    whole, left = ZERO, a
    if a == by:
        return number(1), ZERO
    if len(by.terms) == 1 and not by.rest and next(iter(by.terms))[1] == 1:
        (divisor, _), *_ = by.terms
        for atom, count in a.terms:
            flat = _flat(atom)
            if divisor in flat:
                flat.remove(divisor)
                others = reduce(product, [of(f) for f in flat], number(1))
                whole += others.times(count)
                left -= of(atom).times(count)
    return whole, left


def minimum(a: Number, b: Number) -> Number:
    return _extreme(a, b, Least, min)


def maximum(a: Number, b: Number) -> Number:
    return _extreme(a, b, Most, max)


def _extreme(
    a: Number, b: Number, kind: type[Least] | type[Most], known: Callable[[int, int], int]
) -> Number:
    gap = (a - b).value
    if gap is not None:
        return b if known(gap, 0) == 0 else a
    parts = frozenset[Number]().union(*(_parts(n, kind) for n in (a, b)))
    return of(kind(parts))


def _parts(n: Number, kind: type[Least] | type[Most]) -> frozenset[Number]:
    if len(n.terms) == 1:
        (atom, count), *_ = n.terms
        if isinstance(atom, kind) and count == 1:
            return frozenset(part + n.rest for part in atom.parts)
    return frozenset([n])


def evaluated(n: Number, known: Mapping[Symbol, int]) -> int | None:
    """The value of a number; None if a symbol has none."""
    found = n.rest
    for atom, count in n.terms:
        value = _value(atom, known)
        if value is None:
            return None
        found += count * value
    return found


def _value(atom: Atom, known: Mapping[Symbol, int]) -> int | None:
    match atom:
        case Symbol():
            return known.get(atom)
        case Least(parts) | Most(parts):
            values = [evaluated(part, known) for part in parts]
            given = [v for v in values if v is not None]
            pick = min if isinstance(atom, Least) else max
            return pick(given) if len(given) == len(values) else None
        case Quotient(inner, by):
            a, b = evaluated(inner, known), evaluated(by, known)
            return None if a is None or not b else a // b
        case SymbolProduct():
            found = 1
            for factor in atom.flat:
                value = _value(factor, known)
                if value is None:
                    return None
                found *= value
            return found
