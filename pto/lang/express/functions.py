"""Functions of tiles: one instruction each, into a tile of its own."""

from __future__ import annotations

import math
from typing import Any

from pto.lang.call.invoke import invoke
from pto.lang.express.algebra import as_tile, binary, unary
from pto.lang.express.folds import fold
from pto.lang.express.shapes import like, vector
from pto.lang.values.operators import operations
from pto.lang.values.scalars import arith
from pto.lang.values.tiles import Tile


def exp(t: Tile) -> Tile:
    """e ** t, element by element: `texp`."""
    return unary("exp", t)


def log(t: Tile) -> Tile:
    """The natural logarithm: `tlog`."""
    return unary("log", t)


def exp2(t: Tile) -> Tile:
    """2 ** t, as e ** (t ln 2): `tmuls`, `texp`."""
    return exp(as_tile("exp2", t) * math.log(2.0))


def log2(t: Tile) -> Tile:
    """The logarithm to base 2, as ln t / ln 2: `tlog`, `tmuls`."""
    return log(t) * (1.0 / math.log(2.0))


def sqrt(t: Tile) -> Tile:
    """The square root: `tsqrt`."""
    return unary("sqrt", t)


def rsqrt(t: Tile) -> Tile:
    """1 / sqrt(t): `trsqrt`."""
    return unary("rsqrt", t)


def reciprocal(t: Tile) -> Tile:
    """1 / t: `trecip`."""
    return unary("recip", t)


def relu(t: Tile) -> Tile:
    """max(t, 0): `trelu`."""
    return unary("relu", t)


def leaky_relu(t: Tile, slope: object) -> Tile:
    """t where it is positive, else slope * t: `tlrelu`."""
    t = vector(t)
    dst = like(t)
    invoke(operations("leaky_relu", t.type)[0], [dst, t, slope], {})
    return dst


def absolute(t: Tile) -> Tile:
    """|t|, as `abs(t)`: `tabs`, or `tmuls` and `tmax` of integers that it does not take."""
    return unary("abs", t)


def maximum(a: object, b: object = None, *, axis: int | None = None) -> Any:
    """The greater of two numbers of a kernel, or element by element where one is a tile: `tmax`.

    Of one tile, the greatest along an axis: `pto.max(t, axis=1)` is `t.max(axis=1)`.
    """
    return _extreme("max", a, b, axis)


def minimum(a: object, b: object = None, *, axis: int | None = None) -> Any:
    """The smaller of two numbers of a kernel, or element by element where one is a tile: `tmin`.

    Of one tile, the least along an axis: `pto.min(t, axis=1)` is `t.min(axis=1)`.
    """
    return _extreme("min", a, b, axis)


def _extreme(word: str, a: object, b: object, axis: int | None) -> Any:
    if b is None:
        return fold(f"a{word}", a, axis) if isinstance(a, Tile) else unary(word, a)
    tiles = isinstance(a, Tile) or isinstance(b, Tile)
    return binary(word, a, b) if tiles else arith(word, a, b)


def total(t: object, axis: int | None = None) -> Tile:
    """The sum along an axis: `pto.sum(t, axis=1)` is `t.sum(axis=1)`."""
    return fold("sum", t, axis) if isinstance(t, Tile) else unary("sum", t)
