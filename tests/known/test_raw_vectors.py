"""Vectors by pointer, multiple tiles, records, regions, sections: worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.machine import Bench

ENGINES = ("reference", "jit")
RAW = """
module attributes {pto.target_arch = "a3", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !pto.ptr<f32, gm>) attributes {pto.aicore} {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c2 = arith.constant 2 : i64
    %c8 = arith.constant 8 : i64
    %c16 = arith.constant 16 : i64
    %low = arith.constant 15 : i64
    %seventy = arith.constant 70 : i64
    %n = arith.constant 1024 : i64
    %one = arith.constant 1065353216 : i64
    %p = pto.castptr %c0 : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %p, %c0, %n nburst(%c1, %n, %n)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    BODY
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %p, %x, %n nburst(%c1, %n, %n) l2_cache_ctl(%c0)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64
    return
  }
}
"""
ADDS = "pto.ub.vadds %p, %p, %one, {} : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>" + ", i64" * 6


def raw(body: str, engine: str = "reference") -> np.ndarray:
    x = np.arange(256, dtype=np.float32)
    launch(parse(RAW.replace("BODY", body)), args=[x], engine=engine)
    return x - np.arange(256)


@pytest.mark.parametrize("engine", ENGINES)
def test_repeats_of_eight_blocks_under_a_mask_of_bits(engine: str):
    found = raw("pto.ub.set_mask %low, %c0 : i64, i64\n" + ADDS.format("%c2, %c1, %c1, %c8, %c8"))
    lane = np.arange(256)
    np.testing.assert_array_equal(found, (lane < 128) & (lane % 64 < 4))


def test_blocks_may_lie_apart():
    found = raw(ADDS.format("%c1, %c2, %c2, %c16, %c16"))
    lane = np.arange(256)
    np.testing.assert_array_equal(found, (lane < 128) & (lane // 8 % 2 == 0))


def test_a_mask_that_counts_says_how_many_elements_there_are():
    body = "pto.ub.set_mask_count\npto.ub.set_mask %seventy, %c0 : i64, i64\n"
    found = raw(body + ADDS.format("%c1, %c1, %c1, %c8, %c8"))
    np.testing.assert_array_equal(found, np.arange(256) < 70)


def test_on_a5_they_do_nothing():
    text = RAW.replace("a3", "a5").replace("BODY", ADDS.format("%c2, %c1, %c1, %c8, %c8"))
    x = np.arange(256, dtype=np.float32)
    launch(parse(text), args=[x])
    np.testing.assert_array_equal(x, np.arange(256))


MULTI = """
module attributes {pto.target_arch = "a5"} {
  func.func @kernel(%x: !pto.ptr<f32>, %n: index)
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %two = arith.constant 2.0 : f32
    %m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 1x64xf32, count=2>
    %v = pto.make_tensor_view %x, shape = [%c2, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    scf.for %i = %c0 to %c2 step %c1 {
      %t = pto.multi_tile_get %m[%i]
        : !pto.multi_tile_buf<vec, 1x64xf32, count=2> -> !pto.tile_buf<vec, 1x64xf32>
      %p = pto.partition_view %v, offsets = [%i, %c0], sizes = [%c1, %c64]
        : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x64xf32>
      pto.tload ins(%p : !pto.partition_tensor_view<1x64xf32>)
        outs(%t : !pto.tile_buf<vec, 1x64xf32>)
    }
    %a = pto.multi_tile_get %m[%n]
      : !pto.multi_tile_buf<vec, 1x64xf32, count=2> -> !pto.tile_buf<vec, 1x64xf32>
    %q = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c64]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x64xf32>
    pto.tstore ins(%a : !pto.tile_buf<vec, 1x64xf32>)
      outs(%q : !pto.partition_tensor_view<1x64xf32>)
    return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_slots_of_a_multiple_tile_keep_what_was_loaded(engine: str):
    x = np.arange(128, dtype=np.float32)
    report = launch(parse(MULTI), args=[x, 1], engine=engine)
    assert not report.left_out
    np.testing.assert_array_equal(x[:64], np.arange(64, 128))
    with pytest.raises(PtoError, match="PTO-S142"):
        launch(parse(MULTI), args=[x, 2], engine=engine)


SCALARS = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%out: !pto.ptr<i32, gm>, %x: i32) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s = pto.declare_struct -> !pto.struct<i32, !pto.struct<i32, i8>>
    pto.struct_set %s[1, 0], %x : !pto.struct<i32, !pto.struct<i32, i8>>, i32
    %a = pto.struct_get %s[1, 0] : !pto.struct<i32, !pto.struct<i32, i8>> -> i32
    %r = scf.execute_region -> (i32) {
      %y = arith.addi %a, %a : i32
      scf.yield %y : i32
    }
    %z = pto.struct_get %s[0] : !pto.struct<i32, !pto.struct<i32, i8>> -> i32
    pto.store_scalar %r, %out[%c0] : !pto.ptr<i32, gm>, i32
    pto.store_scalar %z, %out[%c1] : !pto.ptr<i32, gm>, i32
    return
  }
}
"""


SWITCH = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%out: !pto.ptr<i32, gm>, %n: index) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = arith.constant 10 : i32
    %b = arith.constant 20 : i32
    %r, %s = scf.index_switch %n -> i32, i32
    case 7 {
      scf.yield %a, %b : i32, i32
    }
    case -3 {
      %y = arith.addi %a, %b : i32
      pto.store_scalar %y, %out[%c1] : !pto.ptr<i32, gm>, i32
      scf.yield %b, %y : i32, i32
    }
    default {
      scf.yield %a, %a : i32, i32
    }
    %t = arith.subi %s, %r : i32
    pto.store_scalar %t, %out[%c0] : !pto.ptr<i32, gm>, i32
    scf.index_switch %n
    case 0 {
      pto.store_scalar %b, %out[%c1] : !pto.ptr<i32, gm>, i32
    }
    default {
    }
    return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("number", "expected"), [(7, [10, -1]), (-3, [10, 30]), (0, [0, 20]), (8, [0, -1])]
)
def test_a_number_chooses_a_region(engine: str, number: int, expected: list[int]):
    out = np.full(2, -1, np.int32)
    report = launch(parse(SWITCH), args=[out, number], engine=engine)
    assert not report.left_out
    assert out.tolist() == expected


WORK_ITEMS = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%out: !pto.ptr<i32, gm>) attributes {pto.entry} {
    pto.section.simt<<<32, 1, 1>>> {
      %three = arith.constant 3 : i32
      %tx = pto.get_tid_x : i32
      %left = arith.remsi %tx, %three : i32
      %which = arith.index_cast %left : i32 to index
      %r = scf.index_switch %which -> i32
      case 0 {
        scf.yield %tx : i32
      }
      case 2 {
        %y = arith.muli %tx, %tx : i32
        scf.yield %y : i32
      }
      default {
        scf.yield %three : i32
      }
      %i = arith.index_cast %tx : i32 to index
      pto.store %r, %out[%i] : !pto.ptr<i32, gm>, i32
    }
    return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_each_work_item_chooses_its_region(engine: str):
    out = np.full(32, -1, np.int32)
    launch(parse(WORK_ITEMS), args=[out], engine=engine)
    assert out.tolist() == [(n, 3, n * n)[n % 3] for n in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_records_and_regions_hand_on_values(engine: str):
    out = np.full(2, -1, np.int32)
    report = launch(parse(SCALARS), args=[out, 21], engine=engine)
    assert not report.left_out
    assert out.tolist() == [42, 0]


SECTION = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%out: !pto.ptr<i32, gm>, %x: i32) attributes {pto.aicore} {
    %two = arith.constant 2 : i32
    %own = llvm.alloca %two x i32 {pto.persistent} : (i32) -> !llvm.ptr
    %four = arith.constant 4 : i64
    pto.section.simt<<<40, 1, 1>>> {
      %tx = pto.get_tid_x : i32
      %next = llvm.getelementptr %own[%four] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      llvm.store %tx, %next : i32, !llvm.ptr
    }
    pto.section.simt<<<40, 1, 1>>> {
      %tx = pto.get_tid_x : i32
      %next = llvm.getelementptr %own[1] : (!llvm.ptr) -> !llvm.ptr, i32
      %v = llvm.load %next : !llvm.ptr -> i32
      %w = arith.addi %v, %x : i32
      %i = arith.index_castui %tx : i32 to index
      pto.store %w, %out[%i] : !pto.ptr<i32, gm>, i32
    }
    return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_sections_of_work_items_see_values_around_and_keep_arrays_of_their_own(engine: str):
    out = np.zeros(40, np.int32)
    launch(parse(SECTION), args=[out, 100], engine=engine)
    np.testing.assert_array_equal(out, 100 + np.arange(40))


@pytest.mark.parametrize(("axis", "shape"), [("row", (2, 32)), ("col", (4, 16))])
def test_scatter_by_a_pattern_leaves_zeros_between(axis: str, shape: tuple[int, int]):
    bench = Bench("a5")
    values = np.arange(1, 33).reshape(2, 16)
    bench.tile("s", "vec, 2x16xf32", values)
    bench.tile("d", f"vec, {shape[0]}x{shape[1]}xf32")
    bench.run(
        'pto.tscatter ins(%s, {maskPattern = #pto.mask_pattern<P1010>} : {s}, "AXIS")'
        " outs(%d : {d})".replace("AXIS", axis)
    )
    wanted = np.zeros(shape)
    wanted[(slice(None), slice(1, None, 2)) if axis == "row" else slice(1, None, 2)] = values
    np.testing.assert_array_equal(bench["d"], wanted)
