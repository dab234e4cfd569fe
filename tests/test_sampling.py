"""A sample of a product has every value and many pairs; rows of one list stay as they are."""

from __future__ import annotations

from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sampling import MOST, sampled, with_new_values


def items(*marks: tuple[str, list[Any]]) -> list[Any]:
    """Tests as pytest makes them of stacked marks."""
    made = [pytest.mark.parametrize(names, values).mark for names, values in marks]
    found: list[Any] = []
    for row in product(*(values for _, values in marks)):
        params = {
            name: value
            for (names, _), given in zip(marks, row, strict=True)
            for name, value in zip(
                names.split(","), given if "," in names else [given], strict=True
            )
        }
        call = SimpleNamespace(params=params)
        item = SimpleNamespace(path="file", originalname="test", cls=None, callspec=call)
        item.iter_markers = lambda name: made
        found.append(item)
    return found


def test_every_value_occurs_and_pairs_as_far_as_there_is_room() -> None:
    sizes = {"a": 5, "b": 4, "c": 3, "d": 2}
    all = items(*((name, list(range(n))) for name, n in sizes.items()))
    chosen = [item.callspec.params for item in sampled(all)]
    assert len(chosen) == MOST < len(all) == 120
    for name, size in sizes.items():
        assert {p[name] for p in chosen} == set(range(size))


def test_a_small_product_has_every_pair() -> None:
    sizes = {"a": 3, "b": 3, "c": 2}
    chosen = [
        i.callspec.params for i in sampled(items(*((n, list(range(k))) for n, k in sizes.items())))
    ]
    for x, y in combinations(sizes, 2):
        assert {(p[x], p[y]) for p in chosen} == set(product(range(sizes[x]), range(sizes[y])))


def test_a_list_longer_than_the_sample_stays_whole() -> None:
    assert len(sampled(items(("a", list(range(40)))))) == 40


def test_two_marks_and_rows_of_a_list_are_whole() -> None:
    assert len(sampled(items(("a", [1, 2, 3]), ("b", [1, 2])))) == 6
    rows = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(sampled(items(("a,b", rows), ("c", [0])))) == 4


def test_tests_without_parameters_stay() -> None:
    plain = [SimpleNamespace(path=n, originalname="t", cls=None) for n in range(3)]
    for each in plain:
        each.iter_markers = lambda name: []
    assert sampled(plain) == plain


def test_tests_with_a_new_value_and_tests_without_parameters_are_chosen() -> None:
    """The first value of one parameter beside all of the others: 5 + (4 - 1) + (3 - 1) of 60."""
    sizes = {"a": 5, "b": 4, "c": 3}
    all = items(*((name, list(range(n))) for name, n in sizes.items()))
    chosen = [item.callspec.params for item in with_new_values(all)]
    assert len(chosen) == 10
    for name, size in sizes.items():
        assert {p[name] for p in chosen} == set(range(size))
    plain = [SimpleNamespace(path="file", originalname="test", cls=None) for _ in range(2)]
    assert with_new_values(plain) == plain
    other = items(("a", [0]))
    other[0].originalname = "another"
    assert with_new_values([*items(("a", [0, 0])), *other])[1:] == other
