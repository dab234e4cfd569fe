"""States of the L2 cache when a launch begins, and the times of launches in each."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from examples.timing.flash_attention import flash_attention, shapes
from examples.timing.operators import copy
from pto.core.errors import PtoError
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing import bench
from pto.observe.timing.cache import LINE, Cache

LINES = 1000  # the cache holds
MIB = 1 << 20
SMALL = np.empty((1, 64), np.float32)


def load(first: int, count: int) -> GlobalRegion:
    return GlobalRegion(first * LINE, 1, count * LINE, count * LINE, writes=False)


def store(first: int, count: int) -> GlobalRegion:
    return GlobalRegion(first * LINE, 1, count * LINE, count * LINE, writes=True)


def launches(state: str, *regions: GlobalRegion, times: int = 2) -> tuple[float, float, float]:
    """Lines read, written, and at the rate of new arrays, in the last of some equal launches."""
    cache = Cache(LINES * LINE, [(0, 10 * LINES * LINE)])
    moved = []
    for n in range(1 if state == "clean" else times):
        if n:
            cache.begin_again(state)  # type: ignore[arg-type]
        moved = [cache.transfer(region, [region.address]) for region in regions]
    return (
        sum(t.read for t in moved) / LINE,
        sum(t.written for t in moved) / LINE,
        sum(t.new for t in moved) / LINE,
    )


@pytest.mark.parametrize(
    ("state", "lines"), [("cold", (100, 0, 100)), ("warm", (0, 0, 0)), ("clean", (100, 0, 100))]
)
def test_inputs_that_fit_are_read_unless_the_launch_before_read_them(
    state: str, lines: tuple[float, ...]
) -> None:
    assert launches(state, load(0, 100), store(500, 100)) == pytest.approx(lines, abs=1)


@pytest.mark.parametrize(("state", "read"), [("cold", 100), ("warm", 0), ("clean", 100)])
def test_data_changed_in_place_is_new_in_each_cold_launch(state: str, read: float) -> None:
    assert launches(state, load(0, 100), store(0, 100))[0] == pytest.approx(read, abs=1)


def test_data_changed_in_place_is_written_back_in_the_long_run() -> None:
    """Every launch brings in 100 lines and changes all of them: as many leave, changed."""
    _, written, _ = launches("cold", load(0, 100), store(0, 100))
    assert written == pytest.approx(100, rel=0.15)


def test_a_clean_cache_writes_nothing_back_until_it_is_full() -> None:
    parts = [store(100 * n, 100) for n in range(30)]
    assert launches("clean", *parts[:5])[1] == pytest.approx(0, abs=100)
    assert launches("clean", *parts)[1] == pytest.approx(2000, rel=0.1)


def test_warm_launches_are_fastest_and_new_inputs_are_read_slower() -> None:
    shape = np.empty((1, 16 * MIB), np.uint8)
    cold, warm, clean = (
        copy.on("a5")[64].time(shape, shape, 16384, 16, device="950pr", cache=state)
        for state in ("cold", "warm", "clean")
    )
    assert warm.us < clean.us <= cold.us * 1.001
    assert warm.hbm_bytes < 0.1 * cold.hbm_bytes
    assert [t.cache for t in (cold, warm, clean)] == ["cold", "warm", "clean"]


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(PtoError, match="cold, warm, clean"):
        copy[1].time(SMALL, SMALL, 16, 4, cache="hot")  # type: ignore[arg-type]


def test_both_functions_of_a_pair_are_timed() -> None:
    """Their names are not those of halves of one function."""
    found = flash_attention.time(*shapes(128, 4096, 1), device="910b2")
    assert set(found.busy) == {"cube", "vector"}
    assert found.busy["vector"]["V"] > 0.5


def test_fixed_costs_depend_on_the_cores_of_a_launch() -> None:
    chip = copy[1].time(SMALL, SMALL, 16, 4, device="910b1")
    assert chip.us - chip.core_us == pytest.approx(2.2)
    mixed = flash_attention.time(*shapes(128, 1024, 1), device="910b1")
    assert mixed.us - mixed.core_us == pytest.approx(4.1)


def test_the_exported_names_of_states_are_those_of_the_model() -> None:
    assert pto.Timing.__dataclass_fields__["cache"].default == "cold"


@pto.kernel(profile="a2a3")
def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 64
    pto.store(y[i:, :], pto.load(x[i:, :], 64, 64) * 2.0)


def test_shapes_take_no_memory() -> None:
    """Two arrays of 25.6 GB each."""
    found = doubled[96].time((10**8, 64), (10**8, 64), device="910b1")
    few = doubled[96].time((96 * 64, 64), (96 * 64, 64), device="910b1")
    assert found.us == pytest.approx(few.us, rel=1e-6)


@pytest.mark.parametrize(("state", "is_new"), [("cold", True), ("warm", False), ("clean", True)])
def test_inputs_larger_than_the_cache_are_new_unless_the_launch_before_read_them(
    state: str, is_new: bool
) -> None:
    """They are read from memory in any case, at the rate of new arrays only if they are new."""
    read, _, new = launches(state, *(load(n, 100) for n in range(0, 5 * LINES, 100)))
    assert read > 4 * LINES
    assert new == pytest.approx(read if is_new else 0)


def test_a_warm_launch_does_not_wait_for_cold_memory() -> None:
    """Every byte is in the L2 cache: the first ones come as the later ones."""
    args = shapes(128, 1024, 1)
    cold, warm = (flash_attention.time(*args, cache=state) for state in ("cold", "warm"))
    waited = bench("910b1", "a2a3").chip.launches["mix"].cold_us
    assert warm.hbm_bytes < 1000
    assert cold.us - warm.us > 0.8 * waited
