"""Tiles made from scalars: ramps, triangles and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import U32
from pto.core.tile import Tile
from pto.isa.meaning.kinds import Move
from pto.isa.meaning.lanes import Lanes, add, narrow, sub, widen
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element
from pto.isa.rules.rule import Case

Words = npt.NDArray[np.uint64]  # holds a product of two 32-bit words


def _ramp(case: Case) -> Callable[..., None]:
    """S + j or S - j in row 0, floats rounded once; integers wrap."""
    start_type, kind = case.type("S"), element(case, "dst")
    step, like = sub if case.word("descending") == "true" else add, np.empty(0, kind.numpy)

    def fill(x: Mover, start: Any, tmp: Any, dst: Tile) -> None:
        def cell(i: Lanes, j: Lanes) -> Lanes:
            first = x.lane(start, start_type, kind)
            if kind.is_float:
                return narrow(step(widen(first), widen(j)), like)
            return step(first.astype(kind.numpy), j.astype(kind.numpy))

        rows, cols = dst.get_valid()
        x.each(x.least(rows, 1), cols, cell, dst)

    return fill


def _triangle(case: Case) -> Callable[..., None]:
    kind, upper = element(case, "dst").numpy, case.word("upperOrLower") == "1"

    def fill(x: Mover, diagonal: Any, dst: Tile) -> None:
        middle = x.number(diagonal)

        def cell(i: Lanes, j: Lanes) -> Lanes:
            one = j - i >= middle if upper else j - i <= middle
            return one.astype(kind)

        x.each(*dst.get_valid(), cell, dst)

    return fill


RAMP = Move(_ramp)
TRIANGLE = Move(_triangle)

# ---- random numbers: Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_LANES = 64  # counters used for one chunk of a row
_WORDS = 4  # numbers per counter


def philox(counter: list[Words], key: tuple[Words, Words], rounds: int) -> list[Words]:
    """Four words from four words and a key."""
    a, b, c, d = counter
    for n in range(rounds):
        first, second = (k + np.uint64(n * w) & _LOW for k, w in zip(key, _WEYL, strict=True))
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (right >> _HALF) ^ b ^ first, right & _LOW
        c, d = (left >> _HALF) ^ d ^ second, left & _LOW
    return [a, b, c, d]


def _advanced(base: list[Words], by: Words) -> list[Words]:
    """A 128-bit counter plus numbers of less than 64 bits, lowest word first."""
    low = base[0] + (by & _LOW)
    words, carry = [low & _LOW], (low >> _HALF) + (by >> _HALF)
    for word in base[1:]:
        total = word + carry
        words.append(total & _LOW)
        carry = total >> _HALF
    return words


def _random(case: Case) -> Callable[..., None]:
    """Element 4k + w of a row is word w of the row's counter k.

    A row uses one counter per four elements, 64 per chunk of 256 columns. The next row starts after
    64 counters for each chunk but the last; for the last, after as many as its columns modulo 64
    (64 for 0).
    """
    kind, rounds = element(case, "dst").numpy, int(case.word("rounds") or 10)
    types = [case.type(operand.name) for operand in case.row.operands]

    def fill(x: Mover, *operands: Any) -> None:
        *scalars, dst = operands
        rows, cols = dst.get_valid()
        chunks = (cols + _LANES * _WORDS - 1) // (_LANES * _WORDS)
        per_row = (chunks - 1) * _LANES + (cols + _LANES - 1) % _LANES + 1

        def word(value: Any, type: Any) -> Words:
            return x.lane(value, type, U32).astype(np.uint64) & _LOW

        def cell(i: Lanes, k: Lanes) -> list[Lanes]:
            first, second, *base = (word(v, t) for v, t in zip(scalars, types, strict=False))
            by = (i * per_row + k).astype(np.uint64)
            words = philox(_advanced(base, by), (first, second), rounds)
            return [word_lanes.astype(np.uint32).view(kind) for word_lanes in words]

        x.groups(rows, cols, _WORDS, cell, dst)

    return fill


RANDOM = Move(_random)
