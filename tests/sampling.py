"""Products of parameters, sampled: every two values that may meet do so in some test.

With `--agree` a test with stacked `parametrize` marks runs for every combination. Else a sample
runs, chosen so that each value, and each pair of values of two marks, occurs at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, groupby
from typing import Any

Value = tuple[str, ...]  # what one mark gives: names and values


def sampled(items: Sequence[Any]) -> list[Any]:
    """Those tests of a product that together have every pair of values; in their order."""
    found: set[int] = set()
    for _, same in groupby(items, key=lambda item: (item.path, item.originalname, item.cls)):
        found |= {id(item) for item in _cover(list(same))}
    return [item for item in items if id(item) in found]


def _cover(items: list[Any]) -> list[Any]:
    """Greedily: next is the first one with most pairs that no other has yet."""
    left = {n: set(_pairs(item)) for n, item in enumerate(items)}
    chosen, wanted = list[Any](), set[Any]().union(*left.values()) if left else set[Any]()
    if not any(left.values()):
        return items
    while wanted:
        best = max(left, key=lambda n: (len(left[n] & wanted), -n))
        wanted -= left.pop(best)
        chosen.append(items[best])
    return chosen


def _pairs(item: Any) -> Iterable[tuple[Value, ...]]:
    """Values of one test, alone and two by two."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    groups = [_names(mark.args[0]) for mark in item.iter_markers("parametrize")]
    groups.append([name for name in given if not any(name in group for group in groups)])
    values = [tuple(f"{n} {given[n]!r}" for n in group) for group in groups if group]
    return [*combinations(values, 1), *combinations(values, 2)]


def _names(given: str | Sequence[str]) -> list[str]:
    """The parameters of one mark; a row of a list of several is one value."""
    return [n.strip() for n in given.split(",")] if isinstance(given, str) else list(given)
