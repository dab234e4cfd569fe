"""Products of parameters, sampled.

With `--agree` a test with stacked `parametrize` marks runs for every combination. Else a sample
runs. Each value occurs in it at least once. Pairs of values of two marks are added until the sample
has `MOST` combinations, so that small products have every pair.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, groupby
from typing import Any

Value = tuple[str, ...]  # what one mark gives: names and values
MOST = 10


def sampled(items: Sequence[Any]) -> list[Any]:
    """Those tests of a product that are chosen, in their order."""
    found: set[int] = set()
    for _, same in groupby(items, key=lambda item: (item.path, item.originalname, item.cls)):
        found |= {id(item) for item in _cover(list(same))}
    return [item for item in items if id(item) in found]


def _cover(items: list[Any]) -> list[Any]:
    """Every value first, then as many pairs as `MOST` combinations hold."""
    values = [_values(item) for item in items]
    if not any(values):
        return items
    chosen = _greedy([set(combinations(each, 1)) for each in values], len(items), [])
    chosen = _greedy([set(combinations(each, 2)) for each in values], MOST, chosen)
    return [items[n] for n in chosen]


def with_new_values(items: Sequence[Any]) -> list[Any]:
    """Those tests of each function in which a parameter has a value for the first time, and all
    tests without parameters."""
    seen = set[tuple[Hashable, ...]]()
    return [item for item in items if _adds_values(item, seen)]


def _adds_values(item: Any, seen: set[tuple[Hashable, ...]]) -> bool:
    function = item.path, item.originalname, item.cls
    given = getattr(getattr(item, "callspec", None), "params", {})
    values = {(function, name, _key(value)) for name, value in given.items()}
    is_new = not values <= seen
    seen |= values
    return is_new or not values


def _key(value: object) -> Hashable:
    return value if isinstance(value, str | int | float) else id(value)


def _greedy(parts: list[set[Any]], most: int, chosen: list[int]) -> list[int]:
    """Add to `chosen` the test with most parts that no other has yet, until all are covered."""
    wanted = set[Any]().union(*parts).difference(*(parts[n] for n in chosen))
    chosen = list(chosen)
    while wanted and len(chosen) < most:
        best = max(range(len(parts)), key=lambda n: (len(parts[n] & wanted), -n))
        wanted -= parts[best]
        chosen.append(best)
    return chosen


def _values(item: Any) -> list[Value]:
    """What each mark gives one test."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    groups = [_names(mark.args[0]) for mark in item.iter_markers("parametrize")]
    groups.append([name for name in given if not any(name in group for group in groups)])
    return [tuple(f"{n} {given[n]!r}" for n in group) for group in groups if group]


def _names(given: str | Sequence[str]) -> list[str]:
    """The parameters of one mark; a row of a list of several is one value."""
    return [n.strip() for n in given.split(",")] if isinstance(given, str) else list(given)
