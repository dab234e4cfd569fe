"""Queues in compiled code, their slots in global memory (a3) or at the consumer (a5): every split
and region, the same bytes in every slot as the reference, and nothing of it left to Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

_SLOT, _SLOTS, _TURNS = 2048, 8, 11  # more entries than slots


def _program(profile: str, to_cube: bool, split: int) -> str:
    """The producer pushes r x c of a tile `turns` times, the consumer tells what it has got."""
    gm = "gm_slot_buffer = %slots : !pto.ptr<f32>, " if profile == "a3" else ""
    acc = "acc, 16x32xf32, valid=?x?, blayout=col_major, slayout=row_major, fractal=1024"
    boxed = ", blayout=col_major, slayout=row_major" if profile == "a5" else ""
    given = "%slots: !pto.ptr<f32>, %x: !pto.ptr<f32>, %seen: !pto.ptr<f32>, %r: index, %c: index"
    begin = f"""
        %zero = arith.constant 0 : i32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        %turns = arith.constant {_TURNS} : index"""
    queue = f"id = 0, dir_mask = {2 if to_cube else 1}, slot_size = {_SLOT}, slot_num = {_SLOTS}"
    buffers = ("%zero", "%buf") if to_cube else ("%buf", "%zero")
    where = f"({gm}c2v_consumer_buf = {buffers[0]} : i32, v2c_consumer_buf = {buffers[1]} : i32)"
    own, other = ("cube", "vector") if to_cube else ("vector", "cube")
    location = "mat" if to_cube else "vec"
    mine = f"""
        %buf = pto.reserve_buffer {{name = "in", size = {_SLOT * _SLOTS},
          location = #pto.address_space<{location}>, auto = true}} -> i32"""
    theirs = f"""
        %buf = pto.import_reserved_buffer {{name = "in", peer_func = @{own}}} -> i32"""
    fill = f"""
        %v = pto.make_tensor_view %x, shape = [%r, %c], strides = [%c32, %c1] : !view
        %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%r, %c] : !view -> !part
        %u = pto.alloc_tile valid_row = %r valid_col = %c : !plain
        pto.tload ins(%p : !part) outs(%u : !plain)
        {"pto.tmov ins(%u : !plain) outs(%t : !pushed)" if boxed else ""}"""
    to, back = ("aic", "aiv") if to_cube else ("aiv", "aic")
    use = "%u : !plain" if to_cube and not boxed else "%t : !pushed"
    high, wide = 16 * (2 if to_cube and split == 1 else 1), 32 * (1 + (to_cube and split == 2))
    popped = f"mat, {high}x{wide}xf32, valid=?x?, blayout=col_major, slayout=row_major"
    popped = popped if to_cube else "vec, 16x32xf32, valid=?x?"
    init = {"cube": "aic", "vector": "aiv"}
    return f"""
    !view = !pto.tensor_view<?x?xf32>
    !part = !pto.partition_tensor_view<?x?xf32>
    !plain = !pto.tile_buf<vec, 16x32xf32, valid=?x?>
    !pushed = !pto.tile_buf<{f"vec, 16x32xf32, valid=?x?{boxed}" if to_cube else acc}>
    !popped = !pto.tile_buf<{popped}>
    module attributes {{pto.target_arch = "{profile}"}} {{
      func.func @{other}({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<{other}>}} {{
        {begin}{theirs}
        pto.{init[other]}_initialize_pipe {{{queue}}} {where}
        %t = pto.alloc_tile valid_row = %r valid_col = %c : !pushed
        {fill if to_cube else ""}
        scf.for %i = %c0 to %turns step %c1 {{
          pto.tpush_to_{to}({use}) {{split = {split}}}
        }}
        return
      }}
      func.func @{own}({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<{own}>}} {{
        {begin}{mine}
        pto.{init[own]}_initialize_pipe {{{queue}}} {where}
        scf.for %i = %c0 to %turns step %c1 {{
          %t = pto.tpop_from_{back} {{split = {split}}} -> !popped
          %rows, %cols = pto.get_validshape %t : !popped
          %rows64 = arith.index_cast %rows : index to i64
          %cols64 = arith.index_cast %cols : index to i64
          %high = arith.sitofp %rows64 : i64 to f32
          %wide = arith.sitofp %cols64 : i64 to f32
          pto.store_scalar %high, %seen[%c0] : !pto.ptr<f32, gm>, f32
          pto.store_scalar %wide, %seen[%c1] : !pto.ptr<f32, gm>, f32
          pto.tfree_from_{back} {{split = {split}}}
        }}
        return
      }}
    }}
    """


@pytest.mark.parametrize("region", [(16, 32), (11, 7), (1, 32), (10, 6)])
@pytest.mark.parametrize("split", [0, 1, 2])
@pytest.mark.parametrize("to_cube", [True, False])
def test_slots_in_global_memory_are_compiled(
    to_cube: bool, split: int, region: tuple[int, int]
) -> None:
    found: list[Any] = []
    for engine in ("jit", "reference"):
        slots = np.full(_SLOT * _SLOTS // 4 + 64, 7, np.float32)
        x, seen = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros(2, np.float32)
        text = _program("a3", to_cube, split)
        try:
            report = pto.launch(pto.parse(text), args=[slots, x, seen, *region], engine=engine)
        except pto.PtoError as error:  # two halves of all rows are more than a slot
            found.append(str(error))
            continue
        assert not report.left_out, dict(report.left_out)
        found.append((slots.tobytes(), seen.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_slots_in_global_memory_count_as_written(engine: str) -> None:
    slots, seen = np.zeros(_SLOT * _SLOTS // 4, np.float32), np.zeros(2, np.float32)
    slots.flags.writeable = False
    text = _program("a3", True, 0)
    args = [slots, np.ones((16, 32), np.float32), seen, 16, 32]
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(pto.parse(text), args=args, engine=engine)
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-M194" and found.loc is not None
    assert "initialize_pipe" in text.splitlines()[found.loc.line - 1]
    assert not slots.any()


@pytest.mark.parametrize("to_cube", [True, False])
def test_a_region_known_only_when_it_runs_goes_to_the_consumer(to_cube: bool) -> None:
    for engine in ("jit", "reference"):
        slots, seen = np.zeros(1, np.float32), np.zeros(2, np.float32)
        x = np.arange(512, dtype=np.float32).reshape(16, 32)
        text = _program("a5", to_cube, 0)
        report = pto.launch(pto.parse(text), args=[slots, x, seen, 11, 7], engine=engine)
        assert seen.tolist() == [11, 7]
        assert not report.left_out, dict(report.left_out)


_ECHO = """
        %sub = pto.get_subblock_idx
        %second = arith.index_cast %sub : i64 to index
        %first = arith.subi %c1, %second : index
        %own_rows = arith.muli %r, %first : index
        %own_cols = arith.muli %c, %first : index
        pto.set_validshape %u, %own_rows, %own_cols : !plain
        scf.for %i = %c0 to %turns step %c1 {
          pto.tpush"""


def test_a_second_sub_block_that_has_nothing_of_a_tile_does_not_tell_its_region() -> None:
    """As in kernels of PyPTO: both sub-blocks push the whole tile, the second with no element."""
    plain = "\n        scf.for %i = %c0 to %turns step %c1 {\n          pto.tpush"
    text = _program("a3", True, 0)
    assert text.count(plain) == 1
    for engine in ("jit", "reference"):
        slots, seen = np.full(_SLOT * _SLOTS // 4 + 64, 7, np.float32), np.zeros(2, np.float32)
        x = np.arange(512, dtype=np.float32).reshape(16, 32)
        program = pto.parse(text.replace(plain, _ECHO))
        report = pto.launch(program, args=[slots, x, seen, 11, 8], engine=engine)
        assert seen.tolist() == [11, 8]
        assert slots[: 11 * 8].tolist() == x[:11, :8].reshape(-1).tolist()
        assert not report.left_out, dict(report.left_out)


@pytest.mark.parametrize(("profile", "expected"), [("a3", []), ("a5", ["PTO-V215"])])
def test_a_tile_may_be_read_behind_its_free_where_it_is_a_copy(
    profile: str, expected: list[str]
) -> None:
    free = "pto.tfree_from_aic {split = 0}"
    read = f"{free}\n          %w = pto.alloc_tile valid_row = %r valid_col = %c : !popped\n"
    read += "          pto.tadd ins(%t, %t : !popped, !popped) outs(%w : !popped)"
    program = pto.parse(_program(profile, False, 0).replace(free, read))
    slots, seen = np.full(_SLOT * _SLOTS // 4 + 64, 7, np.float32), np.zeros(2, np.float32)
    found = pto.sanitize(program, args=[slots, np.zeros((16, 32), np.float32), seen, 11, 8])
    assert [d.code for d in found.findings if d.code == "PTO-V215"] == expected


_HALVES = """
!a = !pto.tile_buf<mat, 32x16xf16, blayout=col_major, slayout=row_major>
!b = !pto.tile_buf<mat, 16x32xf16, blayout=col_major, slayout=row_major>
!left = !pto.tile_buf<left, 32x16xf16, blayout=col_major, slayout=row_major>
!right = !pto.tile_buf<right, 16x32xf16, blayout=row_major, slayout=col_major>
!acc = !pto.tile_buf<acc, 32x32xf32, valid=?x?, blayout=col_major, slayout=row_major, fractal=1024>
!half = !pto.tile_buf<vec, {0}xf32, valid=?x?>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @cube(%x: !pto.ptr<f16>, %w: !pto.ptr<f16>, %y: !pto.ptr<f32>, %r: index, %c: index)
      attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %buf = pto.import_reserved_buffer {{name = "in", peer_func = @vector}} -> i32
    pto.aic_initialize_pipe {{id = 0, dir_mask = 1, slot_size = 2048, slot_num = 4}}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %zero : i32)
    %xv = pto.make_tensor_view %x, shape = [%c32, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf16>
    %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c32, %c16] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<?x?xf16>
    %wv = pto.make_tensor_view %w, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf16>
    %wp = pto.partition_view %wv, offsets = [%c0, %c0], sizes = [%c16, %c32] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<?x?xf16>
    %a = pto.alloc_tile : !a
    %b = pto.alloc_tile : !b
    %left = pto.alloc_tile : !left
    %right = pto.alloc_tile : !right
    %acc = pto.alloc_tile valid_row = %r valid_col = %c : !acc
    pto.tload ins(%xp : !pto.partition_tensor_view<?x?xf16>) outs(%a : !a)
    pto.tload ins(%wp : !pto.partition_tensor_view<?x?xf16>) outs(%b : !b)
    pto.tmov ins(%a : !a) outs(%left : !left)
    pto.tmov ins(%b : !b) outs(%right : !right)
    pto.tmatmul ins(%left, %right : !left, !right) outs(%acc : !acc)
    pto.tpush_to_aiv(%acc : !acc) {{split = {1}}}
    return
  }}
  func.func @vector(%x: !pto.ptr<f16>, %w: !pto.ptr<f16>, %y: !pto.ptr<f32>, %r: index, %c: index)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c1024 = arith.constant 1024 : index
    %buf = pto.reserve_buffer {{name = "in", size = 8192, location = #pto.address_space<vec>, auto = true}} -> i32
    pto.aiv_initialize_pipe {{id = 0, dir_mask = 1, slot_size = 2048, slot_num = 4}}
      (c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %zero : i32)
    %s = pto.get_subblock_idx
    %sub = arith.index_cast %s : i64 to index
    %at = arith.muli %sub, %c1024 : index
    %to = pto.addptr %y, %at : !pto.ptr<f32> -> !pto.ptr<f32>
    %t = pto.tpop_from_aic {{split = {1}}} -> !half
    %rows, %cols = pto.get_validshape %t : !half
    %v = pto.make_tensor_view %to, shape = [%rows, %cols], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
    pto.tstore ins(%t : !half) outs(%p : !pto.partition_tensor_view<?x?xf32>)
    pto.tfree_from_aic {{split = {1}}}
    return
  }}
}}
"""  # noqa: E501


@pytest.mark.parametrize("region", [(32, 32), (8, 32), (32, 12), (20, 24), (22, 20)])
@pytest.mark.parametrize(("split", "shape"), [(1, "16x32"), (2, "32x16")])
def test_halves_of_a_region_known_only_when_it_runs(
    split: int, shape: str, region: tuple[int, int]
) -> None:
    """Of 32 rows the second half begins with a box, of 8 it lies in the first one, of 20 neither:
    that one is Python's."""
    random = np.random.default_rng(3)
    x, w = (random.integers(-8, 8, n).astype(np.float16) for n in ((32, 16), (16, 32)))
    product = x.astype(np.float32) @ w.astype(np.float32)
    for engine in ("jit", "reference"):
        y = np.zeros((2, 32, 32), np.float32)
        text = _HALVES.format(shape, split)
        report = pto.launch(pto.parse(text), args=[x, w, y, *region], engine=engine)
        assert not report.left_out, dict(report.left_out)
        rows, cols = region
        first, second = np.array_split(product[:rows, :cols], 2, axis=split - 1)
        high, wide = first.shape
        assert (y[0, :high, :wide] == first).all() and (y[1, :high, :wide] == second).all()


def _pushes(x: pto.Global[pto.f32], seen: pto.Global[pto.f32]) -> None:
    """The cube: twice its block's number, in every element."""
    there = isa.import_reserved_buffer("in", "_looks_first")
    isa.aic_initialize_pipe(1, _SLOT, c2v_consumer_buf=there, v2c_consumer_buf=0)
    one, acc = (
        pto.tile(16, 16, pto.f32, role="mat"),
        pto.tile(16, 16, pto.f32, role="acc"),
    )
    left, right = (pto.tile(16, 16, pto.f32, role=role) for role in ("left", "right"))
    isa.tload(one, x[pto.block_idx() * 16 :, :])
    isa.tmov(left, one)
    isa.tmov(right, one)
    isa.tmatmul(acc, left, right)
    isa.tpush_to_aiv(acc, 0)


def _looks_first(x: pto.Global[pto.f32], seen: pto.Global[pto.f32]) -> None:
    """The vector side stores a tile that nobody has written, then writes to it, and to its slot."""
    own = isa.reserve_buffer("in", 8 * _SLOT, "vec", True)
    isa.aiv_initialize_pipe(1, _SLOT, c2v_consumer_buf=own, v2c_consumer_buf=0)
    t, row = pto.tile(16, 16, pto.f32), pto.block_idx() * 32
    if pto.subblock_idx() == 0:
        isa.tstore(seen[row : row + 16, :], t)
        got = isa.tpop_from_aic(0, to=pto.tile_type(16, 16, pto.f32))
        isa.tadd(t, got, got)
        isa.tadd(got, got, t)
        isa.tstore(seen[row + 16 : row + 32, :], got)
        isa.tfree_from_aic(0)


def test_a_block_begins_with_zeros_and_empty_queues_whatever_the_last_one_left() -> None:
    blocks = 5
    x = np.arange(1, blocks + 1, dtype=np.float32).repeat(16)[:, None] * np.ones(16, np.float32)
    seen = np.full((blocks * 32, 16), -1, np.float32)
    pto.pair(_pushes, _looks_first, profile="a5")[blocks](x, seen, engine="jit")
    found = seen.reshape(blocks, 2, 16, 16)
    assert (found[:, 0] == 0).all()
    wanted = (
        3 * 16 * np.arange(1, blocks + 1) ** 2
    )  # three times the product of a constant by itself
    assert (found[:, 1] == wanted[:, None, None]).all()
