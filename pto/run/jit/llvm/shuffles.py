"""Lanes in another order, by numbers known when the code is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pto.run.jit.llvm.text import Text, vector
from pto.run.jit.llvm.value import Val

Picks = Sequence[int] | npt.NDArray[np.int64]
NONE = -1  # a pick that gives zero


def numbers(picks: Picks) -> str:
    """The constant that a shuffle takes."""
    return f"<{len(picks)} x i32> <{', '.join(f'i32 {int(p)}' for p in picks)}>"


def shuffle(x: Text, item: str, count: int, a: Val, picks: Picks, b: Val | None = None) -> str:
    """Lanes of `a`, and behind them those of `b`, `count` each, as `picks` names them."""
    type, wanted = vector(count, item), np.asarray(picks, np.int64)
    if b is None:
        if len(wanted) == count and np.array_equal(wanted, np.arange(count)):
            return str(a)
        order = numbers(np.where(wanted == NONE, count, wanted))
        return x.new(f"shufflevector {type} {a}, {type} zeroinitializer, {order}")
    order = numbers(np.maximum(wanted, 0))
    found = x.new(f"shufflevector {type} {a}, {type} {b}, {order}")
    if not (wanted == NONE).any():
        return found
    kept = np.where(wanted == NONE, NONE, np.arange(len(wanted)))
    return shuffle(x, item, len(wanted), found, kept)


def joined(x: Text, item: str, count: int, parts: Sequence[str]) -> str:
    """Vectors of `count` lanes one behind the other; a power of two of them."""
    names = list(parts)
    while len(names) > 1:
        order = numbers(range(2 * count))
        type = vector(count, item)
        names = [
            x.new(f"shufflevector {type} {a}, {type} {b}, {order}")
            for a, b in zip(names[::2], names[1::2], strict=True)
        ]
        count *= 2
    return names[0]


_PART = 16  # bytes within which the machine interleaves fastest


def transposed(
    x: Text, item: str, size: int, high: int, wide: int, load: Callable[[int, int, int], str]
) -> list[str]:
    """`high` rows of `wide` lanes, from `wide` columns of `high` elements of so many bytes each;
    load(column, first, count) gives some of a column.

    A vector holds the same few rows of several columns, in parts. Interleaving the two halves of
    the vectors moves the highest bit of a column's number to the lowest place of a lane's; after
    as many rounds as there are bits, rows and columns of each part have changed places.
    """
    count = min(_PART // size, high, wide)
    low = [n - n % count + n % count // 2 + n % 2 * wide for n in range(wide)]
    halves = low, [n + count // 2 for n in low]
    found: list[str] = []
    for first in range(0, high, count):
        parts = [[load(c, first, count) for c in range(n, wide, count)] for n in range(count)]
        rows = [joined(x, item, count, each) for each in parts]
        for _ in range(count.bit_length() - 1):
            pairs = zip(rows[: count // 2], rows[count // 2 :], strict=True)
            rows = [shuffle(x, item, wide, a, half, b) for a, b in pairs for half in halves]
        found += rows
    return found


def turn(x: Text, item: str, lanes: int, columns: Sequence[str]) -> list[str]:
    """Vectors that are columns as vectors of the rows' elements, in order; see `transposed`."""
    rows, half = list(columns), len(columns) // 2
    low = [n // 2 + n % 2 * lanes for n in range(lanes)]
    halves = low, [n + lanes // 2 for n in low]
    for _ in range(len(columns).bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [shuffle(x, item, lanes, a, picks, b) for a, b in pairs for picks in halves]
    return rows


def spread(x: Text, item: str, count: int, scalar: Val) -> str:
    """One scalar in every lane."""
    type = vector(count, item)
    one = x.new(f"insertelement {type} poison, {item} {scalar}, i64 0")
    zeros = f"<{count} x i32> zeroinitializer"
    return x.new(f"shufflevector {type} {one}, {type} poison, {zeros}")


def constants(item: str, values: Sequence[int]) -> str:
    """A vector of integers."""
    return f"<{', '.join(f'{item} {v}' for v in values)}>"


def bits_of(x: Text, count: int, bits: str) -> str:
    """Booleans as one integer, the first the lowest bit."""
    return x.new(f"bitcast <{count} x i1> {bits} to i{count}")
