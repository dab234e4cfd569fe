"""Unit flags order a product and the store of its sum, by the bytes of the accumulator."""

from __future__ import annotations

import pytest

import pto
from pto import isa
from pto.observe.timing import Timing

SIZE = 128


@pto.kernel(profile="a2a3")
def products(out: pto.Global[pto.f32], sums: int) -> None:
    """Six products, each stored; with `sums` 2 they have two accumulators in turn."""
    left = pto.tile(SIZE, SIZE, pto.f16, role="left", address=0)
    right = pto.tile(SIZE, SIZE, pto.f16, role="right", address=0)
    accs = [
        pto.tile(SIZE, SIZE, pto.f32, role="acc", address=n * SIZE * SIZE * 4) for n in range(2)
    ]
    for n in range(6):
        acc = accs[n % sums]
        isa.tmatmul(acc, left, right, accPhase="final")
        isa.tstore(out[n * SIZE : (n + 1) * SIZE, :], acc, stPhase="final")


def spans(timing: Timing, pipe: str) -> list[tuple[float, float]]:
    """When each instruction of a pipe starts and is done."""
    jobs = enumerate(timing.stream.jobs)
    mine = [n for n, job in jobs if timing.stream.pipes[job.pipe].name == pipe]
    return [(timing.times.start[n], timing.times.done[n]) for n in mine]


@pytest.mark.parametrize("sums", [1, 2])
def test_a_store_starts_after_the_product_that_it_stores(sums: int) -> None:
    timing = products.time((6 * SIZE, SIZE), sums)
    pairs = list(zip(spans(timing, "M"), spans(timing, "FIX"), strict=True))
    assert len(pairs) == 6
    assert all(store[0] >= product[1] for product, store in pairs)


def test_a_product_waits_for_the_store_of_its_own_accumulator_alone() -> None:
    for sums in (1, 2):
        timing = products.time((6 * SIZE, SIZE), sums)
        computed, stored = spans(timing, "M"), spans(timing, "FIX")
        for n in range(sums, 6):
            assert computed[n][0] >= stored[n - sums][1]
        overlaps = [computed[n + 1][0] < stored[n][1] for n in range(5)]
        assert overlaps == [sums == 2] * 5
