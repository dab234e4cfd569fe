"""Whether a number is never negative: a small decision procedure over bounds.

Minima and maxima are split into cases, quotients are replaced by their bounds, and symbols by
theirs, the innermost first. Known inequalities (`given`) are added where they cancel a symbol. The
result is True only if it is proved; the number of steps is limited, so the procedure ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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
)

_STEPS: Final = 4000  # of one question


class Budget:
    """Steps that are left."""

    def __init__(self, steps: int = _STEPS) -> None:
        self._left = steps

    def spend(self) -> bool:
        self._left -= 1
        return self._left >= 0


def never_negative(n: Number, given: Sequence[Number] = ()) -> bool:
    """Whether n >= 0 follows from the bounds of its symbols and from `given`, each of them >= 0."""
    return _holds(n, (), Budget()) or (bool(given) and _holds(n, tuple(given), Budget()))


def not_above(a: Number, b: Number, given: Sequence[Number] = ()) -> bool:
    return never_negative(b - a, given)


def _holds(n: Number, given: tuple[Number, ...], left: Budget) -> bool:
    if not n.terms:
        return n.rest >= 0
    if not left.spend():
        return False
    extremes = [(a, c) for a, c in n.terms if isinstance(a, Least | Most)]
    for atom, count in extremes:
        if isinstance(atom, Least) == (count > 0):
            return _in_all_cases(n, atom, count, given, left)
    for atom, count in extremes:
        others = n.without(atom)
        if any(_holds(others + part.times(count), given, left) for part in atom.parts):
            return True
    if extremes:
        return False
    if _by_given(n, given, left):
        return True
    return any(_holds(weaker, given, left) for weaker in _weaker(n, given, left))


def _in_all_cases(
    n: Number, atom: Least | Most, count: int, given: tuple[Number, ...], left: Budget
) -> bool:
    """Prove it for each part of a minimum or maximum, assuming that this part is the result."""
    others, sign = n.without(atom), 1 if isinstance(atom, Least) else -1
    for part in atom.parts:
        known = [(other - part).times(sign) for other in atom.parts if other is not part]
        plain = [k for k in known if not any(isinstance(a, Least | Most) for a, _ in k.terms)]
        if not _holds(others + part.times(count), (*given, *plain), left):
            return False
    return True


def _by_given(n: Number, given: tuple[Number, ...], left: Budget) -> bool:
    """Prove it after subtracting a known inequality, scaled so that it cancels a term."""
    own = dict(n.terms)
    for k, known in enumerate(given):
        for atom, count in known.terms:
            mine = own.get(atom, 0)
            if mine and (mine > 0) == (count > 0):
                rest = n.times(abs(count)) - known.times(abs(mine))
                if len(rest.terms) < len(n.terms) + len(known.terms) - 1 and _holds(
                    rest, (*given[:k], *given[k + 1 :]), left
                ):
                    return True
    return False


def _weaker(n: Number, given: tuple[Number, ...], left: Budget) -> Iterator[Number]:
    """Lower bounds of n: n with bounds instead of atoms."""
    quotient = next(((a, c) for a, c in n.terms if isinstance(a, Quotient)), None)
    if quotient is not None:
        atom, count = quotient
        yield from _by_quotient(n, atom, count, given, left)
        return
    products = [(a, c) for a, c in n.terms if isinstance(a, SymbolProduct)]
    for atom, count in products:
        yield from _by_product(n, atom, count, given, left)
    if products:
        return
    inner = max((a for a, _ in n.terms if isinstance(a, Symbol)), key=lambda s: s.depth)
    count = n.of(inner)
    bound = inner.low if count > 0 else inner.high
    if bound is not None:
        yield n.without(inner) + bound.times(count)


def _by_quotient(
    n: Number, atom: Quotient, count: int, given: tuple[Number, ...], left: Budget
) -> Iterator[Number]:
    """by * (a // by) lies in a - by + 1 .. a. All of n is multiplied by a known divisor."""
    by, others = atom.by.value, n.without(atom)
    if by is not None:
        bound = atom.number - (by - 1) if count > 0 else atom.number
        # n is an integer, so n >= 0 is by * n >= 1 - by
        yield others.times(by) + bound.times(count) + (by - 1)
    elif _holds(atom.number, given, left):  # then 0 <= a // by <= a
        yield others if count > 0 else others + atom.number.times(count)


def _by_product(
    n: Number, atom: SymbolProduct, count: int, given: tuple[Number, ...], left: Budget
) -> Iterator[Number]:
    """Replace one factor by its bound, if the product of the remaining factors is not negative."""
    others = n.without(atom)
    for factor in dict.fromkeys(atom.flat):
        rest = list(atom.flat)
        rest.remove(factor)
        cofactor = ZERO + 1
        for each in rest:
            cofactor = product(cofactor, of(each))
        if isinstance(factor, Quotient) and factor.by == cofactor:
            bound = factor.number if count < 0 else factor.number - cofactor + 1
            yield others + bound.times(count)
        if isinstance(factor, Symbol):
            bound = factor.low if count > 0 else factor.high
            if bound is not None and all(_is_positive(each, given, left) for each in rest):
                yield others + product(bound, cofactor).times(count)


def _is_positive(atom: Atom, given: tuple[Number, ...], left: Budget) -> bool:
    return _holds(of(atom), given, left)


def highest(n: Number) -> int | None:
    """An upper bound of n; None if none is known."""
    return _bound(n, Budget())


def lowest(n: Number) -> int | None:
    """A lower bound of n; None if none is known."""
    found = _bound(-n, Budget())
    return None if found is None else -found


def _bound(n: Number, left: Budget) -> int | None:
    """The highest value of n, by the bounds of its atoms, the innermost first."""
    if not n.terms:
        return n.rest
    if not left.spend():
        return None
    extreme = next(((a, c) for a, c in n.terms if isinstance(a, Least | Most)), None)
    if extreme is not None:
        atom, count = extreme
        others = n.without(atom)
        found = [_bound(others + part.times(count), left) for part in atom.parts]
        if isinstance(atom, Most) == (count > 0):
            return None if None in found else max(f for f in found if f is not None)
        return min((f for f in found if f is not None), default=None)
    quotient = next(((a, c) for a, c in n.terms if isinstance(a, Quotient)), None)
    if quotient is not None:
        atom, count = quotient
        by = atom.by.value
        if by is None:
            return None
        bound = atom.number if count > 0 else atom.number - (by - 1)
        found = _bound(n.without(atom).times(by) + bound.times(count), left)
        return None if found is None else found // by
    if any(isinstance(a, SymbolProduct) for a, _ in n.terms):
        return None
    inner = max((a for a, _ in n.terms if isinstance(a, Symbol)), key=lambda s: s.depth)
    count = n.of(inner)
    bound = inner.high if count > 0 else inner.low
    return None if bound is None else _bound(n.without(inner) + bound.times(count), left)


def simplified(n: Number, given: Sequence[Number] = ()) -> Number:
    """n without minima and maxima of which one part is known to be the extreme one."""
    places: dict[Atom, Number] = {}
    for atom, _ in n.terms:
        if isinstance(atom, Least | Most):
            parts = [simplified(part, given) for part in atom.parts]
            low = isinstance(atom, Least)
            best = next((p for p in parts if all(_before(p, o, low, given) for o in parts)), None)
            if best is not None:
                places[atom] = best
    return n.replaced(places) if places else n


def _before(a: Number, b: Number, low: bool, given: Sequence[Number]) -> bool:
    return a == b or (not_above(a, b, given) if low else not_above(b, a, given))


def implied(n: Number) -> list[Number]:
    """Numbers that are not negative if n is not: each part of a minimum, and the only possible part
    of a maximum."""
    todo, found = [n], list[Number]()
    while todo:
        each = todo.pop()
        extreme = next(((a, c) for a, c in each.terms if isinstance(a, Least | Most)), None)
        if extreme is None or len(found) > 32:
            found.append(each)
            continue
        atom, count = extreme
        parts = [each.without(atom) + part.times(count) for part in atom.parts]
        if isinstance(atom, Least) == (count > 0):
            todo += parts
            continue
        possible = [p for p in parts if not never_negative(number(-1) - p)]
        if len(possible) == 1:
            todo += possible
        else:
            found.append(each)
    return found
