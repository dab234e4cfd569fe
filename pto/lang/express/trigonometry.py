"""Sine and cosine, which no instruction computes: reduction by multiples of pi and a polynomial."""

from __future__ import annotations

from pto.core.dtypes import F32
from pto.lang.express.algebra import as_tile
from pto.lang.express.convert import convert, floor, round_
from pto.lang.values.tiles import Tile

# pi in four parts: the first three have so few bits that their product with a whole number below
# 2 ** 14 is exact.
_PI = (3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10)
# The coefficients of x ** 11, x ** 9, ... x ** 3 in the sine, fitted for |x| <= pi / 2: the sum is
# within 1e-7, 1 at pi / 2, and never above 1.
_SINE = (-2.384198794e-08, 2.752230330e-06, -1.984074916e-04, 8.333330974e-03, -1.666666716e-01)


_PER_PI = 0.3183098861837907


def sin(t: Tile) -> Tile:
    """The sine, within 1.5e-7 for angles up to 30,000: `tcvt` to round, and 27 of `tmuls`, `tmul`,
    `tadds`, `tadd` and `tsub`."""
    x = convert(as_tile("sin", t), F32)
    half_turns = round_(x * _PER_PI)
    sine = _sine(_reduced(x, half_turns)) * _alternating(half_turns)
    return convert(sine, t.dtype)


def cos(t: Tile) -> Tile:
    """The cosine, within 1.5e-7 for angles up to 30,000: minus the sine of the angle from the zero
    after the last whole multiple of pi. The instructions are those of `sin`, and `tneg`."""
    x = convert(as_tile("cos", t), F32)
    half_turns = floor(x * _PER_PI)
    sine = _sine(_reduced(x, half_turns + 0.5)) * _alternating(half_turns)
    return convert(-sine, t.dtype)


def _reduced(x: Tile, half_turns: Tile) -> Tile:
    """x - half_turns * pi, at most pi / 2 in size."""
    for part in _PI:
        x = x - half_turns * part
    return x


def _alternating(integers: Tile) -> Tile:
    """1 for even numbers, -1 for odd ones."""
    return 1.0 - 2.0 * (integers - 2.0 * floor(integers * 0.5))


def _sine(x: Tile) -> Tile:
    """The sine of angles up to pi / 2."""
    square = x * x
    polynomial = square * _SINE[0]
    for coefficient in _SINE[1:]:
        polynomial = (polynomial + coefficient) * square
    return x + x * polynomial
