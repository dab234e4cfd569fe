"""PTO manual, Layout Combinations by TileType, its examples, and lanes outside the region."""

from __future__ import annotations

from itertools import product

import pytest

from pto.target.profile import PROFILES, profile

NAMES = {
    ("RowMajor", "NoneBox"): "ND",
    ("ColMajor", "NoneBox"): "DN",
    ("ColMajor", "RowMajor"): "NZ",
    ("RowMajor", "ColMajor"): "ZN",
    ("RowMajor", "RowMajor"): "ZZ",
    ("ColMajor", "ColMajor"): "NN",
}

# TileType: the (BLayout, SLayout) pairs of its row.
COMBINATIONS = {
    "vec": {("RowMajor", "NoneBox"), ("ColMajor", "NoneBox")},
    "mat": {("RowMajor", "NoneBox"), ("ColMajor", "NoneBox")},
    "acc": {("RowMajor", "NoneBox"), ("ColMajor", "NoneBox")},
    "left": {("RowMajor", "RowMajor")},
    "right": {("RowMajor", "NoneBox")},
    "scalar": {("RowMajor", "NoneBox")},
}

# "must be NZ layout", "must be NN layout" (TileType): the pairs those two words have elsewhere.
MEANT_BY_THE_WORD = {"left": {("ColMajor", "RowMajor")}, "right": {("ColMajor", "ColMajor")}}

# Layout Reference leaves Right to the backend, whose alias is ZN.
ADDED_BY_LAYOUT_REFERENCE = {"right": {("RowMajor", "ColMajor")}}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("role", COMBINATIONS)
def test_every_cell_of_the_table(name: str, role: str) -> None:
    manual = profile(name, edition="manual")
    legal = COMBINATIONS[role].union(
        MEANT_BY_THE_WORD.get(role, ()), ADDED_BY_LAYOUT_REFERENCE.get(role, ())
    )
    for pair in product(("RowMajor", "ColMajor"), ("NoneBox", "RowMajor", "ColMajor")):
        assert manual.allows_layout(role, NAMES[pair], 512) is (pair in legal), pair


@pytest.mark.parametrize("edition", ["manual", "current"])
def test_the_tiles_of_the_matmul_example_are_legal(edition: str) -> None:
    """Example 2: Left RowMajor RowMajor NZ, Right RowMajor NoneBox NN, Acc RowMajor NoneBox."""
    target = profile("a5", edition=edition)
    by_orders = (("left", "ZZ"), ("right", "ND"), ("acc", "ND"))
    by_word = (("left", "NZ"), ("right", "NN"))
    for role, layout in by_orders + by_word:
        assert target.allows_layout(role, layout, 512)
    assert target.allows_type("i8")
    assert target.allows_type("i32")


@pytest.mark.parametrize(("name", "reads"), [("cpu", "raw"), ("a2a3", "poison"), ("a5", "poison")])
@pytest.mark.parametrize("edition", ["manual", "current"])
def test_source_lanes_outside_the_valid_region(name: str, reads: str, edition: str) -> None:
    """Undefined on A2/A3 and A5; the CPU simulator reads the memory directly."""
    assert profile(name, edition=edition).outside_valid == reads
