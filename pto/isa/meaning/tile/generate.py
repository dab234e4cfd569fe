"""Tiles made from scalars: ramps, triangles and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.isa.meaning.handle.view import as_tile
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import add, narrow, sub, widen
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.regions import element, put, scalar
from pto.isa.rules.rule import Case

Words = npt.NDArray[np.uint64]  # 32-bit words, with room for a product


def _ramp(case: Case) -> Callable[..., None]:
    """S + j or S - j, floats rounded once; integers wrap."""
    type, kind = case.type("dst"), element(case, "dst")
    become = scalar(case.type("S"), kind)
    step = sub if case.word("descending") == "true" else add

    def fill(core: Machine, start: Any, dst: Any) -> None:
        out = as_tile(dst, type)
        rows, cols = out.get_valid()
        if rows == 0 or cols == 0:
            return
        first, columns = become(start), np.arange(cols)
        if kind.is_float:
            values = narrow(step(widen(first), widen(columns)), np.empty(0, kind.numpy))
        else:
            values = step(first.astype(kind.numpy), columns.astype(kind.numpy))
        put(out, 1, cols, values[None, :])

    return fill


def _triangle(case: Case) -> Callable[..., None]:
    type, kind = case.type("dst"), element(case, "dst").numpy
    upper = case.word("upperOrLower") == "1"

    def fill(core: Machine, diagonal: int, dst: Any) -> None:
        out = as_tile(dst, type)
        rows, cols = out.get_valid()
        above = np.arange(cols)[None, :] - np.arange(rows)[:, None]
        one = above >= diagonal if upper else above <= diagonal
        put(out, rows, cols, one.astype(kind))

    return fill


RAMP = Do(_ramp)
TRIANGLE = Do(_triangle)

# ---- random numbers: Philox4x32 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3")

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_LANES = 64  # counters used for one chunk of a row
_WORDS = 4  # numbers that one counter gives


def philox(counter: list[Words], key: tuple[int, int], rounds: int) -> list[Words]:
    """Four words out of four words and a key."""
    a, b, c, d = counter
    for n in range(rounds):
        first, second = (
            np.uint64((k + n * w) & 0xFFFFFFFF) for k, w in zip(key, _WEYL, strict=True)
        )
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (right >> _HALF) ^ b ^ first, right & _LOW
        c, d = (left >> _HALF) ^ d ^ second, left & _LOW
    return [a, b, c, d]


def _advanced(base: list[int], by: Words) -> list[Words]:
    """A 128-bit counter plus numbers of less than 64 bits, the lowest word first."""
    low = np.uint64(base[0]) + (by & _LOW)
    words, carry = [low & _LOW], (low >> _HALF) + (by >> _HALF)
    for word in base[1:]:
        total = np.uint64(word) + carry
        words.append(total & _LOW)
        carry = total >> _HALF
    return words


def _random(case: Case) -> Callable[..., None]:
    """Element 4k + w of a row is word w of the row's counter k.

    A row takes one counter for each four elements from where it starts, 64 for a chunk of 256
    columns; the next row starts after 64 for each chunk but the last, and for that one as many as
    its columns modulo 64 (64 for 0).
    """
    type, kind = case.type("dst"), element(case, "dst").numpy
    rounds = int(case.word("rounds") or 10)

    def fill(core: Machine, *operands: Any) -> None:
        *words, dst = operands
        first, second, *base = (word & 0xFFFFFFFF for word in words)
        out = as_tile(dst, type)
        rows, cols = out.get_valid()
        if rows == 0 or cols == 0:
            return
        chunks = -(-cols // (_LANES * _WORDS))
        per_row = (chunks - 1) * _LANES + (cols - 1) % _LANES + 1
        row, lane = np.arange(rows, dtype=np.uint64), np.arange(-(-cols // _WORDS), dtype=np.uint64)
        by = row[:, None] * np.uint64(per_row) + lane[None, :]
        found = np.stack(philox(_advanced(base, by), (first, second), rounds), axis=2)
        put(out, rows, cols, found.astype(np.uint32).view(kind).reshape(rows, -1)[:, :cols])

    return fill


RANDOM = Do(_random)
