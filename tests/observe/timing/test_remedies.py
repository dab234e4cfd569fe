"""What a report offers is what a person gets: each remedy against the program that takes it."""

from __future__ import annotations

from typing import Any

import pytest

import pto


@pto.kernel(profile="a2a3")
def exponential(
    x: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
    rows: int,
    columns: int,
    buffers: int,
    all: int,
) -> None:
    """Rows through one tile of the vector buffer, or through several in turn, by hand."""
    size = rows * columns * 4
    tiles = [pto.tile(rows, columns, pto.f32, address=k * size) for k in range(buffers)]
    out = pto.tile(rows, columns, pto.f32, address=buffers * size)
    for k in range(buffers):
        pto.set_flag("V", "MTE2", k)
    pto.set_flag("MTE3", "V", 0)
    for turn in pto.range(all // rows // buffers):
        for k, t in enumerate(tiles):
            i = (turn * buffers + k) * rows
            pto.wait_flag("V", "MTE2", k)
            pto.tload(t, x[i : i + rows, 0:columns])
            pto.set_flag("MTE2", "V", 0)
            pto.wait_flag("MTE2", "V", 0)
            pto.wait_flag("MTE3", "V", 0)
            pto.texp(out, t)
            pto.set_flag("V", "MTE2", k)
            pto.set_flag("V", "MTE3", 0)
            pto.wait_flag("V", "MTE3", 0)
            pto.tstore(y[i : i + rows, 0:columns], out)
            pto.set_flag("MTE3", "V", 0)
    for k in range(buffers):
        pto.wait_flag("V", "MTE2", k)
    pto.wait_flag("MTE3", "V", 0)


def timed(rows: int = 64, columns: int = 64, buffers: int = 1, all: int = 4096) -> Any:
    shape = (all, 256)
    return exponential.time(shape, shape, rows=rows, columns=columns, buffers=buffers, all=all)


def offered(found: Any, words: str) -> float:
    """The time with the remedy, as the report says."""
    (saved,) = [each.saves_us for each in found.remedies if words in each.change]
    return found.us - saved


def test_one_more_buffer():
    now, then = timed(), timed(buffers=2)
    assert then.us < 0.95 * now.us
    assert offered(now, "one more buffer for %t") == pytest.approx(then.us, rel=0.03)


def test_tiles_twice_as_large():
    now, then = timed(), timed(rows=128)
    assert then.us < 0.95 * now.us
    assert offered(now, "tiles twice as large") == pytest.approx(then.us, rel=0.05)


def test_longer_rows():
    now, then = timed(rows=64, columns=32), timed(rows=16, columns=128, all=1024)
    assert then.us < 0.95 * now.us
    assert offered(now, "rows of 512 bytes, not 128, in tload") == pytest.approx(then.us, rel=0.05)


def test_what_does_not_fit_is_not_offered():
    full = timed(rows=256, columns=96)  # 96 KB each, 192 KB of 256
    assert full.us > 0
    assert not [r for r in full.remedies if "large" in r.change or "buffer" in r.change]


def test_the_best_stands_first():
    saves = [each.saves_us for each in timed().remedies]
    assert len(saves) >= 3
    assert saves == sorted(saves, reverse=True)
