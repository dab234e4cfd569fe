"""Launches whose blocks are proved independent run on threads without a look at the blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pto
from examples.gallery.batched_gemm import batched_gemm
from pto.core.errors import PtoError
from pto.run.jit.runtime import threads

Floats = npt.NDArray[np.float32]
F = pto.Global[pto.f32]


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often blocks were shared out by a proof, and how often they were looked at. Threads are
    used for the smallest launch."""
    found = Counter[str]()
    for name in ("_BLOCK", "_LAUNCH", "_TRIAL", "_TURN"):
        monkeypatch.setattr(threads, name, 0.0)
    monkeypatch.setenv("PTO_THREADS", "5")

    def noted(owner: type, name: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def run(*given: Any) -> Any:
            found[name] += 1
            return work(*given)

        monkeypatch.setattr(owner, name, run)

    noted(threads._ParallelLaunch, "_proved")
    noted(threads.BlockWorker, "footprint")
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
def test_a_proof_takes_the_place_of_the_look(kernel: Any, counted: Counter[str]):
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


def test_blocks_that_overlap_are_looked_at_and_run_in_their_order(counted: Counter[str]):
    x = data(81)
    y = np.zeros_like(x)
    shifted[10](x, y, engine="jit")
    assert np.array_equal(y, x * 2)
    assert counted == {"footprint": 1}


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
        pto.tload(t, x[i : i + 8, :])
        pto.tstore(y[i : i + 8, :], t)

    x = data(64)
    y = np.zeros_like(x)
    unguarded[8](x, y, engine="jit")
    assert np.array_equal(x, y)
    assert counted.pop("_proved") == 1
    with pytest.raises(PtoError):
        unguarded[9](x, y, engine="jit")
    assert not counted["_proved"]
