"""Cycles of tile operations that headers carry out row by row, by published figures for 910B."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa
from pto.observe import timing


def cycles(op: str, src: str, dst: str, attrs: str = "") -> float:
    """How long one operation keeps the vector unit."""
    text = f"""
    module attributes {{pto.target_arch = "a2a3"}} {{
      func.func @k() attributes {{pto.entry}} {{
        %zero = arith.constant 0 : i64
        %far = arith.constant 98304 : i64
        %a = pto.alloc_tile addr = %zero : !pto.tile_buf<vec, {src}>
        %b = pto.alloc_tile addr = %far : !pto.tile_buf<vec, {dst}>
        pto.{op} ins(%a {attrs}: !pto.tile_buf<vec, {src}>) outs(%b : !pto.tile_buf<vec, {dst}>)
        return
      }}
    }}
    """
    found = timing.time(pto.parse(text), device="910b1")
    assert found.times is not None
    work = [n for n, job in enumerate(found.stream.jobs) if job.op.name == f"pto.{op}"]
    return found.times.free[work[0]] - found.times.start[work[0]]


@pytest.mark.parametrize(
    ("op", "src", "dst", "published"),
    [
        # tests/costmodel/st of pto-isa, "profiling"
        ("trowexpand", "64x1xf32, blayout=col_major", "64x64xf32", 933),
        ("trowexpand", "64x1xf16, blayout=col_major", "64x64xf16", 933),
        # its fitted table: rows * cols * slope + bias
        ("tcolmax", "64x64xf32", "1x64xf32", 64 * 64 * 0.2734 + 17),
        ("tcolmax", "32x128xf16", "1x128xf16", 32 * 128 * 0.1367 + 17),
        ("tcolsum", "64x64xf32", "1x64xf32", 64 * 64 * 0.3047 + 15),
    ],
)
def test_published_cycles(op: str, src: str, dst: str, published: float) -> None:
    assert cycles(op, src, dst) == pytest.approx(published, rel=0.1)


def test_a_conversion_of_one_long_row_is_one_instruction() -> None:
    """Flash attention of pto-isa reshapes its tile for that: "to keep the cast fast"."""
    rows = cycles("tcvt", "64x128xf32", "64x128xf16", "{rmode = #pto<round_mode RINT>} ")
    whole = cycles("tcvt", "1x8192xf32", "1x8192xf16", "{rmode = #pto<round_mode RINT>} ")
    assert rows > 2 * whole


def test_a_block_in_each_row_takes_one_broadcast() -> None:
    """`vbrcb` fills eight rows of 32 bytes at a time."""
    block = cycles("trowexpand", "64x1xf32, blayout=col_major", "64x8xf32")
    assert block < cycles("trowexpand", "64x1xf32, blayout=col_major", "64x16xf32") / 5


@pto.kernel
def gathers(x: pto.Global[pto.f32], places: pto.Global[pto.i32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(x.shape[0], 64, pto.f32)
    isa.tload(t, x[:, :])
    pto.store(y[:, :], pto.take(t, pto.load(places[:, :], 1, 256), axis=None))


def test_a_gather_takes_as_long_as_its_indices() -> None:
    """TGather.hpp: one vgather for each line of the indices; the size of src plays no part."""

    def vector_us(rows: int) -> float:
        arrays = np.zeros((rows, 64), np.float32), np.zeros((1, 256), np.int32)
        timed = gathers.on("a2a3").time(*arrays, np.zeros((1, 256), np.float32), device="910b1")
        return timed.busy["vector"]["V"] * timed.core_us

    assert vector_us(256) == pytest.approx(vector_us(4), abs=0.05)  # 1.8 if src were counted
