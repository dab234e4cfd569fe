"""Blocks on threads: the same result for any number of threads, and in order where blocks meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.run.jit.border import threads


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are used for the smallest block, not only where they are worth it."""
    for name in ("_BLOCK", "_LAUNCH", "_TRIAL"):
        monkeypatch.setattr(threads, name, 0.0)


@pto.kernel(profile="a5")
def double(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    pto.tload(t, x[i * 8 :, :])
    pto.tadd(t, t, t)
    pto.tstore(y[i * 8 :, :], t)


@pto.kernel(profile="a5")
def next_to_each_other(x: pto.Global[pto.f32]) -> None:
    """Every block reads what the block before it wrote."""
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    pto.tload(t, x[i * 8 :, :])
    pto.tadds(t, t, 1.0)
    pto.tstore(x[(i + 1) * 8 :, :], t)


@pto.kernel(profile="a5")
def one_place(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Every block writes the same rows: the last one is seen."""
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    pto.tload(t, x[i * 8 :, :])
    pto.tstore(y[:8, :], t)


def data(blocks: int) -> Any:
    return np.random.default_rng(1).standard_normal((blocks * 8, 64)).astype(np.float32)


@pytest.mark.parametrize("number", ["1", "2", "7"])
def test_independent_blocks(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = data(40)
    y = np.zeros_like(x)
    double[40](x, y, engine="jit")
    assert np.array_equal(y, x + x)


@pytest.mark.parametrize("number", ["1", "2", "7"])
def test_blocks_that_hand_on_data_run_in_their_order(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = np.zeros((33 * 8, 64), np.float32)
    next_to_each_other[32](x, engine="jit")
    assert x[::8, 0].tolist() == list(range(33))


@pytest.mark.parametrize("number", ["2", "7"])
def test_of_blocks_that_write_one_place_the_last_is_seen(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = data(24)
    y = np.zeros((8, 64), np.float32)
    one_place[24](x, y, engine="jit")
    assert np.array_equal(y, x[-8:])


@pytest.mark.parametrize("number", ["1", "4"])
def test_arrays_of_a_host_that_overlap(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """y begins one block behind x in the same memory: each block doubles what the last one made."""
    monkeypatch.setenv("PTO_THREADS", number)
    memory = np.ones((17 * 8, 64), np.float32)
    double[16](memory[:-8], memory[8:], engine="jit")
    assert memory[::8, 0].tolist() == [2.0**n for n in range(17)]


def test_a_block_that_fails_leaves_what_the_blocks_before_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, seen = data(4), []
    for number in ("1", "4"):
        monkeypatch.setenv("PTO_THREADS", number)
        y = np.zeros_like(x)
        with pytest.raises(PtoError) as error:
            double[6](x, y, engine="jit")  # blocks 4 and 5 have no rows
        seen.append((str(error.value), y))
    assert seen[0][0] == seen[1][0]
    assert np.array_equal(seen[0][1], seen[1][1])
    assert np.array_equal(seen[0][1], x + x)


def test_the_number_of_threads_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "many")
    with pytest.raises(PtoError, match="PTO-U091"):
        double[2](data(2), data(2), engine="jit")


@pytest.mark.parametrize("number", ["1", "3"])
def test_many_blocks_run_in_waves(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    monkeypatch.setattr(threads, "WAVE", 7)
    x = data(40)
    y = np.zeros_like(x)
    seen: list[tuple[int, int]] = []
    double[40](x, y, engine="jit", progress=lambda *done: seen.append(done))
    assert np.array_equal(y, x + x)
    assert seen == sorted(seen) and seen[-1] == (40, 40)
    z = np.zeros((41 * 8, 64), np.float32)
    next_to_each_other[40](z, engine="jit")  # a wave whose blocks meet runs in order
    assert z[::8, 0].tolist() == list(range(41))
