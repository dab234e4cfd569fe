"""Arguments that overlap in memory, where one of them is copied because it is not contiguous.

Copies of one array are one copy, so a kernel that works in place does so there too. A copy is
written back only if the kernel writes it; another overlap with such a copy would be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import numpy as np

from pto.core.errors import fail
from pto.run.launch.arrays import Borrowed, in_place

_WORK = 100_000  # candidates that NumPy tries to decide whether two arrays share an element


def joined(arrays: Sequence[Borrowed]) -> list[Borrowed]:
    """The arrays, with one copy for all arguments that are the same elements in memory."""
    result: list[Borrowed] = []
    for borrowed in arrays:
        copies = [
            earlier for earlier in result if _is_copied(earlier) and _is_same(earlier, borrowed)
        ]
        is_joined = _is_copied(borrowed) and copies
        result.append(
            replace(borrowed, array=copies[0].array, take=None, give_back=None)
            if is_joined
            else borrowed
        )
    return result


def written_back(arrays: Mapping[str, Borrowed], written: Collection[str]) -> list[Borrowed]:
    """The arrays, of which only those `written` by the program are written back; raises if what it
    writes to one parameter is a part of the copy of another."""
    for (m, a), (n, b) in combinations(arrays.items(), 2):
        is_apart = not (_is_copied(a) or _is_copied(b)) or a.array is b.array
        if not is_apart and (m in written or n in written) and _overlap(a, b):
            raise fail(
                "PTO-U191",
                f"{m} and {n} overlap in memory, and {m if _is_copied(a) else n} is copied for the"
                " launch because it is not contiguous: it would not change with the other",
                help=f"pass a copy: {m}.copy()",
            )
    copies = {id(array.array) for name, array in arrays.items() if name in written}
    return [
        borrowed
        if borrowed.read_only or id(borrowed.array) in copies
        else replace(borrowed, give_back=None)
        for borrowed in arrays.values()
    ]


def _is_copied(borrowed: Borrowed) -> bool:
    return borrowed.take is not None and not borrowed.read_only


def _is_same(a: Borrowed, b: Borrowed) -> bool:
    """True if two arguments are the same elements of memory in the same order."""
    first, second = in_place(a), in_place(b)
    if first.ctypes.data != second.ctypes.data or first.dtype != second.dtype:
        return False
    return (first.shape, first.strides) == (second.shape, second.strides)


def _overlap(a: Borrowed, b: Borrowed) -> bool:
    first, second = in_place(a), in_place(b)
    try:
        return np.shares_memory(first, second, max_work=cast(Any, _WORK))
    except np.exceptions.TooHardError:
        return True
