"""Kernels in pickles and copies: found again by name, as functions are."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import pto

F32 = pto.Global[pto.f32]


@pto.kernel
def twice(x: F32, y: F32):
    pto.store(y, pto.load(x, 16, 64) * 2.0)


class Kernels:
    @staticmethod
    @pto.kernel
    def three_times(x: F32, y: F32):
        pto.store(y, pto.load(x, 16, 64) * 3.0)


def _cube(x: F32, y: F32):
    pass


def _vector(x: F32, y: F32):
    pto.store(y, pto.load(x, 16, 64) * 4.0)


of_two = pto.pair(_cube, _vector)


def result(kernel: Any) -> float:
    y = np.zeros((16, 64), np.float32)
    kernel(np.ones_like(y), y)
    return float(y[3, 5])


@pytest.mark.parametrize("kernel", [twice, Kernels.three_times, of_two], ids=lambda k: k.name)
def test_a_kernel_of_a_module_is_found_again(kernel: Any):
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert pickle.loads(pickle.dumps(kernel[3])) == kernel[3]


def test_a_kernel_for_another_profile_is_made_again():
    again = pickle.loads(pickle.dumps(twice.on("a2a3")))
    assert again.profile == "a2a3" and again.function is twice.function


def test_a_process_that_imports_the_module_runs_it():
    kernels = [twice, Kernels.three_times, twice.on("a2a3"), of_two]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(result, kernels) == [2, 3, 2, 4]


def test_a_kernel_inside_a_function_is_refused_by_name():
    @pto.kernel
    def inside(x: F32, y: F32):
        pto.store(y, pto.load(x, 16, 64))

    with pytest.raises(pickle.PicklingError, match=f"kernel inside .* of its module {__name__}"):
        pickle.dumps(inside)


def test_a_copy_is_the_kernel_also_where_it_has_no_name():
    def body(x: F32, y: F32):
        pto.store(y, pto.load(x, 16, 64))

    kernel = pto.kernel(body)
    result(kernel)  # compiled code cannot be copied
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy({"kernel": kernel})["kernel"] is kernel
