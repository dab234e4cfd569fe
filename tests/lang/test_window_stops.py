"""A store writes nothing outside of its slices, whatever numbers the run gives to their ends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError

F32 = pto.Global[pto.f32]
NAMED = pto.Global[pto.f32, "n"]
K = pto.Scalar[pto.i32]
ENGINES = ("reference", "jit")
Window = Callable[[Any, Any], Any]

# Slices of twelve elements that NumPy and a kernel take alike. The tile has seven elements.
WINDOWS: dict[str, Window] = {
    "start and stop": lambda y, k: y[k : 2 * k + 2],
    "stop": lambda y, k: y[2:k],
    "start": lambda y, k: y[k:9],
    "multiple of eight": lambda y, k: y[4 : 8 * k],
    "of a window": lambda y, k: y[2:6][k:],
    "whole tiles of a window": lambda y, k: y[0:8][8 * k :],
    "window in an open window": lambda y, k: y[k:][1:4],
    "beyond the end": lambda y, k: y[k : k + 50],
}


def _store(window: Window, annotation: Any, explicit: bool, whole: bool) -> Any:
    """A kernel that stores x to a window: a tile with 7 valid elements, which `whole` says that
    Python knows, else the run."""

    @pto.kernel(profile="a5")
    def kernel(x: F32, y: annotation, k: K, size: K) -> None:
        t = pto.load(x[0:7], 8) if whole else pto.load(x[0:size], 8)
        if explicit:
            isa.tstore(window(y, k), t)
        else:
            pto.store(window(y, k), t)

    return kernel


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_store_stays_inside_of_its_slices(
    name: str, explicit: bool, whole: bool, named: bool
) -> None:
    """As many elements as both have, or an error; `isa.tstore` does not shorten a tile."""
    window, x = WINDOWS[name], np.arange(1, 8, dtype=np.float32)
    kernel, written = _store(window, NAMED if named else F32, explicit, whole), 0
    for k in range(5):
        for engine in ENGINES:
            y, expected = np.zeros(12, np.float32), np.zeros(12, np.float32)
            part = window(expected, k)
            part[:7] = x[: part.size]
            try:
                kernel(x, y, k, 7, engine=engine, coverage=False)
            except PtoError as error:
                assert explicit or (whole and "S062" in str(error))
                assert not y.any()
                continue
            assert y.tolist() == expected.tolist(), (k, engine)
            written += part.size > 0
    assert written or explicit or whole


def test_a_store_of_rows_and_columns_stays_inside_of_its_slices() -> None:
    @pto.kernel(profile="a5")
    def block(x: F32, y: F32, k: K, m: K) -> None:
        pto.store(y[m : m + k, 0:k], pto.load(x[0:m, :], 4, 8))

    @pto.kernel(profile="a5")
    def turned(x: F32, y: F32, k: K, m: K) -> None:
        pto.store(y[0:k, m : m + k].T, pto.load(x[0:m, :], 4, 8))

    @pto.kernel(profile="a5")
    def added(x: F32, y: F32, k: K, m: K) -> None:
        pto.store(y[m : m + k, 0:k], pto.load(x[0:m, :], 4, 8), atomic="add")

    x = np.arange(1, 21, dtype=np.float32).reshape(4, 5)
    for kernel in (block, turned, added):
        for k, m in [(0, 2), (1, 1), (2, 3), (3, 2), (4, 2)]:
            for engine in ENGINES:
                y, expected = np.zeros((6, 6), np.float32), np.zeros((6, 6), np.float32)
                part = expected[0:k, m : m + k].T if kernel is turned else expected[m : m + k, 0:k]
                rows, cols = min(part.shape[0], m), min(part.shape[1], 5)
                part[:rows, :cols] = x[:rows, :cols]
                kernel(x, y, k, m, engine=engine, coverage=False)
                assert y.tolist() == expected.tolist(), (kernel.name, k, m, engine)


INDICES: dict[str, Window] = {
    "index": lambda y, k: y.reshape(2, 6)[0, 2],
    "index of the run": lambda y, k: y.reshape(2, 6)[0, k],
    "element": lambda y, k: y[k],
    "slice of four": lambda y, k: y[k : k + 4],
    "slice of four with a tail": lambda y, k: y[k : k + 4][1:],
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("explicit", [False, True])
def test_a_tile_that_is_known_to_be_larger_than_its_window_is_refused(
    name: str, explicit: bool
) -> None:
    kernel, x = _store(INDICES[name], F32, explicit, True), np.ones(7, np.float32)
    with pytest.raises(PtoError, match=r"PTO-S062|PTO-S170"):
        kernel(x, np.zeros(12, np.float32), 2, 7)


def test_a_tile_that_is_smaller_than_its_slice_is_refused_in_a_load() -> None:
    """x[k : k + 8] has 8 elements wherever it begins, as x[0:8] has."""

    @pto.kernel(profile="a5")
    def load(x: F32, y: F32, k: K) -> None:
        pto.store(y[0:4], pto.load(x[k : k + 8], 4))

    with pytest.raises(PtoError, match="PTO-U080"):
        load(np.ones(12, np.float32), np.zeros(12, np.float32), 2)


def test_a_load_stays_inside_of_its_slices() -> None:
    @pto.kernel(profile="a5")
    def load(x: F32, y: F32, k: K) -> None:
        pto.store(y[0:8], pto.load(x[0:16][8 * k :], 8))

    x = np.arange(1, 33, dtype=np.float32)
    for k in (0, 1, 2):
        for engine in ENGINES:
            y, expected = np.zeros(8, np.float32), np.zeros(8, np.float32)
            part = x[0:16][8 * k :][:8]
            expected[: part.size] = part
            load(x, y, k, engine=engine, coverage=False)
            assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("stop", ["the end", "before its start", "at its start"])
def test_a_window_that_is_always_empty_is_an_error(stop: str) -> None:
    @pto.kernel(profile="a5")
    def kernel(x: NAMED, y: F32, k: K) -> None:
        n = x.shape[0]
        ends = {"the end": x[n:], "before its start": x[k : k - 1], "at its start": x[k:k]}
        pto.store(y[0:4], pto.load(ends[stop], 4))

    with pytest.raises(PtoError, match="PTO-S201"):
        kernel(np.ones(8, np.float32), np.zeros(8, np.float32), 2)
