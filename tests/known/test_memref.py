"""Memrefs as values: buffers, windows, single elements, tiles with their description beside them."""

# ruff: noqa: E501  (lines of programs)
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.tile import Tile
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.machine import Bench

UB = "#pto.address_space<vec>"
GM = "#pto.address_space<gm>"


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def kernel(params: str, body: str, arch: str = "a5") -> Any:
    text = f'module attributes {{pto.target_arch = "{arch}"}} {{\nfunc.func @f({params}) {{\n{body}\nreturn\n}}\n}}'
    return parse(text)


def code_of(module: Any, args: list[Any]) -> str:
    with pytest.raises(PtoError) as caught:
        launch(module, args=args, check=False)
    return caught.value.code


# ---- arguments in global memory, and single elements


def test_a_loaded_element_is_the_one_the_indices_name() -> None:
    body = f"""
    %i = arith.constant 3 : index
    %j = arith.constant 5 : index
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%i, %j] : memref<8x16xf32, {GM}>
    memref.store %v, %b[%c0] : memref<1xf32, {GM}>
    """
    a, b = numbers(8, 16), np.zeros(1, np.float32)
    launch(kernel(f"%a: memref<8x16xf32, {GM}>, %b: memref<1xf32, {GM}>", body), args=[a, b])
    assert b[0] == 3 * 16 + 5


def test_dynamic_sizes_of_an_argument_are_those_of_the_array() -> None:
    body = f"""
    %i = arith.constant 3 : index
    %j = arith.constant 5 : index
    %v = arith.constant -1.0 : f32
    memref.store %v, %a[%i, %j] : memref<?x?xf32, {GM}>
    """
    a = numbers(7, 11)
    launch(kernel(f"%a: memref<?x?xf32, {GM}>", body), args=[a])
    assert a[3, 5] == -1 and (a == -1).sum() == 1


def test_one_dynamic_size_follows_from_the_number_of_elements() -> None:
    body = f"""
    %i = arith.constant 2 : index
    %j = arith.constant 7 : index
    %v = arith.constant -1.0 : f32
    memref.store %v, %a[%i, %j] : memref<?x8xf32, {GM}>
    """
    a = np.zeros(24, np.float32)
    launch(kernel(f"%a: memref<?x8xf32, {GM}>", body), args=[a])
    assert a[23] == -1 and a[:23].sum() == 0


def test_written_strides_of_an_argument_count() -> None:
    body = f"""
    %i = arith.constant 1 : index
    %j = arith.constant 2 : index
    %v = arith.constant 9.0 : f32
    memref.store %v, %a[%i, %j] : memref<2x4xf32, strided<[10, 1]>, {GM}>
    """
    a = np.zeros(20, np.float32)
    launch(kernel(f"%a: memref<2x4xf32, strided<[10, 1]>, {GM}>", body), args=[a])
    assert a[12] == 9 and np.count_nonzero(a) == 1


@pytest.mark.parametrize(
    ("type", "value", "want"),
    [
        ("i8", -3, np.int8(-3)),
        ("i32", 70_000, np.int32(70_000)),
        ("f16", 0.333251953125, np.float16(0.333251953125)),
        ("bf16", 1.5, ml_dtypes.bfloat16(1.5)),
        ("f32", 1e-40, np.float32(1e-40)),
    ],
)
def test_elements_of_any_type_keep_their_bits(type: str, value: float, want: Any) -> None:
    body = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = memref.load %a[%c0] : memref<2x{type}, {GM}>
    memref.store %v, %a[%c1] : memref<2x{type}, {GM}>
    """
    a = np.array([want, np.zeros((), want.dtype)], want.dtype)
    assert float(want) == pytest.approx(value)
    launch(kernel(f"%a: memref<2x{type}, {GM}>", body), args=[a])
    assert a[1:].tobytes() == a[:1].tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize(("i", "j"), [(8, 0), (0, 16), (-1, 0)])
def test_an_index_outside_is_refused_and_nothing_changes(i: int, j: int) -> None:
    body = f"""
    %i = arith.constant {i} : index
    %j = arith.constant {j} : index
    %v = arith.constant 7.0 : f32
    memref.store %v, %a[%i, %j] : memref<8x16xf32, {GM}>
    """
    a = numbers(8, 16)
    assert code_of(kernel(f"%a: memref<8x16xf32, {GM}>", body), [a]) == "PTO-S190"
    np.testing.assert_array_equal(a, numbers(8, 16))


# ---- windows of global memory


def test_a_window_is_loaded_and_stored() -> None:
    body = f"""
    %r = arith.constant 2 : index
    %w = memref.subview %a[%r, 8] [4, 16] [1, 1] : memref<16x64xf32, {GM}> to memref<4x16xf32, strided<[64, 1], offset: ?>, {GM}>
    %o = memref.subview %b[0, 0] [4, 16] [1, 1] : memref<8x16xf32, {GM}> to memref<4x16xf32, strided<[16, 1]>, {GM}>
    %t = memref.alloc() : memref<4x16xf32, {UB}>
    pto.tload ins(%w : memref<4x16xf32, strided<[64, 1], offset: ?>, {GM}>) outs(%t : memref<4x16xf32, {UB}>)
    pto.tstore ins(%t : memref<4x16xf32, {UB}>) outs(%o : memref<4x16xf32, strided<[16, 1]>, {GM}>)
    memref.dealloc %t : memref<4x16xf32, {UB}>
    """
    a, b = numbers(16, 64), np.zeros((8, 16), np.float32)
    launch(kernel(f"%a: memref<16x64xf32, {GM}>, %b: memref<8x16xf32, {GM}>", body), args=[a, b])
    np.testing.assert_array_equal(b[:4], a[2:6, 8:24])
    assert not b[4:].any()


def test_a_window_with_steps_takes_every_second_row() -> None:
    body = f"""
    %w = memref.subview %a[1, 0] [4, 16] [2, 1] : memref<16x16xf32, {GM}> to memref<4x16xf32, strided<[32, 1], offset: 16>, {GM}>
    %t = memref.alloc() : memref<4x16xf32, {UB}>
    pto.tload ins(%w : memref<4x16xf32, strided<[32, 1], offset: 16>, {GM}>) outs(%t : memref<4x16xf32, {UB}>)
    pto.tstore ins(%t : memref<4x16xf32, {UB}>) outs(%b : memref<4x16xf32, {GM}>)
    """
    a, b = numbers(16, 16), np.zeros((4, 16), np.float32)
    launch(kernel(f"%a: memref<16x16xf32, {GM}>, %b: memref<4x16xf32, {GM}>", body), args=[a, b])
    np.testing.assert_array_equal(b, a[1:9:2])


def test_dimensions_of_size_one_may_be_left_out() -> None:
    body = f"""
    %n = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %w = memref.subview %a[%n, 0, 0] [1, 4, 8] [1, 1, 1] : memref<3x4x8xf32, {GM}> to memref<4x8xf32, strided<[8, 1], offset: ?>, {GM}>
    %v = arith.constant -1.0 : f32
    memref.store %v, %w[%c3, %c5] : memref<4x8xf32, strided<[8, 1], offset: ?>, {GM}>
    """
    a = numbers(3, 4, 8)
    launch(kernel(f"%a: memref<3x4x8xf32, {GM}>", body), args=[a])
    assert a[2, 3, 5] == -1 and (a == -1).sum() == 1


def test_a_window_outside_is_refused() -> None:
    body = f"""
    %r = arith.constant 13 : index
    %w = memref.subview %a[%r, 0] [4, 64] [1, 1] : memref<16x64xf32, {GM}> to memref<4x64xf32, strided<[64, 1], offset: ?>, {GM}>
    """
    assert code_of(kernel(f"%a: memref<16x64xf32, {GM}>", body), [numbers(16, 64)]) == "PTO-M006"


def test_new_sizes_and_strides_over_the_same_memory() -> None:
    """Four columns of an 8x16 matrix, as a 4x8 matrix of its own: a transposed view."""
    body = f"""
    %o = arith.constant 2 : index
    %w = memref.reinterpret_cast %a to offset: [%o], sizes: [4, 8], strides: [1, 16] : memref<8x16xf32, {GM}> to memref<4x8xf32, strided<[1, 16], offset: ?>, {GM}>
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %v = memref.load %w[%c1, %c7] : memref<4x8xf32, strided<[1, 16], offset: ?>, {GM}>
    %c0 = arith.constant 0 : index
    memref.store %v, %a[%c0, %c0] : memref<8x16xf32, {GM}>
    """
    a = numbers(8, 16)
    launch(kernel(f"%a: memref<8x16xf32, {GM}>", body), args=[a])
    assert a[0, 0] == numbers(8, 16)[7, 3]


def test_a_cast_is_the_same_buffer() -> None:
    body = f"""
    %w = memref.cast %a : memref<8x16xf32, {GM}> to memref<?x16xf32, {GM}>
    %c0 = arith.constant 0 : index
    %v = arith.constant -1.0 : f32
    memref.store %v, %w[%c0, %c0] : memref<?x16xf32, {GM}>
    """
    a = numbers(8, 16)
    launch(kernel(f"%a: memref<8x16xf32, {GM}>", body), args=[a])
    assert a[0, 0] == -1


# ---- local buffers


def local(body: str, results: str = "") -> tuple[Bench, list[Any]]:
    bench = Bench("a5")
    bench.core.memory(Space.UB).data[:] = 0xA5
    return bench, bench.run(body, results=results)


def tile_of(body: str, name: str, type: str) -> Tile:
    _, (found,) = local(body, f"%{name} : {type}")
    assert isinstance(found, Tile)
    return found


def test_a_local_buffer_is_a_row_major_tile() -> None:
    type = f"memref<2x8x64xf16, {UB}>"
    tile = tile_of(f"%z = arith.constant 64 : i64\n%m = pto.pointer_cast(%z) : {type}", "m", type)
    assert tile.type.shape == (16, 64) and str(tile.type.layout) == "ND"
    assert tile.address == 64 and tile.get_valid() == (16, 64)


def test_elements_of_a_local_buffer() -> None:
    type = f"memref<2x8x64xf32, {UB}>"
    body = f"""
    %z = arith.constant 0 : i64
    %m = pto.pointer_cast(%z) : {type}
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c9 = arith.constant 9 : index
    %v = arith.constant 2.5 : f32
    memref.store %v, %m[%c1, %c5, %c9] : {type}
    %w = memref.load %m[%c1, %c5, %c9] : {type}
    """
    bench, (value,) = local(body, "%w : f32")
    assert value == 2.5
    ub = bench.core.memory(Space.UB).data[: 16 * 64 * 4].view(np.float32)
    assert ub[(8 + 5) * 64 + 9] == 2.5
    assert (np.delete(ub, (8 + 5) * 64 + 9).view(np.uint8) == 0xA5).all()


def test_a_window_of_a_local_buffer_keeps_the_distance_of_its_rows() -> None:
    type = f"memref<16x64xf32, {UB}>"
    part = f"memref<4x16xf32, strided<[64, 1], offset: ?>, {UB}>"
    body = f"""
    %z = arith.constant 0 : i64
    %m = pto.pointer_cast(%z) : {type}
    %r = arith.constant 3 : index
    %w = memref.subview %m[%r, 8] [4, 16] [1, 1] : {type} to {part}
    %one = arith.constant 1.0 : f32
    pto.texpands ins(%one : f32) outs(%w : {part})
    """
    bench, _ = local(body)
    ub = bench.core.memory(Space.UB).data[: 16 * 64 * 4].view(np.float32).reshape(16, 64)
    assert (ub[3:7, 8:24] == 1).all()
    rest = np.ones((16, 64), bool)
    rest[3:7, 8:24] = False
    assert (ub[rest].view(np.uint8) == 0xA5).all()


def test_a_local_window_with_steps_is_no_tile() -> None:
    type = f"memref<16x64xf32, {UB}>"
    body = f"""
    %m = memref.alloc() : {type}
    %w = memref.subview %m[0, 0] [4, 64] [2, 1] : {type} to memref<4x64xf32, strided<[128, 1]>, {UB}>
    """
    assert code_of(kernel("", body), []) == "PTO-L190"


def test_a_kernel_cannot_allocate_global_memory() -> None:
    assert code_of(kernel("", f"%m = memref.alloc() : memref<4xf32, {GM}>"), []) == "PTO-M191"


# ---- tiles with their description beside them

CONFIG = "#pto.tile_buf_config<blayout=1 : i32, slayout=1 : i32, s_fractal_size=512, pad=1 : i32>"


def test_a_bound_tile_has_the_layout_and_pad_of_its_config() -> None:
    type = f"memref<16x32xf32, {UB}>"
    body = f"""
    %z = arith.constant 0 : i64
    %r = arith.constant 9 : index
    %c = arith.constant 20 : index
    %m = pto.pointer_cast(%z) : {type}
    %b = pto.bind_tile %m, %r, %c {{config = {CONFIG}}} : {type} -> {type}
    """
    tile = tile_of(body, "b", type)
    assert tile.type.layout.name == "NZ" and tile.type.pad.name == "zero"
    assert tile.get_valid() == (9, 20)


def test_a_materialised_tile_takes_its_type_from_the_result() -> None:
    type, boxed = f"memref<16x32xf32, {UB}>", "!pto.tile_buf<vec, 16x32xf32, valid=?x?>"
    body = f"""
    %z = arith.constant 0 : i64
    %r = arith.constant 9 : index
    %c = arith.constant 20 : index
    %m = pto.pointer_cast(%z) %r, %c : {type}
    %t = pto.materialize_tile %m : {type} -> {boxed}
    """
    assert tile_of(body, "t", boxed).get_valid() == (9, 20)


def test_a_materialised_window_is_the_first_part_of_its_source() -> None:
    type, part = f"memref<16x64xf32, {UB}>", "!pto.tile_buf<vec, 8x32xf32>"
    body = f"""
    %z = arith.constant 0 : i64
    %m = pto.pointer_cast(%z) : {type}
    %t = pto.materialize_tile %m {{pto.view_semantics = "subview"}} : {type} -> {part}
    %one = arith.constant 1.0 : f32
    pto.texpands ins(%one : f32) outs(%t : {part})
    """
    bench, _ = local(body)
    ub = bench.core.memory(Space.UB).data[: 16 * 64 * 4].view(np.float32).reshape(16, 64)
    assert (ub[:8, :32] == 1).all() and (ub[:8, 32:].view(np.uint8) == 0xA5).all()


def test_a_multiple_buffer_is_another_one_in_every_turn() -> None:
    type = f"memref<1x8xi32, {UB}>"
    body = f"""
    %a = arith.constant 0 : i64
    %b = arith.constant 1024 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c3 step %c1 {{
      %m = pto.pointer_cast(%a, %b) : {type}
      %v0 = arith.index_cast %i : index to i32
      memref.store %v0, %m[%c0, %c0] : {type}
    }}
    """
    bench, _ = local(body)
    ub = bench.core.memory(Space.UB).data.view(np.int32)
    assert ub[0] == 2 and ub[256] == 1


def test_a_tile_as_a_memref_is_the_same_memory() -> None:
    tile, memref = "!pto.tile_buf<vec, 8x16xf32>", f"memref<8x16xf32, {UB}>"
    bench = Bench("a5")
    bench.tile("t", "vec, 8x16xf32", numbers(8, 16))
    body = f"""
    %m = pto.simd.tile_to_memref %t : {tile} to {memref}
    %i = arith.constant 3 : index
    %v = memref.load %m[%i, %i] : {memref}
    """
    assert bench.run(body, results="%v : f32")[0] == 3 * 16 + 3


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_a_kernel_of_memrefs_alone(arch: str) -> None:
    """out = a + b, lowered as a compiler would."""
    tile, whole = f"memref<16x64xf32, {UB}>", f"memref<32x64xf32, {GM}>"
    part = f"memref<16x64xf32, strided<[64, 1], offset: ?>, {GM}>"
    body = f"""
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    scf.for %r = %c0 to %c32 step %c16 {{
      %wa = memref.subview %a[%r, 0] [16, 64] [1, 1] : {whole} to {part}
      %wb = memref.subview %b[%r, 0] [16, 64] [1, 1] : {whole} to {part}
      %wo = memref.subview %o[%r, 0] [16, 64] [1, 1] : {whole} to {part}
      %ta = memref.alloc() : {tile}
      %tb = memref.alloc() : {tile}
      pto.tload ins(%wa : {part}) outs(%ta : {tile})
      pto.tload ins(%wb : {part}) outs(%tb : {tile})
      pto.tadd ins(%ta, %tb : {tile}, {tile}) outs(%ta : {tile})
      pto.tstore ins(%ta : {tile}) outs(%wo : {part})
    }}
    """
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 64)).astype(np.float32) for _ in range(2))
    out = np.zeros_like(a)
    launch(kernel(f"%a: {whole}, %b: {whole}, %o: {whole}", body, arch), args=[a, b, out])
    np.testing.assert_array_equal(out, a + b)


# ---- where a pointer could stand


def test_a_memref_is_the_address_of_its_first_element() -> None:
    body = f"""
    %c3 = arith.constant 3 : index
    %w = memref.subview %a[1, 0] [1, 16] [1, 1] : memref<8x16xf32, {GM}> to memref<16xf32, strided<[1], offset: 16>, {GM}>
    %v = arith.constant 9.0 : f32
    pto.store_scalar %v, %w[%c3] : memref<16xf32, strided<[1], offset: 16>, {GM}>, f32
    """
    a = numbers(8, 16)
    launch(kernel(f"%a: memref<8x16xf32, {GM}>", body), args=[a])
    assert a[1, 3] == 9 and (a == 9).sum() == 2


def test_registers_load_from_a_memref_of_a_tile() -> None:
    tile, memref = "!pto.tile_buf<vec, 8x64xf32>", f"memref<8x64xf32, {UB}>"
    bench = Bench("a5")
    bench.tile("t", "vec, 8x64xf32", numbers(8, 64))
    body = f"""
    %m = pto.simd.tile_to_memref %t : {tile} to {memref}
    %at = arith.constant 128 : index
    pto.vecscope {{
      %v = pto.vlds %m[%at] : {memref} -> !pto.vreg<64xf32>
      %p = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %c0 = arith.constant 0 : index
      pto.vsts %v, %m[%c0], %p : !pto.vreg<64xf32>, {memref}, !pto.mask<b32>
    }}
    """
    bench.run(body)
    np.testing.assert_array_equal(bench["t"][0], numbers(8, 64)[2])
