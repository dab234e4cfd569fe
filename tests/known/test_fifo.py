"""Queues between the cube and the vector side: what arrives where, and which bytes stay."""

# ruff: noqa: E501  (lines of programs)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.trio import FILL, Trio

ACC = "acc, 32x64xf32, blayout=col_major, slayout=row_major, fractal=1024"
ACC_PART = "acc, 32x64xf32, valid=?x?, blayout=col_major, slayout=row_major, fractal=1024"
STAY = np.full(4, FILL, np.uint8).view(np.float32)[0]


def numbers(rows: int, cols: int, start: int = 0) -> np.ndarray[Any, Any]:
    return np.arange(start, start + rows * cols, dtype=np.float32).reshape(rows, cols)


def local_queue(mask: int, size: int, slots: int = 8) -> str:
    """Slots from byte 0 of the consumer's buffer on."""
    both = ", %zero : i32" if mask == 3 else ""
    return (
        "%zero = arith.constant 0 : i32\n"
        f"%q = pto.initialize_l2l_pipe {{dir_mask = {mask}, slot_size = {size}, "
        f"slot_num = {slots}, flag_base = 0}}(%zero : i32{both}) -> !pto.pipe\n"
    )


def global_queue(mask: int, size: int, slots: int = 8, local_slots: int = 8) -> str:
    both = ", %zero : i32" if mask == 3 else ""
    return (
        "%zero = arith.constant 0 : i32\n"
        f"%q = pto.initialize_l2g2l_pipe {{dir_mask = {mask}, slot_size = {size}, "
        f"slot_num = {slots}, local_slot_num = {local_slots}, flag_base = 0}}"
        f"(%gm : !pto.ptr<f32>, %zero : i32{both}) -> !pto.pipe\n"
    )


# ---- cube to vector, slots in UB


@pytest.mark.parametrize(
    ("split", "shape", "parts"),
    [
        (0, (32, 64), {"vector0": np.s_[:, :]}),
        (1, (16, 64), {"vector0": np.s_[:16], "vector1": np.s_[16:]}),
        (2, (32, 32), {"vector0": np.s_[:, :32], "vector1": np.s_[:, 32:]}),
    ],
)
def test_an_accumulator_lies_row_major_in_the_slot_of_each_sub_block(
    split: int, shape: tuple[int, int], parts: dict[str, Any]
) -> None:
    trio = Trio("a5")
    data = numbers(32, 64)
    trio.tile("cube", "t", ACC, data)
    push = f"pto.tpush(%t, %q : {{t}}, !pto.pipe) {{split = {split}}}\n"
    trio.run(cube=local_queue(1, 8192) + push + push)
    for agent in ("vector0", "vector1"):
        for slot in (0, 1):
            found = trio.local(agent, Space.UB, slot * 8192, shape[0] * shape[1])
            if agent in parts:
                np.testing.assert_array_equal(found.reshape(shape), data[parts[agent]])
            else:
                assert (found.view(np.uint8) == FILL).all()
        assert (trio.local(agent, Space.UB, 16384, 64).view(np.uint8) == FILL).all()


@pytest.mark.parametrize("split", [0, 1, 2])
def test_only_the_valid_region_is_pushed(split: int) -> None:
    trio = Trio("a5")
    data = numbers(32, 64)
    trio.tile("cube", "t", ACC_PART, data, valid=(10, 48))
    push = f"pto.tpush(%t, %q : {{t}}, !pto.pipe) {{split = {split}}}"
    trio.run(cube=local_queue(1, 8192) + push)
    high, wide = (16 if split == 1 else 32), (32 if split == 2 else 64)
    rows, cols = (5 if split == 1 else 10), (24 if split == 2 else 48)
    slot = trio.local("vector0", Space.UB, 0, high * wide).reshape(high, wide)
    want = np.full((high, wide), STAY)
    want[:rows, :cols] = data[:rows, :cols]
    np.testing.assert_array_equal(slot.view(np.uint32), want.view(np.uint32))
    if split:
        other = trio.local("vector1", Space.UB, 0, high * wide).reshape(high, wide)
        begin = np.s_[5:10, :48] if split == 1 else np.s_[:10, 24:48]
        np.testing.assert_array_equal(other[:rows, :cols], data[begin])
        assert (other[rows:].view(np.uint8) == FILL).all()


def test_a_popped_tile_is_its_slot_until_it_is_given_back() -> None:
    """Nothing is copied: what the consumer writes into the tile it writes into the slot."""
    trio = Trio("a5", vectors=1)
    trio.tile("cube", "t", ACC, numbers(32, 64))
    names = """
    %one = arith.constant 1.0 : f32
    %p = pto.declare_tile -> !pto.tile_buf<vec, 32x64xf32>
    """
    pop = """
    pto.tpop(%p, %q : !pto.tile_buf<vec, 32x64xf32>, !pto.pipe) {split = 0}
    pto.tadds ins(%p, %one : !pto.tile_buf<vec, 32x64xf32>, f32) outs(%p : !pto.tile_buf<vec, 32x64xf32>)
    pto.tfree(%q : !pto.pipe) {split = 0}
    """
    push = "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}\n"
    trio.run(cube=local_queue(1, 8192) + 2 * push, vector0=local_queue(1, 8192) + names + 2 * pop)
    for slot in (0, 1):
        found = trio.local("vector0", Space.UB, slot * 8192, 32 * 64).reshape(32, 64)
        np.testing.assert_array_equal(found, numbers(32, 64) + 1)


# ---- vector to cube, slots in L1


def boxes(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NZ of f32 by hand: boxes of 16 rows by 8 columns, column of boxes after column of boxes."""
    rows, cols = matrix.shape
    return matrix.reshape(rows // 16, 16, cols // 8, 8).transpose(2, 0, 1, 3).reshape(-1)


@pytest.mark.parametrize("split", [1, 2])
def test_halves_of_both_sub_blocks_make_one_boxed_tile(split: int) -> None:
    trio = Trio("a5")
    whole = numbers(32, 16) if split == 1 else numbers(16, 32)
    halves = np.split(whole, 2, axis=split - 1)
    nz = "vec, 16x16xf32, blayout=col_major, slayout=row_major"
    for sub, half in enumerate(halves):
        trio.tile(f"vector{sub}", "t", nz, half)
    body = local_queue(2, 2048) + f"pto.tpush(%t, %q : {{t}}, !pto.pipe) {{split = {split}}}"
    trio.run(vector0=body, vector1=body)
    np.testing.assert_array_equal(trio.local("cube", Space.L1, 0, 512), boxes(whole))


def test_a_whole_tile_reaches_the_cube_from_one_sub_block() -> None:
    trio = Trio("a5", vectors=1)
    trio.tile("vector0", "t", "vec, 16x16xf32", numbers(16, 16))
    body = local_queue(2, 1024) + "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}"
    trio.run(vector0=body)
    np.testing.assert_array_equal(trio.local("cube", Space.L1, 0, 256), numbers(1, 256)[0])


# ---- slots in global memory


@pytest.mark.parametrize(
    ("split", "rows", "cols", "own", "parts"),
    [
        (0, 32, 64, ("32x64", "32x64"), (np.s_[:, :], np.s_[:, :])),
        (1, 32, 64, ("16x64", "16x64"), (np.s_[:16], np.s_[16:])),
        (2, 32, 64, ("32x32", "32x32"), (np.s_[:, :32], np.s_[:, 32:])),
        (3, 31, 64, ("16x64", "16x64, valid=15x64"), (np.s_[:16], np.s_[16:])),
        (4, 32, 63, ("32x32", "32x32, valid=32x31"), (np.s_[:, :32], np.s_[:, 32:])),
    ],
)
def test_slots_in_global_memory_hold_the_matrix_row_by_row(
    split: int, rows: int, cols: int, own: tuple[str, str], parts: tuple[Any, Any]
) -> None:
    trio = Trio("a2a3")
    data = numbers(32, 64)
    gm = trio.array("gm", "!pto.ptr<f32>", np.full(8 * 2048, STAY))
    trio.tile("cube", "t", ACC_PART, data, valid=(rows, cols))
    push = f"pto.tpush(%t, %q : {{t}}, !pto.pipe) {{split = {split}}}"
    bodies = {"cube": global_queue(1, 8192) + push}
    for sub in (0, 1):
        shape, comma, valid = own[sub].partition(",")
        type = f"!pto.tile_buf<vec, {shape}xf32{comma}{valid}>"
        bodies[f"vector{sub}"] = (
            global_queue(1, 8192)
            + f"%p = pto.declare_tile -> {type}\n"
            + f"pto.tpop(%p, %q : {type}, !pto.pipe) {{split = {split}}}\n"
        )
    trio.run(**bodies)
    np.testing.assert_array_equal(gm[: rows * cols].reshape(rows, cols), data[:rows, :cols])
    assert (gm[rows * cols :].view(np.uint8) == FILL).all()
    for sub in (0, 1):
        shape = tuple(int(n) for n in own[sub].partition(",")[0].split("x"))
        want = data[:rows, :cols][parts[sub]]
        found = trio.local(f"vector{sub}", Space.UB, 0, shape[0] * shape[1]).reshape(shape)
        np.testing.assert_array_equal(found[: want.shape[0], : want.shape[1]], want)


def test_a_pop_out_of_global_memory_is_a_copy_in_the_local_slots() -> None:
    trio = Trio("a2a3", vectors=1)
    trio.array("gm", "!pto.ptr<f32>", np.zeros(8 * 256, np.float32))
    tiles = [numbers(16, 16, 1000 * n) for n in range(3)]
    small = "acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024"
    for n, tile in enumerate(tiles):
        trio.tile("cube", f"t{n}", small, tile, address=0x1000 * (n + 1))
    queue = global_queue(1, 1024, local_slots=2)
    pushes = "".join(
        f"pto.tpush(%t{n}, %q : {{t{n}}}, !pto.pipe) {{split = 1}}\n" for n in range(3)
    )
    pop = "pto.tpop(%p, %q : !pto.tile_buf<vec, 8x16xf32>, !pto.pipe) {split = 1}\n"
    declare = "%p = pto.declare_tile -> !pto.tile_buf<vec, 8x16xf32>\n"
    trio.run(cube=queue + pushes, vector0=queue + declare + 3 * pop)
    first, second = (trio.local("vector0", Space.UB, at, 128).reshape(8, 16) for at in (0, 1024))
    np.testing.assert_array_equal(first, tiles[2][:8])
    np.testing.assert_array_equal(second, tiles[1][:8])


def test_entries_in_global_memory_are_filled_and_read_by_the_program() -> None:
    """talloc and tpop hand out the slots themselves; loads and stores are the program's."""
    text = """
    !view = !pto.tensor_view<16x16xf32>
    !part = !pto.partition_tensor_view<16x16xf32>
    !tile = !pto.tile_buf<vec, 16x16xf32>
    !mat = !pto.tile_buf<mat, 16x16xf32, blayout=col_major, slayout=row_major>
    !left = !pto.tile_buf<left, 16x16xf32, blayout=row_major, slayout=row_major>
    !right = !pto.tile_buf<right, 16x16xf32, blayout=row_major, slayout=col_major>
    !acc = !pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>
    module attributes {pto.target_arch = "a3"} {
      func.func @cube(%slots: !pto.ptr<f32>, %a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %n: index, %out: !pto.ptr<f32>)
          attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %s = pto.make_tensor_view %slots, shape = [%c16, %c16], strides = [%c16, %c1] : !view
        pto.aic_initialize_pipe {id = 5, dir_mask = 1, slot_size = 1024} (gm_slot_tensor = %s : !view)
        %rows = arith.muli %n, %c16 : index
        %va = pto.make_tensor_view %a, shape = [%rows, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
        %vb = pto.make_tensor_view %b, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
        %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xf32> -> !part
        %ma = pto.alloc_tile : !mat
        %mb = pto.alloc_tile : !mat
        %l = pto.alloc_tile : !left
        %r = pto.alloc_tile : !right
        %acc = pto.alloc_tile : !acc
        pto.tload ins(%pb : !part) outs(%mb : !mat)
        pto.tmov ins(%mb : !mat) outs(%r : !right)
        scf.for %i = %c0 to %n step %c1 {
          %at = arith.muli %i, %c16 : index
          %pa = pto.partition_view %va, offsets = [%at, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xf32> -> !part
          pto.tload ins(%pa : !part) outs(%ma : !mat)
          pto.tmov ins(%ma : !mat) outs(%l : !left)
          pto.tmatmul ins(%l, %r : !left, !right) outs(%acc : !acc)
          %entry = pto.talloc_to_aiv {id = 5, split = 0} -> !view
          %pe = pto.partition_view %entry, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !part
          pto.tstore ins(%acc : !acc) outs(%pe : !part)
          pto.tpush_to_aiv(%entry : !view) {id = 5, split = 0}
        }
        return
      }
      func.func @vector(%slots: !pto.ptr<f32>, %a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %n: index, %out: !pto.ptr<f32>)
          attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %s = pto.make_tensor_view %slots, shape = [%c16, %c16], strides = [%c16, %c1] : !view
        pto.aiv_initialize_pipe {id = 5, dir_mask = 1, slot_size = 1024} (gm_slot_tensor = %s : !view)
        %rows = arith.muli %n, %c16 : index
        %vo = pto.make_tensor_view %out, shape = [%rows, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xf32>
        %t = pto.alloc_tile : !tile
        scf.for %i = %c0 to %n step %c1 {
          %at = arith.muli %i, %c16 : index
          %entry = pto.tpop_from_aic {id = 5, split = 0} -> !view
          %pe = pto.partition_view %entry, offsets = [%c0, %c0], sizes = [%c16, %c16] : !view -> !part
          pto.tload ins(%pe : !part) outs(%t : !tile)
          pto.tfree_from_aic(%entry : !view) {id = 5, split = 0}
          %po = pto.partition_view %vo, offsets = [%at, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xf32> -> !part
          pto.tstore ins(%t : !tile) outs(%po : !part)
        }
        return
      }
    }
    """
    count = 21
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 8, (count * 16, 16)).astype(np.float32)
    b = rng.integers(-8, 8, (16, 16)).astype(np.float32)
    out, slots = np.zeros_like(a), np.zeros(8 * 256, np.float32)
    launch(parse(text), args=[slots, a, b, count, out])
    np.testing.assert_array_equal(out, a @ b)  # small integers: exact in any order
    last = [slots[n * 256 : (n + 1) * 256].reshape(16, 16) for n in range(8)]
    for number in range(count - 8, count):
        np.testing.assert_array_equal(last[number % 8], a[number * 16 :][:16] @ b)


# ---- whole programs: a vector half goes to the cube and comes back


def round_trip(profile: str, split: int) -> str:
    """out = 2 * data, tile by tile, through the cube and back; each sub-block handles its part."""
    rows, cols = {0: (32, 32), 1: (16, 32), 2: (32, 16)}[split]
    on_a5 = profile == "a5"
    left = "col_major" if on_a5 else "row_major"
    gm = "" if on_a5 else "gm_slot_buffer = %slots : !pto.ptr<f32>, "
    to_nz = "pto.tmov ins(%t : !half) outs(%nz : !boxed)" if on_a5 else ""
    own = "pto.get_subblock_idx" if split else "arith.constant 0 : i64"
    pushed, kind = ("%nz", "!boxed") if on_a5 else ("%t", "!half")
    return f"""
    !half = !pto.tile_buf<vec, {rows}x{cols}xf32>
    !boxed = !pto.tile_buf<vec, {rows}x{cols}xf32, blayout=col_major, slayout=row_major>
    !mat = !pto.tile_buf<mat, 32x32xf32, blayout=col_major, slayout=row_major>
    !left = !pto.tile_buf<left, 32x32xf32, blayout={left}, slayout=row_major>
    !right = !pto.tile_buf<right, 32x32xf32, blayout=row_major, slayout=col_major>
    !acc = !pto.tile_buf<acc, 32x32xf32, blayout=col_major, slayout=row_major, fractal=1024>
    !whole = !pto.tensor_view<?x?xf32>
    !part = !pto.partition_tensor_view<?x?xf32>
    module attributes {{pto.target_arch = "{profile}"}} {{
      func.func @main(%slots: !pto.ptr<f32>, %two: !pto.ptr<f32>, %data: !pto.ptr<f32>, %out: !pto.ptr<f32>, %n: index)
          attributes {{pto.entry}} {{
        func.call @cube(%slots, %two, %n) : (!pto.ptr<f32>, !pto.ptr<f32>, index) -> ()
        func.call @vector(%slots, %data, %out, %n) : (!pto.ptr<f32>, !pto.ptr<f32>, !pto.ptr<f32>, index) -> ()
        return
      }}
      func.func private @cube(%slots: !pto.ptr<f32>, %two: !pto.ptr<f32>, %n: index)
          attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        %mine = pto.reserve_buffer {{name = "in", size = 16384, location = #pto.address_space<mat>, auto = true}} -> i32
        %theirs = pto.import_reserved_buffer {{name = "out", peer_func = @vector}} -> i32
        pto.aic_initialize_pipe {{dir_mask = 3, slot_size = 4096}} ({gm}c2v_consumer_buf = %theirs : i32, v2c_consumer_buf = %mine : i32)
        %v = pto.make_tensor_view %two, shape = [%c32, %c32], strides = [%c32, %c1] : !whole
        %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c32, %c32] : !whole -> !part
        %m = pto.alloc_tile : !mat
        %l = pto.alloc_tile : !left
        %r = pto.alloc_tile : !right
        %acc = pto.alloc_tile : !acc
        pto.tload ins(%p : !part) outs(%m : !mat)
        pto.tmov ins(%m : !mat) outs(%r : !right)
        scf.for %i = %c0 to %n step %c1 {{
          %in = pto.tpop_from_aiv {{split = {split}}} -> !mat
          pto.tmov ins(%in : !mat) outs(%l : !left)
          pto.tfree_from_aiv {{split = {split}}}
          pto.tmatmul ins(%l, %r : !left, !right) outs(%acc : !acc)
          pto.tpush_to_aiv(%acc : !acc) {{split = {split}}}
        }}
        return
      }}
      func.func private @vector(%slots: !pto.ptr<f32>, %data: !pto.ptr<f32>, %out: !pto.ptr<f32>, %n: index)
          attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        %high = arith.constant {rows} : index
        %wide = arith.constant {cols} : index
        %down = arith.constant {16 if split == 1 else 0} : index
        %right = arith.constant {16 if split == 2 else 0} : index
        %mine = pto.reserve_buffer {{name = "out", size = 16384, location = #pto.address_space<vec>, auto = true}} -> i32
        %theirs = pto.import_reserved_buffer {{name = "in", peer_func = @cube}} -> i32
        pto.aiv_initialize_pipe {{dir_mask = 3, slot_size = 4096}} ({gm}c2v_consumer_buf = %mine : i32, v2c_consumer_buf = %theirs : i32)
        %sub64 = {own}
        %sub = arith.index_cast %sub64 : i64 to index
        %row = arith.muli %sub, %down : index
        %col = arith.muli %sub, %right : index
        %all = arith.muli %n, %c32 : index
        %vd = pto.make_tensor_view %data, shape = [%all, %c32], strides = [%c32, %c1] : !whole
        %vo = pto.make_tensor_view %out, shape = [%all, %c32], strides = [%c32, %c1] : !whole
        %t = pto.alloc_tile : !half
        %nz = pto.alloc_tile : !boxed
        scf.for %i = %c0 to %n step %c1 {{
          %first = arith.muli %i, %c32 : index
          %at = arith.addi %first, %row : index
          %pd = pto.partition_view %vd, offsets = [%at, %col], sizes = [%high, %wide] : !whole -> !part
          %po = pto.partition_view %vo, offsets = [%at, %col], sizes = [%high, %wide] : !whole -> !part
          pto.tload ins(%pd : !part) outs(%t : !half)
          {to_nz}
          pto.tpush_to_aic({pushed} : {kind}) {{split = {split}}}
          %back = pto.tpop_from_aic {{split = {split}}} -> !half
          pto.tstore ins(%back : !half) outs(%po : !part)
          pto.tfree_from_aic {{split = {split}}}
        }}
        return
      }}
    }}
    """


@pytest.mark.parametrize("profile", ["a5", "a3"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_tiles_go_to_the_cube_and_back(profile: str, split: int) -> None:
    data = np.random.default_rng(2).standard_normal((9 * 32, 32)).astype(np.float32)
    out, slots = np.zeros_like(data), np.zeros(2 * 4 * 1024, np.float32)
    two = 2 * np.eye(32, dtype=np.float32)
    report = launch(parse(round_trip(profile, split)), args=[slots, two, data, out, 9])
    assert report.entry == "main"
    np.testing.assert_array_equal(out, 2 * data)


# ---- what goes wrong


def code_of(trio: Trio, **bodies: str) -> str:
    with pytest.raises(PtoError) as caught:
        trio.run(**bodies)
    return caught.value.code


def test_a_tile_larger_than_a_slot_is_refused_before_anything_is_written() -> None:
    trio = Trio("a5", vectors=1)
    trio.tile("cube", "t", ACC, numbers(32, 64))
    body = local_queue(1, 4096) + "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}"
    assert code_of(trio, cube=body) == "PTO-M192"
    assert (trio.local("vector0", Space.UB, 0, 4096).view(np.uint8) == FILL).all()


def test_a_slot_is_given_back_once() -> None:
    trio = Trio("a5", vectors=1)
    body = local_queue(1, 1024) + "pto.tfree(%q : !pto.pipe) {split = 0}"
    assert code_of(trio, vector0=body) == "PTO-D190"


def test_a_queue_is_not_used_against_its_direction() -> None:
    trio = Trio("a5", vectors=1)
    trio.tile("vector0", "t", "vec, 16x16xf32")
    body = local_queue(1, 1024) + "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 0}"
    assert code_of(trio, vector0=body) == "PTO-D191"


def test_ends_that_count_other_slots_are_found_out() -> None:
    trio = Trio("a5", vectors=1)
    assert code_of(trio, cube=local_queue(1, 1024), vector0=local_queue(1, 2048)) == "PTO-D192"


def test_a_local_queue_has_no_entries_in_global_memory() -> None:
    trio = Trio("a5", vectors=1)
    entry = "!pto.tensor_view<16x16xf32>"
    body = (
        f"%e = pto.declare_global -> {entry}\npto.talloc(%e, %q : {entry}, !pto.pipe) {{split = 0}}"
    )
    assert code_of(trio, cube=local_queue(1, 1024) + body) == "PTO-D193"


def test_an_entry_is_allocated_before_it_is_pushed() -> None:
    trio = Trio("a2a3", vectors=1)
    trio.array("gm", "!pto.ptr<f32>", np.zeros(2048, np.float32))
    entry = "!pto.tensor_view<16x16xf32>"
    body = (
        f"%e = pto.declare_global -> {entry}\npto.tpush(%e, %q : {entry}, !pto.pipe) {{split = 0}}"
    )
    assert code_of(trio, cube=global_queue(1, 1024) + body) == "PTO-D194"


def test_halves_of_odd_size_need_global_memory() -> None:
    trio = Trio("a5")
    trio.tile("cube", "t", ACC, numbers(32, 64))
    body = local_queue(1, 8192) + "pto.tpush(%t, %q : {t}, !pto.pipe) {split = 3}"
    assert code_of(trio, cube=body) == "PTO-X190"


def test_a_declared_tile_has_no_data_before_it_is_popped() -> None:
    trio = Trio("a5", vectors=1)
    type = "!pto.tile_buf<vec, 16x16xf32>"
    body = f"%p = pto.declare_tile -> {type}\npto.tneg ins(%p : {type}) outs(%p : {type})"
    assert code_of(trio, vector0=body) == "PTO-M190"


@pytest.mark.parametrize(("split", "shape"), [(0, (10, 48)), (1, (5, 48)), (2, (10, 24))])
@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_popped_tile_of_unwritten_extents_has_those_that_were_pushed(
    profile: str, split: int, shape: tuple[int, int]
) -> None:
    trio = Trio(profile)
    data = numbers(32, 64)
    trio.tile("cube", "t", ACC_PART, data, valid=(10, 48))
    gm = trio.array("gm", "!pto.ptr<f32>", np.zeros(65536, np.float32))
    out = [trio.array(f"out{n}", "!pto.ptr<i32>", np.zeros(2, np.int32)) for n in (0, 1)]
    queue = local_queue(1, 8192) if profile == "a5" else global_queue(1, 8192)
    pushes = f"pto.tpush(%t, %q : {{t}}, !pto.pipe) {{split = {split}}}"
    type = "!pto.tile_buf<vec, 32x64xf32, valid=?x?>"

    def pops(n: int) -> str:
        return (
            f"%d = pto.declare_tile -> {type}\n"
            f"pto.tpop(%d, %q : {type}, !pto.pipe) {{split = {split}}}\n"
            f"%r, %c = pto.get_validshape %d : {type}\n"
            "%ri = arith.index_cast %r : index to i32\n%ci = arith.index_cast %c : index to i32\n"
            "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
            f"pto.store_scalar %ri, %out{n}[%c0] : !pto.ptr<i32>, i32\n"
            f"pto.store_scalar %ci, %out{n}[%c1] : !pto.ptr<i32>, i32\n"
            "pto.tfree(%q : !pto.pipe) {split = " + str(split) + "}"
        )

    agents = [0] if split == 0 and profile == "a5" else [0, 1]
    trio.run(cube=queue + pushes, **{f"vector{n}": queue + pops(n) for n in agents})
    assert all(tuple(out[n]) == shape for n in agents) and gm is not None
