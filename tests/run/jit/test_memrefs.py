"""Memrefs in compiled code: windows, other shapes, single elements, casts, compact tiles."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.text.printer import print_module
from tests.run.jit.both import agree, fails_alike

_WINDOWS = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%a: memref<8x16xf32>, %b: memref<8x16xf32>, %i: index, %j: index) {
    %c0 = arith.constant 0 : index
    %w = memref.subview %a[%i, 2] [4, 8] [2, 1] : memref<8x16xf32>
      to memref<4x8xf32, strided<[32, 1], offset: ?>>
    %x = memref.load %w[%c0, %j] : memref<4x8xf32, strided<[32, 1], offset: ?>>
    %r = memref.reinterpret_cast %b to offset: [16], sizes: [4, 4], strides: [4, 1]
      : memref<8x16xf32> to memref<4x4xf32, strided<[4, 1], offset: 16>>
    memref.store %x, %r[%i, %j] : memref<4x4xf32, strided<[4, 1], offset: 16>>
    return
  }
}
"""


@pytest.mark.parametrize("i, j", [(0, 0), (1, 3), (0, 2)])
def test_windows_and_single_elements(i: int, j: int) -> None:
    a = np.arange(128, dtype=np.float32).reshape(8, 16)
    _, found = agree(_WINDOWS, [a, np.zeros((8, 16), np.float32), i, j])[:2]
    assert found.ravel()[16 + 4 * i + j] == a[i, 2 + j] and np.count_nonzero(found) == 1


@pytest.mark.parametrize("i, j", [(4, 0), (-1, 0), (0, 4), (0, -1), (1 << 62, 0)])
def test_what_lies_outside_is_refused_alike(i: int, j: int) -> None:
    arrays = [np.zeros((8, 16), np.float32) for _ in range(2)]
    assert fails_alike(_WINDOWS, [*arrays, i, j]) in ("PTO-M006", "PTO-S190")


_CASTS = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%a: !pto.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = arith.constant -7 : i32
    %u = builtin.unrealized_conversion_cast %n : i32 to ui32
    %k = builtin.unrealized_conversion_cast %m : i32 to ui32
    %f = builtin.unrealized_conversion_cast %n : i32 to f32
    %x = arith.bitcast %f : f32 to i32
    %i = builtin.unrealized_conversion_cast %k : ui32 to i32
    scf.for %t = %c0 to %c1 step %c1 {
      pto.store_scalar %x, %a[%c0] : !pto.ptr<i32>, i32
      pto.store_scalar %i, %a[%c1] : !pto.ptr<i32>, i32
    }
    return
  }
}
"""


def test_casts_keep_the_bits() -> None:
    (found, _) = agree(_CASTS, [np.zeros(2, np.int32), -3])
    assert found.tolist() == [-3, -7]


def test_a_compact_tile_with_all_its_boxes() -> None:
    """8 valid rows of 16 need the one box there is; the tile is as any other."""

    @pto.kernel(profile="a5")
    def product(a: pto.Global, b: pto.Global, c: pto.Global) -> None:
        a_mat, b_mat = (pto.tile(16, 16, pto.f16, role="mat") for _ in range(2))
        left, right = (pto.tile(16, 16, pto.f16, role=role) for role in ("left", "right"))
        acc = pto.tile(16, 16, pto.f32, role="acc")
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[:, :], acc)

    arrays = [np.ones((8, 16), np.float16), np.ones((16, 16), np.float16)]
    arrays.append(np.zeros((8, 16), np.float32))
    text = print_module(product.module(*arrays))
    compact = re.sub(r"(tile_buf<(?:loc=)?left[^>]*)>", r"\1, compact=1>", text)
    assert compact != text
    *_, found = agree(compact, arrays)
    assert (found == 16).all()


_ARRAYS = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%a: !pto.ptr<i32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %t = %c0 to %c3 step %c1 {
      %l = pto.declare_local_array -> !pto.local_array<2x3xi32>
      %old = pto.local_array_get %l[%c1, %t] : !pto.local_array<2x3xi32> -> i32
      %x = arith.index_cast %t : index to i32
      %m = arith.constant -5 : i32
      %y = arith.addi %x, %m : i32
      pto.local_array_set %l[%c1, %n], %y : !pto.local_array<2x3xi32>, i32
      %z = pto.local_array_get %l[%c1, %n] : !pto.local_array<2x3xi32> -> i32
      %s = arith.addi %z, %old : i32
      pto.store_scalar %s, %a[%t] : !pto.ptr<i32>, i32
    }
    return
  }
}
"""


def test_small_arrays_begin_with_zeros_each_time() -> None:
    found = agree(_ARRAYS, [np.zeros(3, np.int32), 2])[0]
    assert found.tolist() == [-5, -4, -3]
    assert fails_alike(_ARRAYS, [np.zeros(3, np.int32), 3]) == "PTO-S133"
