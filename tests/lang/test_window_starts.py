"""Starts and indices of windows that only the run knows: an error where they lie outside."""

from __future__ import annotations

import numpy as np
import pytest

import pto

F32 = np.float32
A = pto.Global[pto.f32, "m", "c"]
B = pto.Global[pto.f32, "m", "d"]
WINDOWS = {
    "steps": lambda y, r, k: y[1:, k::2],
    "steps after a stop": lambda y, r, k: y[1:, k : k + 4 : 2],
    "steps of rows": lambda y, r, k: y[r::2, 1:],
    "steps of a transpose": lambda y, r, k: y.T[k::2, 1:],
    "from the size": lambda y, r, k: y[1:, y.shape[1] + k - 7 :: 2],
    "window of a window": lambda y, r, k: y[1:, 1:][r:, k:],
    "index of a window": lambda y, r, k: y[1:3, 0:][r, 0:],
    "column of a window": lambda y, r, k: y[:, 1:][1, k:],
    "window of steps": lambda y, r, k: y[1:, 1::2][r:, k:],
}


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_start_outside_of_the_window_is_an_error(name: str, engine: str):
    """With 0 and 1 the kernel writes what NumPy writes; -1 is outside, as for plain slices."""
    window = WINDOWS[name]
    height = 8 if window(np.zeros((5, 7)), 0, 0).ndim == 2 else 1

    @pto.kernel(profile="a5")
    def ones(y: A, r: pto.i32, k: pto.i32):
        pto.store(window(y, r, k), pto.full(height, 8, 1.0, pto.f32))

    for r, k in ((0, 0), (1, 1), (0, 1), (1, 0)):
        y, expected = np.zeros((5, 7), F32), np.zeros((5, 7), F32)
        window(expected, r, k)[...] = 1
        ones(y, r, k, engine=engine, coverage=False)
        np.testing.assert_array_equal(y, expected)
    for r, k in ((-1, 0), (0, -1), (-1, -1)):
        used = np.zeros((5, 7))
        window(used, r, k)[...] = 1
        other = np.zeros((5, 7))
        window(other, 0, 0)[...] = 1
        if (used == other).all():
            continue  # the window does not use this number
        y = np.zeros((5, 7), F32)
        with pytest.raises(pto.PtoError, match="PTO-M006"):
            ones(y, r, k, engine=engine, coverage=False)
        answers = {a.question: a.verdict for _, a in ones.prove((5, 7), r, k)}
        assert answers["bounds"] != "proved"


def test_an_index_behind_the_window_is_an_error():
    @pto.kernel(profile="a5")
    def row(y: A, r: pto.i32):
        pto.store(y[1:3, 0:][r, 0:], pto.full(1, 8, 1.0, pto.f32))

    y = np.zeros((5, 7), F32)
    row(y, 1, coverage=False)
    assert y[2].all()
    assert y.sum() == 7
    with pytest.raises(pto.PtoError, match="PTO-M006"):
        row(y, 2, coverage=False)


@pytest.mark.parametrize("start", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("step", [2, 3])
def test_steps_from_a_number_of_the_run_are_those_of_numpy(start: int, step: int):
    @pto.kernel(profile="a5")
    def strided(x: A, y: B, k: pto.i32):
        pto.store(y[0:, 0:], pto.load(x[0:, k::step], 8, 8))

    x = np.arange(40, dtype=F32).reshape(5, 8)
    y = np.zeros((5, 8), F32)[:, : len(range(start, 8, step))].copy()
    strided(x, y, start, coverage=False)
    np.testing.assert_array_equal(y, x[:, start::step])
