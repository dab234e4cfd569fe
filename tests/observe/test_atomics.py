"""Writes that combine with global memory: several writers, and who reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.text.parser import parse
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
        block = isa.get_block_idx()
        t, u = pto.tile(1, 64, pto.f32), pto.tile(1, 64, pto.f32)
        isa.tload(t, x[block : block + 1, :])
        if block == 0:
            isa.tstore(total, t, atomicType="atomic_add")
        else:
            isa.tstore(total, t, atomicType=second)
        if meet:
            isa.syncall()
        if block == reader:
            isa.tload(u, total)
            isa.tstore(y[block : block + 1, :], u)

    return _codes(kernel)


def test_who_reads_a_sum_comes_after_all_who_added() -> None:
    """Block 1 has written last, itself: block 0 has too, and nothing orders that."""
    assert _added(meet=False) == {"PTO-R021"}
    assert _added(meet=False, reader=0) & {"PTO-R021", "PTO-R022"}
    assert _added(meet=True) == set()


def test_writes_that_combine_in_different_ways_need_order() -> None:
    assert _added(meet=True, second="atomic_max") == {"PTO-R023"}


@pytest.mark.parametrize("meet", [True, False])
def test_a_sum_begins_behind_its_first_value(meet: bool) -> None:
    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], total: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x[0:1, :])
        if isa.get_block_idx() == 0:
            isa.tstore(total, t)
        if meet:
            isa.syncall()
        isa.tstore(total, t, atomicType="atomic_add")

    assert _codes(kernel, blocks=3) == (set() if meet else {"PTO-R023"})


def _scattered(word: str) -> set[str]:
    """Both blocks combine with the same elements, found by index."""

    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Global[pto.i32]) -> None:
        t, places = pto.tile(1, 64, pto.f32), pto.tile(1, 64, pto.i32)
        isa.tload(t, x[0:1, :])
        isa.tload(places, n)
        isa.mscatter(y, t, places, coalesce="elem", scatterAtomicOp=word)

    args = [np.ones((2, 64), np.float32), np.zeros((1, 64), np.float32)]
    args.append(np.arange(64, dtype=np.int32).reshape(1, 64) % 7)
    found = sanitize(kernel.module(*args), args=args, blocks=2, profile="a5")
    return {d.code for d in found.findings}


def test_scattered_sums_of_blocks_are_no_race() -> None:
    assert _scattered("add") == set()
    assert _scattered("max") == set()
    assert _scattered("none") == {"PTO-R023"}


_BOTH_SIDES = """
!mat = !pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 16x16xf16, blayout=row_major, slayout=row_major>
!right = !pto.tile_buf<right, 16x16xf16, blayout=row_major, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
!vec = !pto.tile_buf<vec, 16x16xf32>
!in = !pto.tensor_view<16x16xf16>
!out = !pto.tensor_view<16x16xf32>
module attributes {{pto.target_arch = "a3"}} {{
  func.func @kernel(%x: !pto.ptr<f16>, %total: !pto.ptr<f32>, %y: !pto.ptr<f32>)
      attributes {{pto.aicore}} {{
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %at = arith.constant 4096 : i64
    %sum = pto.make_tensor_view %total, shape = [%c16, %c16], strides = [%c16, %c1] : !out
    pto.section.cube {{
      %from = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : !in
      %l1 = pto.alloc_tile addr = %zero : !mat
      %a = pto.alloc_tile addr = %zero : !left
      %b = pto.alloc_tile addr = %zero : !right
      %c = pto.alloc_tile addr = %zero : !acc
      pto.tload ins(%from : !in) outs(%l1 : !mat)
      pto.barrier #pto.pipe<PIPE_ALL>
      pto.tmov ins(%l1 : !mat) outs(%a : !left)
      pto.tmov ins(%l1 : !mat) outs(%b : !right)
      pto.barrier #pto.pipe<PIPE_ALL>
      pto.tmatmul ins(%a, %b : !left, !right) outs(%c : !acc)
      pto.barrier #pto.pipe<PIPE_ALL>
      pto.tstore ins(%c : !acc) outs(%sum : !out) {{atomicType = #pto<atomic_type {fix}>}}
      {tell}
    }}
    pto.section.vector {{
      %to = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !out
      %sub = pto.get_subblock_idx
      %is_first = arith.cmpi eq, %sub, %zero : i64
      %t = pto.alloc_tile addr = %zero : !vec
      %u = pto.alloc_tile addr = %at : !vec
      scf.if %is_first {{
        pto.texpands ins(%one : f32) outs(%t : !vec)
        pto.barrier #pto.pipe<PIPE_ALL>
        pto.tstore ins(%t : !vec) outs(%sum : !out) {{atomicType = #pto<atomic_type atomic_add>}}
        pto.barrier #pto.pipe<PIPE_ALL>
        {hear}
        pto.tload ins(%sum : !out) outs(%u : !vec)
        pto.barrier #pto.pipe<PIPE_ALL>
        pto.tstore ins(%u : !vec) outs(%to : !out)
      }} else {{
        {hear}
      }}
    }}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("fix", "waits", "codes"),
    [
        ("atomic_add", True, set[str]()),
        ("atomic_add", False, {"PTO-R011"}),  # FIX has added too, and nothing orders that
        ("atomic_max", True, {"PTO-R013"}),
    ],
)
def test_both_sides_of_a_core_add_to_one_place(fix: str, waits: bool, codes: set[str]) -> None:
    """FIX of the cube and MTE3 of the first vector sub-block, which then reads the sum."""
    tell = "pto.sync.set <PIPE_FIX>, 1 {ffts_mode = 2 : i32}" if waits else ""
    hear = "pto.sync.wait <PIPE_MTE2>, 1" if waits else ""
    args: list[Any] = [np.ones((16, 16), np.float16)]
    args += [np.zeros((16, 16), np.float32) for _ in range(2)]
    module = parse(_BOTH_SIDES.format(fix=fix, tell=tell, hear=hear))
    found = sanitize(module, args=args, check=False)
    assert {d.code for d in found.findings if d.severity == "error"} == codes
