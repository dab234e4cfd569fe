"""What is found in a checkout, and under which names."""

from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.core.selection import select
from pto.gym.cases import expected_cases, find_programs

EVERY = select("")


def test_programs_are_found_by_name_with_their_families(checkout: Path):
    found = find_programs(checkout, EVERY)
    assert [(p.name, p.family, p.has_table) for p in found] == [
        ("pto/micro-op/scaling/scale", "pto/micro-op/scaling", False),
        ("pto/micro-op/scaling/scale-again", "pto/micro-op/scaling", False),
        ("tileop/sum", "tileop/sum", True),
    ]
    assert found[2].kernel.name == "sum.pto"
    assert [expected_cases(p, EVERY) for p in found] == [1, 1, 2]


@pytest.mark.parametrize(
    "part", ["examples", "examples/pto/micro-op", "examples/pto/micro-op/scaling/scale"]
)
def test_names_do_not_depend_on_where_the_search_begins(checkout: Path, part: str):
    assert find_programs(checkout / part, EVERY)[0].name == "pto/micro-op/scaling/scale"


def test_a_folder_outside_any_examples_names_cases_from_itself(checkout: Path, tmp_path: Path):
    moved = tmp_path / "mine"
    (checkout / "examples" / "pto" / "micro-op").rename(moved)
    assert [p.name for p in find_programs(moved, EVERY)] == ["scaling/scale", "scaling/scale-again"]
    assert [p.name for p in find_programs(moved / "scaling" / "scale", EVERY)] == ["scale"]


def test_a_selection_leaves_programs_out(checkout: Path):
    assert [p.name for p in find_programs(checkout, select("2x16"))] == ["tileop/sum"]
    assert find_programs(checkout, select("nothing")) == []


@pytest.mark.parametrize(
    "name", ["launch.cpp", "golden.py", "compare.py", "main.cpp", "kernel.pto"]
)
def test_an_incomplete_case_is_told(checkout: Path, name: str):
    (checkout / "examples" / "pto" / "micro-op" / "scaling" / "scale" / name).unlink()
    problem = find_programs(checkout, EVERY)[0].problem
    assert problem is not None
    assert problem.code == "PTO-U064"
    assert (".pto" if name == "kernel.pto" else name) in problem.message


def test_folders_without_cases_are_told(tmp_path: Path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(PtoError) as caught:
            find_programs(path, EVERY)
        assert caught.value.code == "PTO-U060"
