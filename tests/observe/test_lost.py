"""Two writes of one pipe to one place: a warning, or data that is gone."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.plan.sync import ordered
from pto.target.profile import profile

_PROGRAM = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !g, %z: !g) attributes {{pto.aicore}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %at = arith.constant {at} : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %at : i64 -> !p
    pto.mte_gm_ub %x, %a, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    {between}
    pto.mte_gm_ub %y, %b, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %{read}, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }}
}}
"""


_READ = """
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %a, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>"""


@pytest.mark.parametrize(
    ("at", "read", "same", "between", "expected"),
    [
        (0, "b", False, "", ["PTO-R006 error"]),  # one of two operands is gone
        (0, "b", True, "", ["PTO-R006 warning"]),  # loaded twice, the same
        (128, "b", False, "", ["PTO-R006 warning"]),  # the first reaches into the second
        (128, "a", False, "", ["PTO-M201 error", "PTO-R006 error"]),  # the first lost its end
        (128, "a", True, "", ["PTO-R006 warning"]),
        (128, "b", False, "pto.barrier #pto.pipe<PIPE_MTE2>", []),
        (128, "a", False, "pto.barrier #pto.pipe<PIPE_MTE2>", ["PTO-M201 error"]),
        (0, "b", False, "pto.barrier #pto.pipe<PIPE_MTE2>", []),  # loaded again
        (0, "a", False, "pto.barrier #pto.pipe<PIPE_MTE2>", ["PTO-M201 error"]),  # unread, and gone
        (0, "a", False, _READ, []),  # two names of one buffer, one after the other
        (256, "a", False, "", []),
        (256, "b", False, "", []),
    ],
)
def test_what_one_load_takes_from_another(
    at: int, read: str, same: bool, between: str, expected: list[str]
) -> None:
    x = np.zeros(64, np.float32) if same else np.arange(64, dtype=np.float32)
    args = [x, x + (not same) * 100, np.zeros(64, np.float32)]
    found = sanitize(parse(_PROGRAM.format(at=at, between=between, read=read)), args=args).findings
    assert sorted(f"{d.code} {d.severity}" for d in found) == expected


_TURNS = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %z: !g) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %step = arith.constant {step} : i64
    %far = arith.constant 1024 : i64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %out = pto.castptr %far : i64 -> !p
    scf.for %i = %c0 to %c2 step %c1 {{
      %n = arith.index_cast %i : index to i64
      %at = arith.muli %n, %step : i64
      %t = pto.castptr %at : i64 -> !p
      pto.mte_gm_ub %x, %t, %zero, %bytes nburst(%one, %bytes, %bytes)
        : !g, !p, i64, i64, i64, i64, i64
      pto.barrier #pto.pipe<PIPE_ALL>
    }}
    %first = pto.castptr %zero : i64 -> !p
    pto.mte_ub_gm %first, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }}
}}
"""


@pytest.mark.parametrize(("step", "expected"), [(64, ["PTO-M201"]), (256, [])])
def test_turns_of_a_loop_place_buffers_over_each_other(step: int, expected: list[str]) -> None:
    args = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
    found = sanitize(parse(_TURNS.format(step=step)), args=args).findings
    assert [d.code for d in found if d.severity == "error"] == expected


_BLOCKS = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %z: !g) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %two = arith.constant 2 : i16
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %at = arith.constant {at} : i64
    %bytes = arith.constant 2048 : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %at : i64 -> !p
    {before}
    pto.mte_gm_ub %x, %a, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    {behind}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %{read}, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }}
}}
"""
_SPREAD = """pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : !m
      %v = pto.vlds %{source}[%c0] : !p -> !pto.vreg<64xf32>
      pto.vsstb %v, %b, %two, %two, %all : !pto.vreg<64xf32>, !p, i16, i16, !m
    }}"""


@pytest.mark.parametrize(("at", "expected"), [(1024, ["PTO-M201"]), (2048, [])])
def test_blocks_at_a_stride_are_put_into_another_buffer(at: int, expected: list[str]) -> None:
    """Every second block of 32 bytes, over the second half of what was loaded, or behind it."""
    args = [np.arange(512, dtype=np.float32), np.zeros(512, np.float32)]
    text = _BLOCKS.format(at=at, before="", behind=_SPREAD.format(source="a"), read="a")
    found = sanitize(parse(text), args=args).findings
    assert [d.code for d in found] == expected


@pytest.mark.parametrize(("at", "expected"), [(1024, ["PTO-M201"]), (2048, [])])
def test_a_load_over_blocks_at_a_stride(at: int, expected: list[str]) -> None:
    """The other way round: the blocks are there first, and are read when they are gone."""
    first = f"{_SPREAD.format(source='a')}\n    pto.barrier #pto.pipe<PIPE_ALL>"
    args = [np.arange(512, dtype=np.float32) + 1, np.zeros(512, np.float32)]
    text = _BLOCKS.format(at=at, before=first, behind="", read="b")
    found = sanitize(parse(text), args=args).findings
    assert [d.code for d in found if d.code == "PTO-M201"] == expected


_STEPS = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %z: !g) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %f = arith.constant 1.0 : f32
    %h = arith.constant 2.0 : f32
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant 1024 : i64
    %at = arith.constant {at} : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %at : i64 -> !p
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : !m
      %v = pto.vbr %f : f32 -> !v
      %w = pto.vbr %h : f32 -> !v
      scf.for %i = %c0 to %c256 step %c64 {{
        pto.vsts %v, %a[%i], %all : !v, !p, !m
        pto.mem_bar "VST_VST"
        pto.vsts %w, %b[%i], %all : !v, !p, !m
        pto.mem_bar "VST_VST"
      }}
    }}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %b, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }}
}}
"""


@pytest.mark.parametrize(("at", "expected"), [(512, ["PTO-M201"]), (1024, [])])
def test_steps_of_two_buffers_fall_on_each_other(at: int, expected: list[str]) -> None:
    """Whole steps: each write has the bytes of one through the other pointer."""
    args = [np.zeros(64, np.float32), np.zeros(256, np.float32)]
    found = sanitize(parse(_STEPS.format(at=at)), args=args).findings
    assert [d.code for d in found if d.severity == "error"] == expected


# Two turns over one row: its first half gets a name of its own at its own place, and is used.
_NAMES = """
!row = !pto.tile_buf<vec, 1x128xf32>
!half = !pto.tile_buf<vec, 1x64xf32>
!v = !pto.tensor_view<?x?xf32>
!p = !pto.partition_tensor_view<1x128xf32>
!q = !pto.partition_tensor_view<1x64xf32>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %f = arith.constant 1.0 : f32
    %i0 = arith.constant 0 : i64
    %i512 = arith.constant 512 : i64
    %xv = pto.make_tensor_view %x, shape = [%c1, %c128], strides = [%c128, %c1] : !v
    %zv = pto.make_tensor_view %z, shape = [%c1, %c64], strides = [%c64, %c1] : !v
    %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c128] : !v -> !p
    %zp = pto.partition_view %zv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !v -> !q
    %row = pto.alloc_tile addr = %i0 : !row
    {before}
    scf.for %i = %c0 to %c2 step %c1 {{
      {inside}
      %half = pto.alloc_tile addr = %i0 : !half
      {taken}
      %out = pto.alloc_tile addr = %i512 : !half
      pto.tadds ins(%half, %f : !half, f32) outs(%out : !half)
      {after}
      pto.tstore ins(%out : !half) outs(%zp : !q)
    }}
    return
  }}
}}
"""
_LOAD = "pto.tload ins(%xp : !p) outs(%row : !row)"
_CUT = "pto.textract ins(%row, %c0, %c0 : !row, index, index) outs(%half : !half)"
_OVER = "pto.tadds ins(%half, %f : !half, f32) outs(%half : !half)"


@pytest.mark.parametrize(
    ("before", "inside", "taken", "after", "expected"),
    [
        (_LOAD, "", _CUT, "", []),  # the half is written as it was: the row is whole
        (_LOAD, "", _CUT, _OVER, ["PTO-M201"]),  # the next turn takes what is gone
        ("", _LOAD, "", _OVER, []),  # a row and a half of each turn
        (_LOAD, "", "", _OVER, []),  # the half alone is used, as a name
    ],
)
def test_a_part_of_a_tile_by_another_name(
    before: str, inside: str, taken: str, after: str, expected: list[str]
) -> None:
    text = _NAMES.format(before=before, inside=inside, taken=taken, after=after)
    args = [np.arange(128, dtype=np.float32) + 1, np.zeros(64, np.float32)]
    found = sanitize(ordered(parse(text), profile("a5")), args=args).findings
    assert [d.code for d in found if d.severity == "error"] == expected
