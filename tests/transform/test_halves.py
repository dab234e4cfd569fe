"""Two vector sub-blocks: each has half of the rows where instructions treat rows alone."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import pto
from pto.ir.graph import Operation
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.types import TileBuf
from pto.observe.sanitize import sanitize
from pto.transform.cores import VECTOR
from tests.transform.both_cores import (
    CASES,
    FLOAT,
    HALF,
    NPUS,
    both,
    function_of,
    halves,
    has_equal_bits,
)

WHOLE = "one vector sub-block of two has all rows: "


def rows_of_tiles(function: Operation) -> set[int]:
    """The rows of the tiles of numbers that have several columns."""
    types = [op.results[0].type for op in function.walk() if op.row is ALLOC_TILE]
    tiles = [type.tile for type in types if isinstance(type, TileBuf)]
    return {t.rows for t in tiles if t.cols > 32 and t.dtype.itemsize > 1}


@pytest.mark.parametrize("case", ["mlp", "attention", "causal attention", "quantised"])
@pytest.mark.parametrize("name", NPUS)
def test_each_sub_block_has_half_of_the_rows(case: str, name: str):
    kernel, args, _, blocks, _ = CASES[case]()
    _, split = both(kernel, args, name)
    assert split.whole is None
    function = function_of(split, VECTOR)
    assert 16 in rows_of_tiles(function)
    assert 32 not in rows_of_tiles(function)
    splits = {str(op.attrs["split"]) for op in function.walk() if "split" in op.attrs}
    assert len(splits) == 1
    assert "1" in splits.pop()
    assert not any(WHOLE in note for note in kernel.on(name)[blocks].time(*args).notes)


@pto.kernel
def column_sums(a: HALF, b: HALF, c: FLOAT) -> None:
    t = pto.load(a, 32, 64) @ pto.load(b, 64, 64)
    pto.store(c[0:1, :], t.sum(axis=0))


@pto.kernel
def turned(a: HALF, b: HALF, c: FLOAT) -> None:
    t = pto.load(a, 32, 64) @ pto.load(b, 64, 64)
    pto.store(c[:, 0:32], t.T)


@pto.kernel
def in_place(a: HALF, b: HALF, c: FLOAT) -> None:
    t = pto.load(a, 32, 64) @ pto.load(b, 64, 64)
    pto.store(c[0:32, :], t + pto.load(c[0:32, :], 32, 64))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (column_sums, "does not treat rows alone"),
        (turned, "does not treat rows alone"),
        (in_place, "writes an array that the vector core also reads"),
    ],
)
@pytest.mark.parametrize("name", NPUS)
def test_the_report_says_what_needs_all_rows(kernel: pto.Kernel[...], reason: str, name: str):
    args = [*halves(6, (32, 64), (64, 64)), np.ones((64, 64), np.float32)]
    (note,) = [n for n in kernel.on(name).time(*args).notes if n.startswith(WHOLE)]
    assert reason in note
    module, split = both(kernel, args, name)
    assert has_equal_bits(module, split, args, 1)


@pytest.mark.parametrize("name", NPUS)
def test_rows_counted_by_the_run_stay_whole(name: str):
    kernel, args, *_ = CASES["quantised, ragged"]()
    _, split = both(kernel, args, name)
    assert split.whole is not None
    assert "counted when it runs" in split.whole


# ---- random kernels


def step(random: Random, tile: pto.Tile, x: pto.View, i: Any) -> pto.Tile:
    """An operation on a tile; most treat rows alone."""
    rows, cols = tile.shape
    match random.randrange(9):
        case 0:
            return pto.max(tile, 0.0)
        case 1:
            return tile - tile.max(axis=1)
        case 2:
            return pto.where(pto.tri(rows, cols, i) > 0.0, tile, 0.0)
        case 3:
            return tile * pto.abs(tile).max(axis=1)
        case 4:
            return tile * 0.25 + pto.load(x[i:, :], rows, cols).to(pto.f32)
        case 5:
            return tile + pto.load(x[0:1, :], 1, cols).to(pto.f32)
        case 6:
            return pto.where(tile > 0.5, tile, tile * 0.5)
        case 7:
            return tile / (1.0 + pto.abs(tile).sum(axis=1))
        case _ if random.random() < 0.3:
            return tile + tile.max(axis=0)
        case _:
            return pto.exp(pto.min(tile, 1.0))


def chain(random: Random, tile: pto.Tile, x: pto.View, i: Any) -> pto.Tile:
    for _ in range(random.randint(1, 5)):
        tile = step(random, tile, x, i)
    return tile


def mixed(random: Random) -> tuple[pto.Kernel[...], list[Any], int]:
    """A product and some steps, in many kernels then a second product and more steps."""
    m, n = 32 * random.randint(1, 2), 32 * random.randint(1, 2)
    twice, turns, seed = random.random() < 0.6, random.randint(1, 3), random.random()

    @pto.kernel
    def kernel(x: HALF, w: HALF, y: FLOAT) -> None:
        own = Random(seed)
        i = pto.block_idx() * m
        out = pto.zeros(m, n, pto.f32)
        for j in pto.range(0, turns * 32, 32):
            tile = pto.load(x[i:, j:], m, 32) @ pto.load(w[j:, 0:n], 32, n)
            tile = chain(own, tile, x[:, 0:n], i)
            if twice:
                factor = pto.load(w[0:n, 0:n], n, n)
                tile = pto.min(pto.max(tile, -1.0), 1.0).to(pto.f16) @ factor
                tile = chain(own, tile, x[:, 0:n], i)
            out = out * 0.5 + tile
        pto.store(y[i:, 0:n], out)

    blocks = random.randint(1, 2)
    args = halves(random.randrange(99), (m * blocks, 96), (96, 96))
    return kernel, [*args, np.zeros((m * blocks, n), np.float32)], blocks


@pytest.mark.parametrize("seed", range(16))
def test_random_kernels_of_both_cores(seed: int):
    random = Random(seed)
    kernel, args, blocks = mixed(random)
    for name in NPUS:
        module, split = both(kernel, args, name)
        assert has_equal_bits(module, split, args, blocks), (name, split.whole)
        if seed % 4 == 0:
            given = split.arguments(args, blocks)
            assert not sanitize(split.module, args=given, blocks=blocks, entry=split.entry).findings
