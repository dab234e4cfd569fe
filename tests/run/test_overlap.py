"""Arguments that overlap in memory and are not contiguous: in place, apart, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from tests.lang.test_arrays import Tensor

F32 = pto.Global[pto.f32]


@pto.kernel
def out_first(y: F32, x: F32):
    pto.store(y, pto.load(x, 16, 64) + 1.0)


@pto.kernel
def in_first(x: F32, y: F32):
    pto.store(y, pto.load(x, 16, 64) + 1.0)


@pto.kernel
def through(x: F32, y: F32, z: F32):
    """What is stored to y is loaded again."""
    pto.store(y, pto.load(x, 16, 64) + 1.0)
    pto.store(z, pto.load(y, 16, 64) + 1.0)


@pto.kernel
def summed(x: F32, z: F32, y: F32):
    pto.store(y, pto.load(x, 16, 64) + pto.load(z, 16, 64))


def turned() -> Any:
    """An array that is not contiguous."""
    return np.zeros((64, 16), np.float32).T


def as_tensor() -> Any:
    return Tensor(turned())


def direct(kernel: Any, *args: Any) -> None:
    kernel(*args)


def streamed(kernel: Any, *args: Any) -> None:
    device = pto.Device("a5")
    device.stream().launch(kernel, *args)
    device.synchronize()


def sanitized(kernel: Any, *args: Any) -> None:
    kernel.sanitize(*args)


RUNS = pytest.mark.parametrize("run", [direct, streamed, sanitized])


@RUNS
@pytest.mark.parametrize("make", [turned, as_tensor])
def test_a_kernel_works_in_place_whatever_the_order_of_parameters(
    run: Callable[..., None], make: Callable[[], Any]
):
    for kernel, arrays, result in ((out_first, 2, 1), (in_first, 2, 1), (through, 3, 2)):
        x = make()
        run(kernel, *[x] * arrays)
        elements = x.array if isinstance(x, Tensor) else x
        assert (elements == result).all(), kernel.name


@RUNS
def test_windows_of_one_array_that_share_no_element(run: Callable[..., None]):
    for kernel in (out_first, in_first):
        whole = np.zeros((16, 128), np.float32)
        left, right = whole[:, :64], whole[:, 64:]
        run(kernel, *((right, left) if kernel is out_first else (left, right)))
        assert (left == 0).all() and (right == 1).all()


def test_a_queued_launch_reads_what_the_launches_before_it_have_written():
    device = pto.Device("a5")
    a, b, seen = turned(), turned(), np.zeros((16, 64), np.float32)
    stream = device.stream()
    for x, y in ((a, b), (b, a), (a, seen)):
        stream.launch(in_first, x, y)
    device.synchronize()
    assert (b == 1).all() and (a == 2).all() and (seen == 3).all()


def test_a_queued_launch_reads_a_read_only_array_when_it_runs():
    device = pto.Device("a5")
    memory, seen = np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    frozen = memory.view()
    frozen.flags.writeable = False
    stream = device.stream()
    stream.launch(in_first, np.ones((16, 64), np.float32), memory)
    stream.launch(in_first, frozen, seen)
    device.synchronize()
    assert (seen == 3).all()


@RUNS
def test_inputs_may_overlap(run: Callable[..., None]):
    whole = np.ones((16, 96), np.float32)
    y = np.zeros((16, 64), np.float32)
    run(summed, whole[:, :64], whole[:, 32:], y)
    assert (y == 2).all() and (whole == 1).all()


@RUNS
@pytest.mark.parametrize("contiguous", [False, True])
def test_a_result_that_is_a_part_of_a_copied_input_is_refused(
    run: Callable[..., None], contiguous: bool
):
    whole = np.zeros(16 * 96, np.float32)
    y = whole[: 16 * 64].reshape(16, 64) if contiguous else whole.reshape(16, 96)[:, 32:]
    with pytest.raises(pto.PtoError, match="x and y overlap in memory, and x is copied") as caught:
        run(in_first, whole.reshape(16, 96)[:, :64], y)
    assert caught.value.code == "PTO-U191"
    assert (whole == 0).all()


def test_the_sanitizer_before_each_run_sees_the_overlap(monkeypatch: pytest.MonkeyPatch):
    @pto.kernel
    def rows(x: F32, y: F32):
        i = pto.block_idx() * 16
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))

    whole = np.zeros((48, 64), np.float32)
    monkeypatch.setenv("PTO_SANITIZE", "1")
    with pytest.raises(pto.PtoError, match="block 1 may"):
        rows[2](whole[:32], whole[16:])
