"""Fused loops keep the order of reads and writes where views or versions of a tile meet.

Expectations are NumPy's, written here.
"""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa
from pto.run.jit.emit.tile import steps, strips
from tests.run.jit.test_fusion import agree, forwards, normal

__all__ = ["forwards"]


def test_rows_that_are_written_further_apart() -> None:
    """Both views begin at one address; row 1 of the result is row 2 of the source."""

    @pto.kernel(profile="a5")
    def spread(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
        isa.tload(t, x[0:16, :])
        isa.tadds(u, t, 1.0)
        isa.tstore(y[0:16, 0:64], u)

    memory = normal(32, 64)
    want = memory[:16] + np.float32(1)
    spread(memory, memory.reshape(16, 128), engine="jit")
    assert np.array_equal(memory.reshape(16, 128)[:, :64], want)


def test_what_was_stored_is_loaded_by_another_name() -> None:
    """The same elements of one array that is two arguments."""

    @pto.kernel(profile="a5")
    def stored(x: pto.Global[pto.f32], y: pto.Global[pto.f32], w: pto.Global[pto.f32]) -> None:
        t, u = pto.tile(8, 64, pto.f32), pto.tile(8, 64, pto.f32)
        isa.tload(t, x)
        isa.tadds(t, t, 1.0)
        isa.tstore(y, t)
        isa.tload(u, w)
        isa.tmuls(u, u, 2.0)
        isa.tstore(x, u)

    x, y = normal(8, 64), np.zeros((8, 64), np.float32)
    want = (x + np.float32(1)) * np.float32(2)
    stored(x, y, y, engine="jit")
    assert np.array_equal(x, want)


def test_rows_that_are_stored_before_their_old_values_are_used() -> None:
    """The second pass needs what the first one has loaded and overwritten."""

    @pto.kernel(profile="a5")
    def moved(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x[:, :], 16, 192)
        pto.store(x[:, :], t + 1.0)
        pto.store(y[:, :], t - t.max(axis=1))

    x = normal(16, 192)
    agree(moved, x, np.zeros_like(x), fused=[6])


def test_stores_past_the_cache_of_rows_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are whole lines, but only the first begins at one: an aligned store would crash."""
    for module in (steps, strips):
        monkeypatch.setattr(module, "FAR", 0)

    @pto.kernel(profile="a5")
    def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x[:, :], 8, 160)
        pto.store(y[0:8, 0:160], t + t)

    x, room = normal(8, 160), np.zeros(8 * 164 + 16, np.float32)
    begin = -room.ctypes.data % 64 // 4
    y = room[begin : begin + 8 * 164].reshape(8, 164)
    doubled.run(x, y, engine="jit", coverage=False)
    assert np.array_equal(y[:, :160], x + x) and not y[:, 160:].any()


def test_a_source_that_was_overwritten_is_not_made_again() -> None:
    """The second pass uses x + 1, which was made of x, and 3 x, which is in the tile of x now."""

    @pto.kernel(profile="a5")
    def both_of(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t, u, w = (pto.tile(16, 192, pto.f32) for _ in range(3))
        greatest = pto.tile(16, 1, pto.f32, layout="DN")
        isa.tload(t, x)
        isa.tadds(u, t, 1.0)
        isa.tmuls(t, t, 3.0)
        isa.trowmax(greatest, u, w)
        isa.trowexpandsub(w, u, greatest)
        isa.tadd(w, w, t)
        isa.tstore(y, w)

    x = normal(16, 192)
    y, more = np.zeros_like(x), x + np.float32(1)
    report = both_of.run(x, y, engine="jit")
    assert [len(group) for group in report.fused] == [7]
    assert np.array_equal(y, more - more.max(axis=1, keepdims=True) + x * np.float32(3))
