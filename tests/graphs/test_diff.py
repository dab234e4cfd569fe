"""The first task whose results differ; recordings are made by hand."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.graphs.diff import ValueLog, compare, gathered
from pto.graphs.model import Task, TaskArg, TensorBox, Use


def recorded(folder: Path, *results: np.ndarray, element: str = "FLOAT32") -> Path:
    """One task for each result, which it leaves in a buffer of its own."""
    folder.mkdir()
    recorder = ValueLog(folder)
    for number, values in enumerate(results):
        region = TensorBox(0, 0, values.shape, (1,), values.itemsize, element)
        arguments = (TaskArg(region, Use.IN), TaskArg(region, Use.INOUT))
        task = Task(number, "task", (None, 0, None), f"k{number}", arguments=arguments)
        recorder.add(task, [values.view(np.uint8)])
    recorder.__exit__()
    return folder


def test_a_region_is_gathered_row_by_row():
    memory = np.arange(64, dtype=np.int16)
    region = TensorBox(0, 9, (2, 3), (8, 2), 2)
    expected = memory[[9, 11, 13, 17, 19, 21]]
    assert gathered(region, memory.view(np.uint8)) == expected.tobytes()


def test_the_first_task_outside_of_the_tolerance_is_told_with_those_before(tmp_path: Path):
    ones = np.ones(8, np.float32)
    near, far = ones.copy(), ones.copy()
    near[2], far[[1, 5]] = 1.0001, [1.5, 0.75]
    left = recorded(tmp_path / "left", ones, near, far, 2 * far)
    right = recorded(tmp_path / "right", ones, ones, ones, ones)
    report = compare(left, right, 1e-3, 1e-3)
    assert report.tasks == 4 and report.first is not None
    finding = report.finding()
    assert finding is not None and finding.code == "PTO-G201"
    assert finding.message == (
        "task 2 (k2) is the first task with different results: 2 of 8 elements of argument 1, by up"
        " to 0.5 where values reach 1"
    )
    assert [n.message for n in finding.notes] == [
        "task 1 (k1) differed by up to 0.0001 of 1 before"
    ]


def test_equal_results_and_equal_nans_are_no_difference(tmp_path: Path):
    values = np.array([np.nan, np.inf, 1], np.float32)
    other = values.copy()
    other.view(np.uint32)[0] ^= 1  # another NaN
    report = compare(recorded(tmp_path / "a", values), recorded(tmp_path / "b", other), 0, 0)
    assert report.finding() is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_outside_of_every_tolerance(tmp_path: Path, wrong: float):
    ones, bad = np.ones(4, np.float32), np.ones(4, np.float32)
    bad[3] = wrong
    report = compare(recorded(tmp_path / "a", bad), recorded(tmp_path / "b", ones), 1, 1)
    assert report.first is not None and report.first.wrong == 1


def test_bfloat16_has_a_tolerance_and_integers_have_none(tmp_path: Path):
    a = np.array([1, 256], ml_dtypes.bfloat16)
    b = np.array([1, 258], ml_dtypes.bfloat16)
    left, right = (
        recorded(tmp_path / n, v, element="BFLOAT16") for n, v in zip("ab", (a, b), strict=True)
    )
    assert compare(left, right, 0.01, 0).finding() is None
    assert compare(left, right, 0.001, 0).first is not None
    i, j = np.array([1, 256], np.int32), np.array([1, 257], np.int32)
    left, right = (
        recorded(tmp_path / n, v, element="INT32") for n, v in zip("cd", (i, j), strict=True)
    )
    assert compare(left, right, 1, 1).first is not None


def test_recordings_of_different_graphs_are_refused(tmp_path: Path):
    ones = np.ones(4, np.float32)
    left, right = recorded(tmp_path / "a", ones), recorded(tmp_path / "b", ones, ones)
    with pytest.raises(PtoError) as error:
        compare(left, right, 0, 0)
    assert error.value.code == "PTO-U326"
