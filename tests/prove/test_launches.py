"""Launches whose blocks are proved independent run on threads; all others run in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ml_dtypes import bfloat16

import pto
from examples.gallery.batched_gemm import batched_gemm
from pto import isa
from pto.core.errors import PtoError
from pto.run.jit.runtime import threads
from tests.lang.model_kernels import strided_convolution

Floats = npt.NDArray[np.float32]
F = pto.Global[pto.f32]


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often blocks were shared out by a proof. Threads are used for the smallest launch."""
    found = Counter[str]()
    for name in ("_LAUNCH", "_TRIAL"):
        monkeypatch.setattr(threads, name, 0.0)
    monkeypatch.setenv("PTO_THREADS", "5")

    def noted(owner: type, name: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def run(*given: Any) -> Any:
            found[name] += 1
            return work(*given)

        monkeypatch.setattr(owner, name, run)

    noted(threads._ParallelLaunch, "_proved")
    return found


@pto.kernel(profile="a5")
def rows(x: F, y: F) -> None:
    """The last block has fewer rows."""
    i = pto.block_idx() * 8
    pto.store(y[i:, :], pto.load(x[i:, :], 8, 64) * 2.0)


@pto.kernel(profile="a5")
def strided(x: F, y: F) -> None:
    """Each block takes every so-many-th tile, as persistent kernels do."""
    for i in pto.range(pto.block_idx(), x.shape[0] // 8, pto.block_num()):
        pto.store(y[i * 8 :, :], pto.load(x[i * 8 :, :], 8, 64) * 2.0)


@pto.kernel(profile="a5")
def shifted(x: F, y: F) -> None:
    """Each block writes a row of the next one."""
    i = pto.block_idx() * 8
    pto.store(y[i : i + 9, :], pto.load(x[i : i + 9, :], 9, 64) * 2.0)


def data(rows: int) -> Floats:
    return np.random.default_rng(1).standard_normal((rows, 64)).astype(np.float32)


@pytest.mark.parametrize("kernel", [rows, strided], ids=["rows", "strided"])
def test_blocks_of_their_own_rows_are_proved(kernel: Any, counted: Counter[str]):
    x = data(77 if kernel is rows else 80)
    y = np.zeros_like(x)
    kernel[10](x, y, engine="jit")
    assert np.array_equal(y, x * 2)
    assert counted == {"_proved": 1}


def test_a_grid_of_several_axes_and_sizes_of_the_call(counted: Counter[str]):
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-4, 4, (3, 130, 130)).astype(np.float16) for _ in "xy")
    z = np.zeros((3, 130, 130), np.float32)
    batched_gemm[3, 2, 3](x, y, z, engine="jit")
    assert np.array_equal(z, x.astype(np.float32) @ y.astype(np.float32))
    assert counted == {"_proved": 1}


def test_every_second_row_of_a_grid_of_two_axes(counted: Counter[str]):
    """The number of rows that are left depends on a coordinate of the block."""
    x, w, y = data(45), data(4), np.zeros((21, 64), np.float32)
    strided_convolution[2, 1](x, w, y, engine="jit")
    wanted = sum(x[k : k + 41 : 2].astype(np.float64) * w[k] for k in range(4))
    assert np.allclose(y, wanted, atol=1e-5)
    strided_convolution[2, 2](np.tile(x, 2), np.tile(w, 2), wide := np.tile(y, 2) * 0, engine="jit")
    assert np.array_equal(wide, np.tile(y, 2))
    assert counted == {"_proved": 2}


@pto.kernel(profile="a5")
def scaled(x: F, y: F, by: pto.Scalar[pto.f32], more: pto.Scalar[pto.bf16]) -> None:
    i = pto.block_idx() * 8
    t = pto.load(x[i:, :], 8, 64) * by
    pto.store(y[i:, :], t if more is None else t * 2.0)


def test_numbers_that_are_no_integers_do_not_matter(counted: Counter[str]):
    x = data(80)
    y = np.zeros_like(x)
    scaled[10](x, y, 2.0, bfloat16(1), engine="jit")
    assert np.array_equal(y, x * 4)
    assert counted == {"_proved": 1}


def test_blocks_that_overlap_run_in_their_order(counted: Counter[str]):
    x = data(81)
    y = np.zeros_like(x)
    shifted[10](x, y, engine="jit")
    assert np.array_equal(y, x * 2)
    assert not counted


def test_one_array_for_two_parameters(counted: Counter[str]):
    x = data(80)
    twice = x * 2
    rows[10](x, x, engine="jit")
    assert np.array_equal(x, twice)
    assert counted == {"_proved": 1}


def test_arrays_that_overlap_are_not_proved(counted: Counter[str]):
    """Block n writes what block n + 1 reads: in their order the values run through all rows."""
    room = np.zeros((88, 64), np.float32)
    room[:8] = 1
    rows[10](room[:80], room[8:], engine="jit")
    assert room[::8, 0].tolist() == [2.0**n for n in range(11)]
    assert not counted["_proved"]


def test_a_block_too_many_runs_in_order(counted: Counter[str]):
    """Where a block leaves its array nothing is proved: blocks before the error are done, the
    others are not."""

    @pto.kernel(profile="a5")
    def unguarded(x: pto.Global[pto.f32, 64, 64], y: pto.Global[pto.f32, 64, 64]) -> None:
        i = pto.block_idx() * 8
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x[i : i + 8, :])
        isa.tstore(y[i : i + 8, :], t)

    x = data(64)
    y = np.zeros_like(x)
    unguarded[8](x, y, engine="jit")
    assert np.array_equal(x, y)
    assert counted.pop("_proved") == 1
    with pytest.raises(PtoError):
        unguarded[9](x, y, engine="jit")
    assert not counted["_proved"]
