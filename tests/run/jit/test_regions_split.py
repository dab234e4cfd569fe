"""A kernel longer than one compiled region: the same bits, and places stay constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from bench.long_kernels import fourier
from pto import isa
from pto.run.jit import compiler
from pto.run.jit.runtime.region import CompiledRegion
from pto.run.jit.runtime.values import TileDesc, ViewDesc

F32 = pto.Global[pto.f32]


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[CompiledRegion]:
    """Compiled regions of at most 40 operations, and a list of those that are made."""
    monkeypatch.setattr(compiler, "_LONGEST", 40)
    found: list[CompiledRegion] = []
    real = CompiledRegion.__init__

    def made(self: CompiledRegion, *args: Any) -> None:
        real(self, *args)
        found.append(self)

    monkeypatch.setattr(CompiledRegion, "__init__", made)
    return found


def both(kernel: Any, arrays: Any) -> None:
    """Both engines give the same bits."""
    left, right = ([np.copy(a) for a in arrays] for _ in range(2))
    kernel.run(*left, engine="reference", coverage=False)
    kernel.run(*right, engine="jit", coverage=False)
    assert [a.tobytes() for a in left] == [a.tobytes() for a in right]


def places(regions: list[CompiledRegion]) -> int:
    return sum(isinstance(form, TileDesc | ViewDesc) for r in regions for _, form, _ in r.ins)


def test_a_transform_that_is_written_out_is_the_same_on_both_engines(regions: list[CompiledRegion]):
    rng = np.random.default_rng(3)
    arrays = rng.standard_normal((4, 8, 64)).astype(np.float32)
    both(fourier(8), arrays)
    assert len(regions) > 4
    assert places(regions) == 0, "tiles and views are named again, not passed"


def test_a_tile_that_three_regions_use_is_written_where_the_last_one_reads_it(
    regions: list[CompiledRegion],
):
    @pto.kernel
    def relay(x: F32, y: F32) -> None:
        a, b = pto.load(x, 16, 64), pto.load(x, 16, 64)
        for n in range(60):
            isa.tadds(b, b, float(n))
            if n % 20 == 7:
                isa.tadd(a, a, b)
        pto.store(y, a)

    x = np.random.default_rng(4).standard_normal((16, 64)).astype(np.float32)
    both(relay, [x, np.zeros_like(x)])
    assert len(regions) > 1 and places(regions) == 0


def test_a_tile_whose_region_is_set_is_passed(regions: list[CompiledRegion]):
    @pto.kernel
    def narrowed(x: F32, y: F32) -> None:
        rows = 16 - pto.block_idx()
        t = pto.tile(16, 64, pto.f32)
        isa.tload(t, x)
        for n in range(30):
            isa.tadds(t, t, float(n))
        pto.set_validshape(t, rows - 4, 64)
        for n in range(30):
            isa.tmuls(t, t, 1.0 + n)
        isa.tstore(y[0:12, :], t)

    x = np.random.default_rng(5).standard_normal((16, 64)).astype(np.float32)
    both(narrowed, [x, np.zeros_like(x)])
    assert places(regions) > 0
