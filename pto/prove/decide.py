"""Whether a number is never negative: a small decision procedure over bounds.

Minima and maxima are split into cases, quotients are replaced by their bounds, and symbols by
theirs, the innermost first. Known inequalities (`given`) are added where they cancel a symbol. The
result is True only if it is proved; the number of steps is limited, so the procedure ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pto.prove.number import (
    Atom,
    Extreme,
    Number,
    Quotient,
    Symbol,
    SymbolProduct,
    cofactor,
    of,
    product,
)

_STEPS: Final = 4000  # of one question
Budget = Iterator[int]  # steps that are left


def _budget() -> Budget:
    return iter(range(_STEPS))


def never_negative(n: Number, guards: Sequence[Number] = ()) -> bool:
    """Whether n >= 0 follows from the bounds of its symbols and from guards >= 0."""
    return _holds(n, (), _budget()) or (bool(guards) and _holds(n, tuple(guards), _budget()))


def always_negative(n: Number, guards: Sequence[Number] = ()) -> bool:
    return never_negative(-n - 1, guards)


def not_above(a: Number, b: Number, guards: Sequence[Number] = ()) -> bool:
    return never_negative(b - a, guards)


def _holds(n: Number, guards: tuple[Number, ...], left: Budget) -> bool:
    if not n.terms:
        return n.rest >= 0
    if next(left, None) is None:
        return False
    extremes = [(a, c) for a, c in n.terms if isinstance(a, Extreme)]
    for atom, count in extremes:
        if atom.is_least == (count > 0):
            return _in_all_cases(n, atom, count, guards, left)
    for atom, count in extremes:
        if any(_holds(case, guards, left) for case in _cases(n, atom, count)):
            return True
    if extremes:
        return False
    if _by_given(n, guards, left):
        return True
    return any(_holds(weaker, guards, left) for weaker, _ in _weaker(n, guards, left))


def _cases(n: Number, atom: Extreme, count: int) -> list[Number]:
    """n with each part of a minimum or maximum instead of it."""
    others = n.without(atom)
    return [others + part.times(count) for part in atom.parts]


def _in_all_cases(
    n: Number, atom: Extreme, count: int, guards: tuple[Number, ...], left: Budget
) -> bool:
    """Prove it for each part of a minimum or maximum, assuming that this part is the result."""
    others, sign = n.without(atom), 1 if atom.is_least else -1
    for part in atom.parts:
        differences = [(other - part).times(sign) for other in atom.parts if other is not part]
        plain = [k for k in differences if k.first(Extreme) is None]
        if not _holds(others + part.times(count), (*guards, *plain), left):
            return False
    return True


def _by_given(n: Number, guards: tuple[Number, ...], left: Budget) -> bool:
    """Prove it after subtracting a known inequality, scaled so that it cancels a term; first those
    that leave the fewest terms."""
    counts, reduced = dict(n.terms), list[tuple[Number, int]]()
    for k, guard in enumerate(guards):
        for atom, count in guard.terms:
            mine = counts.get(atom, 0)
            if mine and (mine > 0) == (count > 0):
                rest = n.times(abs(count)) - guard.times(abs(mine))
                if len(rest.terms) < len(n.terms) + len(guard.terms) - 1:
                    reduced.append((rest, k))
    reduced.sort(key=lambda each: len(each[0].terms))
    return any(_holds(rest, (*guards[:k], *guards[k + 1 :]), left) for rest, k in reduced)


def _weaker(n: Number, guards: tuple[Number, ...], left: Budget) -> Iterator[tuple[Number, int]]:
    """Lower bounds of n: numbers w, with bounds instead of atoms, and k, so that n >= w // k."""
    quotient = n.first(Quotient)
    products = [(a, c) for a, c in n.terms if isinstance(a, SymbolProduct)]
    if quotient is not None:
        yield from _by_quotient(n, *quotient, guards, left)
    elif products:
        for atom, count in products:
            yield from ((product, 1) for product in _by_product(n, atom, count, guards, left))
    else:
        inner = max((a for a, _ in n.terms if isinstance(a, Symbol)), key=lambda s: s.depth)
        count = n.of(inner)
        bound = inner.low if count > 0 else inner.high
        if bound is not None:
            yield n.without(inner) + bound.times(count), 1


def _by_quotient(
    n: Number, atom: Quotient, count: int, guards: tuple[Number, ...], left: Budget
) -> Iterator[tuple[Number, int]]:
    """by * (a // by) lies in a - by + 1 .. a. All of n is multiplied by a known divisor."""
    by, others = atom.by.value, n.without(atom)
    if by is not None:
        bound = atom.number - (by - 1) if count > 0 else atom.number
        # n is an integer, so by * n >= w - by + 1 is n >= w // by
        yield others.times(by) + bound.times(count) + (by - 1), by
    elif _holds(atom.number, guards, left):  # then 0 <= a // by <= a
        yield (others if count > 0 else others + atom.number.times(count)), 1


def _by_product(
    n: Number, atom: SymbolProduct, count: int, guards: tuple[Number, ...], left: Budget
) -> Iterator[Number]:
    """Replace one factor by its bound, if the product of the remaining factors is not negative."""
    others = n.without(atom)
    for factor, _ in atom.factors:
        rest = cofactor(atom, factor)
        assert rest is not None
        if isinstance(factor, Symbol):
            bound = factor.low if count > 0 else factor.high
            left_over = (
                of(factor_left) for factor_left, n in atom.factors if factor_left != factor or n > 1
            )
            if bound is not None and all(
                _holds(factor_left, guards, left) for factor_left in left_over
            ):
                yield others + product(bound, rest).times(count)


def highest(n: Number) -> int | None:
    """An upper bound of n; None if none is known."""
    low = lowest(-n)
    return None if low is None else -low


def lowest(n: Number) -> int | None:
    """A lower bound of n; None if none is known."""
    return _lowest(n, _budget())


def _lowest(n: Number, left: Budget) -> int | None:
    """The lowest value of n, by the bounds of its atoms, the innermost first."""
    if not n.terms:
        return n.rest
    if next(left, None) is None:
        return None
    extreme = n.first(Extreme)
    if extreme is None:
        weakened = [(_lowest(weaker, left), by) for weaker, by in _weaker(n, (), left)]
        return max((low // by for low, by in weakened if low is not None), default=None)
    cases = [_lowest(case, left) for case in _cases(n, *extreme)]
    bounds = [low for low in cases if low is not None]
    if extreme[0].is_least == (extreme[1] > 0):
        return min(bounds) if len(bounds) == len(cases) else None
    return max(bounds, default=None)


def simplified(n: Number, guards: Sequence[Number] = ()) -> Number:
    """n without minima and maxima of which one part is known to be the extreme one."""
    places: dict[Atom, Number] = {}
    for atom, _ in n.terms:
        if isinstance(atom, Extreme):
            parts = [simplified(part, guards) for part in atom.parts]
            low = atom.is_least
            best = next((p for p in parts if all(_before(p, o, low, guards) for o in parts)), None)
            if best is not None:
                places[atom] = best
    return n.replaced(places) if places else n


def _before(a: Number, b: Number, low: bool, guards: Sequence[Number]) -> bool:
    return a == b or (not_above(a, b, guards) if low else not_above(b, a, guards))


def implied(n: Number) -> list[Number]:
    """Numbers that are not negative if n is not: each part of a minimum, and the only possible part
    of a maximum."""
    todo, implied_numbers = [n], list[Number]()
    while todo:
        candidate = todo.pop()
        extreme = candidate.first(Extreme)
        if extreme is None or len(implied_numbers) > 32:
            implied_numbers.append(candidate)
            continue
        atom, count = extreme
        parts = _cases(candidate, atom, count)
        if atom.is_least == (count > 0):
            todo += parts
            continue
        possible = [p for p in parts if not always_negative(p)]
        if len(possible) == 1:
            todo += possible
        else:
            implied_numbers.append(candidate)
    return implied_numbers
