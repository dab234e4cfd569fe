"""Integers as linear forms at trace time: a constant plus multiples of unknown values.

`i * 16 + 16 - i * 16` is 16, and `i * 16` is a multiple of 16: so whole tiles get static sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import gcd


@dataclass(frozen=True, slots=True)
class Linear:
    """`const` + the sum of coefficient * unknown; an unknown is any hashable key."""

    const: int = 0
    terms: Mapping[Hashable, int] = field(default_factory=dict[Hashable, int])

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            terms[key] = terms.get(key, 0) + sign * factor
        nonzero = {key: factor for key, factor in terms.items() if factor}
        return Linear(self.const + sign * other.const, nonzero)

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear()
        return Linear(self.const * factor, {k: f * factor for k, f in self.terms.items()})

    @property
    def known(self) -> int | None:
        return None if self.terms else self.const

    @property
    def multiple(self) -> int:
        """The largest number known to divide it; 0 for zero itself."""
        return gcd(self.const, *self.terms.values())
