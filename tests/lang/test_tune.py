"""Tuning: configurations that do not count are named with their reason, the fastest wins."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError


@pto.kernel(profile="a2a3")
def scale(x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int) -> None:
    t = pto.tile(rows, 128, pto.f32)
    for i in pto.range(0, x.shape[0], rows):
        isa.tload(t, x[i : i + rows, :])
        isa.tmuls(t, t, 2.0)
        isa.tstore(y[i : i + rows, :], t)


@pto.kernel(profile="a2a3")
def wrong_at_32(x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int) -> None:
    i = pto.block_idx() * rows
    t = pto.tile(rows, 128, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tmuls(t, t, 3.0 if rows == 32 else 2.0)
    isa.tstore(y[i:, :], t)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.ones((512, 128), np.float32), np.zeros((512, 128), np.float32)


def test_large_tiles_win_and_too_large_ones_are_refused():
    found = pto.tune(scale, {"rows": [8, 64, 256, 4096]}, arrays())
    assert found.best == {"rows": 256}
    times = {t.config["rows"]: t for t in found.trials}
    assert times[8].us and times[64].us and times[8].us > times[64].us
    assert times[4096].us is None and "PTO-" in times[4096].refused
    assert "256" in str(found).splitlines()[0]


def test_one_that_computes_something_else_does_not_count():
    x = np.ones((64, 128), np.float32)
    found = pto.tune(wrong_at_32, [{"rows": 64}, {"rows": 32}], (x, np.zeros_like(x)))
    assert found.best == {"rows": 64}
    assert "other values" in found.trials[1].refused


def test_a_configuration_that_writes_a_part_of_the_result_does_not_count():
    """On one block 16 rows take less time than 64, and leave the other 48 as they were."""
    x = np.ones((64, 128), np.float32)
    arrays, space = (x, np.zeros_like(x)), [{"rows": 16}, {"rows": 64}]
    for args in (arrays, tuple(each.shape for each in arrays)):  # shapes alone are not run
        found = pto.tune(wrong_at_32, space, args, blocks=1)
        assert found.best == {"rows": 64}
        assert "6,144 of 8,192 elements" in found.trials[1].refused
        assert "PTO-U310" in found.trials[1].refused


def test_the_grid_follows_from_the_stores():
    """Four blocks of 16 rows, one block of 64."""
    x = np.ones((64, 128), np.float32)
    found = pto.tune(wrong_at_32, {"rows": [16, 64]}, (x, np.zeros_like(x)))
    times = {trial.config["rows"]: trial.us for trial in found.trials}
    for rows, us in times.items():
        assert us == wrong_at_32.time(x.shape, x.shape, rows, blocks=64 // rows).us
    tuned = pto.autotune({"rows": [16]})(wrong_at_32)
    y = np.zeros_like(x)
    tuned(x, y)
    assert (y == 2).all()


def test_arguments_stay_as_they_are():
    x, y = arrays()
    pto.tune(scale, {"rows": [64, 128]}, (x, y), processes=1)
    assert not y.any()


def test_a_tuned_kernel_keeps_its_choice():
    tuned = pto.autotune({"rows": [8, 256]})(scale)
    x, y = arrays()
    tuned(x, y)
    assert (y == 2).all()
    first = tuned.tuning(x, y)
    assert tuned.tuning(x, y) is first and first.best == {"rows": 256}


def test_nothing_to_try():
    with pytest.raises(PtoError, match="U270"):
        pto.tune(scale, [], arrays())
    with pytest.raises(PtoError, match="U271"):
        pto.tune(scale, {"rows": [100_000]}, arrays())
