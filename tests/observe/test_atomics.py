"""Writes that combine with global memory: several writers, and who reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

import pto
from pto.observe import sanitize


def _codes(kernel: Any, blocks: int = 2) -> set[str]:
    args = [np.ones((2, 64), np.float32), np.zeros((1, 64), np.float32)]
    args.append(np.zeros((2, 64), np.float32))
    found = sanitize(kernel.module(*args), args=args, blocks=blocks, profile="a5")
    return {d.code for d in found.findings}


def _added(meet: bool, second: str = "atomic_add", reader: int = 1) -> set[str]:
    """Both blocks combine their row with the sum; one of them reads it."""

    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], total: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        block = pto.get_block_idx()
        t, u = pto.tile(1, 64, pto.f32), pto.tile(1, 64, pto.f32)
        pto.tload(t, x[block : block + 1, :])
        with pto.If(block == 0):
            pto.tstore(total, t, atomicType="atomic_add")
        with pto.Else():
            pto.tstore(total, t, atomicType=second)
        if meet:
            pto.syncall()
        with pto.If(block == reader):
            pto.tload(u, total)
            pto.tstore(y[block : block + 1, :], u)

    return _codes(kernel)


def test_who_reads_a_sum_comes_after_all_who_added() -> None:
    """Block 1 has written last, itself: block 0 has too, and nothing orders that."""
    assert _added(meet=False) == {"PTO-R021"}
    assert _added(meet=False, reader=0) & {"PTO-R021", "PTO-R022"}
    assert _added(meet=True) == set()


def test_writes_that_combine_in_different_ways_need_order() -> None:
    assert _added(meet=True, second="atomic_max") == {"PTO-R023"}


def _scattered(word: str) -> set[str]:
    """Both blocks combine with the same elements, found by index."""

    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Global[pto.i32]) -> None:
        t, places = pto.tile(1, 64, pto.f32), pto.tile(1, 64, pto.i32)
        pto.tload(t, x[0:1, :])
        pto.tload(places, n)
        pto.mscatter(y, t, places, coalesce="elem", scatterAtomicOp=word)

    args = [np.ones((2, 64), np.float32), np.zeros((1, 64), np.float32)]
    args.append(np.arange(64, dtype=np.int32).reshape(1, 64) % 7)
    found = sanitize(kernel.module(*args), args=args, blocks=2, profile="a5")
    return {d.code for d in found.findings}


def test_scattered_sums_of_blocks_are_no_race() -> None:
    assert _scattered("add") == set()
    assert _scattered("max") == set()
    assert _scattered("none") == {"PTO-R023"}
