"""Binding tiles to storage, mode registers, and waiting that program order already satisfies."""

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.text.parser import parse
from pto.isa.meaning.cube.accumulator import outgoing
from pto.isa.meaning.memory import registers
from pto.run.launch.host import launch
from tests.known.places import TILES, numbered, view, word
from tests.machine import Bench


def test_assign_names_the_tile_at_an_address():
    bench = Bench("a5")
    bench.tile("t", "vec, 8x16xf32", np.zeros((8, 16)), valid=(3, 4))
    bench.scalar("a", "i64", 4096)
    raw = bench.core.memory(Space.UB).view(4096, 512)
    raw[:] = numbered(8, 16).reshape(-1).view(np.uint8)
    (found,) = bench.run("%r = pto.tassign %t, %a : {t} -> {t}", results="%r : " + bench.types["t"])
    assert found.get_valid() == (3, 4)
    assert np.array_equal(found.read(), numbered(8, 16))
    assert not bench["t"].any()


@pytest.mark.parametrize(("address", "code"), [(1 << 18, "PTO-M001"), (33, "PTO-M002")])
def test_assign_refuses_an_address_that_cannot_be(address: int, code: str):
    bench = Bench("a5")
    bench.tile("t", "vec, 8x16xf32")
    bench.scalar("a", "i64", address)
    with pytest.raises(PtoError) as error:
        bench.run("%r = pto.tassign %t, %a : {t} -> {t}", results="%r : " + bench.types["t"])
    assert error.value.diagnostics[0].code == code


def test_a_view_can_be_put_at_another_global_address():
    bench = Bench("a5")
    first, second = numbered(4, 8), -numbered(4, 8)
    view(bench, "v", first, "f32")
    memory = bench.core.device.attach(second.reshape(-1))
    pointer = type("P", (), {"memory": memory, "address": 0})()
    bench.scalar("a", "i64", bench.core.device.address(pointer))
    kind = bench.types["v"]
    (found,) = bench.run("%r = pto.tassign %v, %a : {v} -> {v}", results=f"%r : {kind}")
    assert np.array_equal(found.read_matrix(), second)


@pytest.mark.parametrize("layout", ["ND", "DN"])
def test_a_subview_starts_inside_and_keeps_its_own_pitch(layout: str):
    bench = Bench("a5")
    data = numbered(8, 16)
    source = bench.tile("s", f"vec, 8x16xf32{TILES[layout]}", data)
    shape = (2, 16) if layout == "ND" else (8, 2)
    bench.tile("d", f"vec, {shape[0]}x{shape[1]}xf32{TILES[layout]}")
    bench.scalar("r", "i32", 3 if layout == "ND" else 0)
    bench.scalar("c", "i32", 0 if layout == "ND" else 5)
    text = "pto.tsubview ins(%s, %r, %c : {s}, i32, i32) outs(%d : {d})"
    (tile,) = bench.run(text, results="%d : " + bench.types["d"])
    expected = data[3:5] if layout == "ND" else data[:, 5:7]
    assert np.array_equal(tile.read(), expected)
    tile.write(np.zeros(shape, np.float32))
    assert not (source.read()[3:5] if layout == "ND" else source.read()[:, 5:7]).any()


def test_a_subview_outside_is_refused():
    bench = Bench("a5")
    bench.tile("s", "vec, 8x16xf32")
    bench.tile("d", "vec, 4x16xf32")
    bench.scalar("r", "i32", 5)
    bench.scalar("c", "i32", 0)
    with pytest.raises(PtoError) as error:
        bench.run("pto.tsubview ins(%s, %r, %c : {s}, i32, i32) outs(%d : {d})")
    assert error.value.diagnostics[0].code == "PTO-S060"


def test_an_alias_is_another_name():
    bench = Bench("a5")
    bench.tile("s", "vec, 8x16xf32", numbered(8, 16))
    bench.tile("d", "vec, 8x16xf32")
    text = "pto.talias ins(%s : {s}) outs(%d : {d})"
    (found,) = bench.run(text, results="%d : " + bench.types["d"])
    assert np.array_equal(found.read(), numbered(8, 16))


def test_scales_lie_at_a_sixteenth_of_the_address():
    bench = Bench("a5")
    bench.tile("pad", f"left, 64x64xf8E4M3FN{TILES['NZ']}")
    left = bench.tile("s", f"left, 16x64xf8E4M3FN{TILES['NZ']}")
    bench.tile("d", "scale_left, 16x2xf8E8M0FNU, slayout=row_major, fractal=32")
    text = "pto.tget_scale_addr ins(%s : {s}) outs(%d : {d})"
    (tile,) = bench.run(text, results="%d : " + bench.types["d"])
    assert left.address == 4096 and tile.address == 256
    assert tile.memory.space is Space.SCALE_A


def test_the_quantisation_of_the_next_push():
    bench = Bench("a5")
    bench.scalar("q", "f32", 0.5)
    bench.run('pto.set_quant_scalar ins(%q : f32) {out_type = "i8"}')
    assert registers.get(bench.core, registers.TILE_QUANT) == ("i8", 0x3F000000 | 1 << 46)
    bench.run('pto.set_quant_scalar ins(%q : f32) {out_type = "f16"}')
    assert registers.get(bench.core, registers.TILE_QUANT) == ("f16", 0x3F000000)
    tile = bench.tile("f", "scaling, 1x16xui64")
    bench.run("pto.set_quant_vector ins(%f : {f})")
    assert registers.get(bench.core, registers.TILE_QUANT) == (None, tile)


def test_a_push_sends_what_the_quantisation_makes_once():
    bench = Bench("a5")
    data = np.array([[2.5, 3.5, -300.0] + [0.0] * 13] * 16)
    tile = bench.tile("t", f"acc, 16x16xf32{TILES['ACC']}", data, valid=(16, 3))
    assert outgoing(bench.core, tile) is tile
    bench.scalar("q", "f32", 1.0)
    bench.run('pto.set_quant_scalar ins(%q : f32) {out_type = "i8"}')
    assert outgoing(bench.core, tile).read_valid()[0].tolist() == [2, 4, -128]
    assert outgoing(bench.core, tile) is tile
    words = np.array([[word(2.0, signed=True), word(1.0), word(-1.0)] + [0] * 13], np.uint64)
    bench.tile("f", "scaling, 1x16xui64", words)
    bench.run("pto.set_quant_vector ins(%f : {f})")
    assert outgoing(bench.core, tile).read_valid().view(np.uint8)[0].tolist() == [5, 4, 255]


@pytest.mark.parametrize(("kind", "side"), [("aiv_only", "vector"), ("aic_only", "cube")])
def test_nobody_passes_a_barrier_before_all_blocks_are_there(kind: str, side: str):
    """Each block writes its number, meets the others, then reads what they wrote."""
    text = f"""
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<{side}>}} {{
  func.func @k(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>) attributes {{pto.entry}} {{
    %b = pto.get_block_idx
    %i = arith.index_cast %b : i64 to index
    %one = arith.constant 1 : i32
    %n = arith.trunci %b : i64 to i32
    %m = arith.addi %n, %one : i32
    pto.store_scalar %m, %p[%i] : !pto.ptr<i32>, i32
    pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<{kind}>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0 : i32
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%s = %zero) -> (i32) {{
      %x = pto.load_scalar %p[%j] : !pto.ptr<i32> -> i32
      %t = arith.addi %s, %x : i32
      scf.yield %t : i32
    }}
    pto.store_scalar %sum, %q[%i] : !pto.ptr<i32>, i32
    return
  }}
}}"""
    numbers, sums = np.zeros(4, np.int32), np.zeros(4, np.int32)
    launch(parse(text), args=[numbers, sums], blocks=4)
    assert numbers.tolist() == [1, 2, 3, 4]
    assert sums.tolist() == [10, 10, 10, 10]


MIXED = """
module attributes {pto.target_arch = "a2a3"} {
  func.func @k(%%p: !pto.ptr<i32>, %%w: !pto.ptr<i32>) attributes {pto.entry} {
    %%n = arith.constant %d : i32
    %%c0 = arith.constant 0 : index
    %%c1 = arith.constant 1 : index
    %%c16 = arith.constant 16 : index
    %%v = pto.make_tensor_view %%w, shape = [%%c16], strides = [%%c1] : !pto.tensor_view<?xi32>
    %%s = pto.partition_view %%v, offsets = [%%c0], sizes = [%%c16]
      : !pto.tensor_view<?xi32> -> !pto.partition_tensor_view<16xi32>
    pto.section.cube {
      pto.syncall(%%s, %%n : !pto.partition_tensor_view<16xi32>, i32)
        mode = #pto.sync_all_mode<soft>, core_type = #pto.sync_core_type<mix>
    }
    pto.section.vector {
      pto.store_scalar %%n, %%p[%%c0] : !pto.ptr<i32>, i32
      pto.syncall(%%s, %%n : !pto.partition_tensor_view<16xi32>, i32)
        mode = #pto.sync_all_mode<soft>, core_type = #pto.sync_core_type<mix>
    }
    return
  }
}"""


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize(("used", "ends"), [(6, True), (0, True), (9, False)])
def test_a_mixed_barrier_counts_cube_and_vector_cores(used: int, ends: bool, engine: str):
    """syncall_soft.hpp: usedCores arrivals, or all. Two blocks have two cubes and four vectors."""
    found = np.full(1, -1, np.int32)
    args = [found, np.zeros(16, np.int32)]
    if ends:
        launch(parse(MIXED % used), args=args, blocks=2, engine=engine)
        assert found[0] == used
    else:
        with pytest.raises(PtoError, match="PTO-D110"):
            launch(parse(MIXED % used), args=args, blocks=2, engine=engine)


def test_events_in_program_order_are_already_over():
    bench = Bench("a5")
    bench.tile("t", "vec, 8x16xf32", numbered(8, 16))
    bench.run("pto.tsync ins(%t : {t})\npto.tsync {op = #pto.sync_op_type<TLOAD>}")
    assert np.array_equal(bench["t"], numbered(8, 16))
