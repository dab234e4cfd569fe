"""Index arrays of rows and columns, cached: an access recognises them and uses slices.

And the order of writes to indices that repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.isa.meaning.lanes import Lanes

_FIRST: dict[int, Lanes] = {}  # by identity
_MADE: dict[tuple[int, int], Lanes] = {}  # by axis and size
_MOST = 1000


def numbers(axis: int, size: int) -> Lanes:
    """0, 1, .. along one of the axes depth, down and across."""
    indices = _MADE.get((axis, size))
    if indices is None:
        if len(_MADE) == _MOST:
            _MADE.clear()
            _FIRST.clear()
        indices = np.arange(size, dtype=np.int64).reshape(((-1, 1, 1), (-1, 1), (1, -1))[axis])
        indices.flags.writeable = False
        _MADE[axis, size] = _FIRST[id(indices)] = indices
    return indices


def down(rows: int) -> Lanes:
    return numbers(1, rows)


def across(cols: int) -> Lanes:
    return numbers(2, cols)


def is_first(index: Any, limit: int) -> bool:
    """True if an index is 0, 1, .. below a limit, along its own axis."""
    return _FIRST.get(id(index)) is index and index.size <= limit


def picked(plain: Lanes, r: Any, c: Any, down: bool, across: bool) -> Lanes:
    """plain[r, c], with slices or whole rows and columns if the indices allow it."""
    if crosses(r, c):
        if down:
            return plain[: r.shape[0]].take(c[0], axis=1)
        if across:
            return plain[:, : c.shape[1]].take(r[:, 0], axis=0)
    elif down and across and r.ndim != c.ndim:  # one is the index along the depth axis
        if r.ndim == 2 and r.shape[1] == 1:
            return plain[: r.size, : c.size].T[:, :, None]
        if c.ndim == 2 and c.shape[0] == 1:
            return plain[: r.size, None, : c.size]
    return plain[r, c]


def crosses(r: Any, c: Any) -> bool:
    """True if r is a column of row indices and c a row of column indices."""
    return np.ndim(r) == np.ndim(c) == 2 and r.shape[1] == c.shape[0] == 1


def turns(keys: Lanes) -> list[Lanes]:
    """Rounds of writes without equal keys: the first of each key, the second of each, ..."""
    if keys.size == 0:
        return []
    ordered = np.sort(keys * keys.size + np.arange(keys.size))  # by key, then by position
    key_of, order = np.divmod(ordered, keys.size)
    starts = np.flatnonzero(np.diff(key_of, prepend=-1))
    lengths = np.diff(starts, append=key_of.size)
    return [order[starts[lengths > nth] + nth] for nth in range(int(lengths.max()))]
