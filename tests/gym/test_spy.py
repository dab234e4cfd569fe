"""The element a judge rejected."""

from pathlib import Path

import numpy as np
import pytest

from pto.gym.spy import Spy


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    golden = np.arange(12, dtype=np.float32) + 100
    output = golden.copy()
    output[[5, 7]] = [-5, -7]
    golden.tofile("golden.bin")
    output.tofile("output.bin")
    golden.tofile("golden_v2.bin")
    output.tofile("v2.bin")


def read(name: str) -> np.ndarray:
    return np.fromfile(name, np.float32).reshape(3, 4)


def test_index_values_and_count_in_the_region_that_is_compared():
    with Spy() as spy:
        assert not np.allclose(read("golden.bin")[1:], read("output.bin")[1:])
    assert spy.difference() == {
        "index": [0, 1],
        "got": "-5.0",
        "expected": "105.0",
        "differing": 2,
        "size": 8,
    }


def test_the_judges_own_tolerance_counts():
    with Spy() as spy:
        assert not np.allclose(read("golden.bin"), read("output.bin"), atol=111)
    found = spy.difference()
    assert found is not None
    assert (found["index"], found["differing"]) == ([1, 3], 1)  # 7: 107 against -7


def test_the_output_is_told_from_the_golden_whatever_their_order():
    for swapped in (False, True):
        pair = [read("golden.bin"), read("output.bin")]
        with Spy() as spy:
            pair = [read("golden.bin").astype(np.float64), read("output.bin").astype(np.float64)]
            assert not np.array_equal(*(pair[::-1] if swapped else pair))
        found = spy.difference()
        assert found is not None
        assert (found["got"], found["expected"]) == ("-5.0", "105.0")


@pytest.mark.parametrize(
    ("golden", "output"), [("golden.bin", "output.bin"), ("golden_v2.bin", "v2.bin")]
)
def test_a_judge_with_a_loop_of_its_own_is_explained_by_its_files(golden: str, output: str):
    with Spy() as spy:
        assert any(a != b for a, b in zip(read(golden).flat, read(output).flat, strict=True))
    found = spy.difference()
    assert found is not None
    assert (found["index"], found["file"]) == ([5], output)


def test_equal_files_have_no_difference_and_numpy_is_left_as_it_was():
    before = (np.fromfile, np.allclose, np.array_equal)
    with Spy() as spy:
        assert np.allclose(read("golden.bin"), read("golden_v2.bin"))
    assert spy.difference() is None
    assert (np.fromfile, np.allclose, np.array_equal) == before


def test_shapes_that_differ_name_no_element():
    with Spy() as spy:
        assert not np.array_equal(np.zeros(3), np.zeros(4))
    assert spy.difference() is None
