"""Products of tiles on the fast engine: the same bits as on the reference, in every shape."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from examples import gemm_mx, gemm_mx_fp4
from pto import isa
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from tests.run.jit.both import agree, same
from tests.run.jit.tiles import Tile
from tests.run.jit.tiles import program as tile_program

KINDS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "i8": np.int8,
}


def program(kind: str, m: int, k: int, n: int, profile: str, extra: str = "") -> Module:
    """a x b, perhaps twice, of which only m x k and k x n elements are valid."""
    elem, into = getattr(pto, kind), pto.i32 if kind == "i8" else pto.f32

    @pto.kernel(profile=profile)
    def product(a: pto.Global, b: pto.Global, c: pto.Global) -> None:
        a_mat = pto.tile(64, 64, elem, role="mat")
        b_mat = pto.tile(64, 128, elem, role="mat")
        left = pto.tile(64, 64, elem, role="left")
        right = pto.tile(64, 128, elem, role="right")
        acc = pto.tile(64, 128, into, role="acc")
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        if extra == "acc":
            isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(c[:, :], acc)

    kinds = KINDS[kind], np.int32 if kind == "i8" else np.float32
    arrays = [np.zeros((m, k), kinds[0]), np.zeros((k, n), kinds[0]), np.zeros((m, n), kinds[1])]
    return product.module(*arrays)


def factors(kind: str, m: int, k: int, n: int) -> list[Any]:
    rng = np.random.default_rng(m + k + n)
    if kind == "i8":
        draw = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n))]
        return [*draw, np.zeros((m, n), np.int32)]
    spread = 10.0 ** rng.integers(-4, 4, (m, k)) if kind == "f32" else 1.0
    a = (rng.standard_normal((m, k)) * spread).astype(KINDS[kind])
    b = rng.standard_normal((k, n)).astype(KINDS[kind])
    return [a, b, np.zeros((m, n), np.float32)]


@pytest.mark.parametrize("profile", ["a5", "a2a3"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape", [(64, 64, 128), (33, 40, 70), (1, 1, 1), (17, 64, 16), (5, 47, 33)]
)
def test_products_of_every_type_and_shape(
    kind: str, shape: tuple[int, int, int], profile: str
) -> None:
    agree(program(kind, *shape, profile), factors(kind, *shape), all_native=False)


@pytest.mark.parametrize("kind", KINDS)
def test_products_onto_what_is_there(kind: str) -> None:
    shape = (33, 40, 70)
    agree(program(kind, *shape, "a5", "acc"), factors(kind, *shape), all_native=False)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_products_at_the_ends_of_the_range(kind: str) -> None:
    a, b, c = factors(kind, 33, 40, 70)
    tiny, huge = np.float32(2.0**-75), np.float32(2.0**100)
    a[0], b[:, 0] = a[0] * KINDS[kind](tiny), b[:, 0] * KINDS[kind](tiny)
    a[1], b[:, 1] = KINDS[kind](huge), KINDS[kind](-huge)
    a[2, :3] = [np.inf, -np.inf, np.nan]
    agree(program(kind, 33, 40, 70, "a5"), [a, b, c], all_native=False)


@pytest.mark.parametrize("spread", [4, 120], ids=["scales near 1", "scales at the ends"])
def test_products_with_block_scales(spread: int) -> None:
    rng = np.random.default_rng(spread)
    m, k, n = gemm_mx.M, 128, gemm_mx.N
    a = rng.standard_normal((m, k)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((k, n)).astype(ml_dtypes.float8_e4m3fn)
    scales = [
        rng.integers(127 - spread, 128 + spread, shape).astype(np.uint8)
        for shape in ((m, k // 32), (k // 32, n))
    ]
    left, right = (x.view(ml_dtypes.float8_e8m0fnu) for x in scales)
    found: list[Any] = []
    for engine in ("reference", "jit"):
        c = np.zeros((m, n), np.float32)
        report = gemm_mx.gemm_mxfp8.run(a, left, b, right, c, engine=engine)
        found.append(c)
    assert not report.left_out
    same(found[1], found[0])


@pytest.mark.parametrize("spread", [4, 120], ids=["scales near 1", "scales at the ends"])
def test_products_of_pairs_of_four_bits(spread: int) -> None:
    """Every byte is two elements along k."""
    rng = np.random.default_rng(spread)
    m, k, n = gemm_mx_fp4.M, 128, 2 * gemm_mx_fp4.N
    a, b = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((m, k // 2), (k // 2, n)))
    shapes = (m, k // 32), (k // 32, n)
    scales = [rng.integers(127 - spread, 128 + spread, each).astype(np.uint8) for each in shapes]
    left, right = (x.view(ml_dtypes.float8_e8m0fnu) for x in scales)
    found: list[Any] = []
    for engine in ("reference", "jit"):
        c = np.zeros((m, n), np.float32)
        report = gemm_mx_fp4.gemm_mxfp4.run(a, left, b, right, c, engine=engine, blocks=2)
        found.append(c)
    assert not report.left_out
    same(found[1], found[0])


def test_scales_for_the_valid_part_of_a_factor() -> None:
    """The left tile has room for 256 along k; 64 are valid, and there are scales for those."""
    tiles = [
        Tile("a", 1, 256, "f8E4M3FN", "NZ", (1, 64), "left"),
        Tile("b", 64, 32, "f8E5M2", "ZN", (64, 16), "right"),
        Tile("s", 1, 2, "!pto.f8E8M0", "ZZ", None, "scale_left", fractal=32),
        Tile("t", 2, 32, "!pto.f8E8M0", "NN", (2, 16), "scale_right", fractal=32),
        Tile("c", 1, 32, "f32", "NZ", (1, 16), "acc", fractal=1024),
    ]
    a, b, left, right, c = tiles
    ins = ", ".join(f"%{tile.name}" for tile in (a, left, b, right))
    types = ", ".join(tile.type for tile in (a, left, b, right))
    body = f"pto.tgemv.mx ins({ins} : {types}) outs({c.ref()})"
    rng = np.random.default_rng(4)
    args: list[Any] = []
    for tile in tiles:
        args += [rng.integers(100, 140, tile.nbytes, np.uint8), np.zeros(tile.nbytes, np.uint8)]
    agree(tile_program([], tiles, body), args, check=False)


STORED: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


@pytest.mark.parametrize("how", ["word", "column", "fp"])
@pytest.mark.parametrize("out", STORED)
@pytest.mark.parametrize("kind", ["i8", "f16"])
def test_products_scaled_on_their_way_to_memory(kind: str, out: str, how: str) -> None:
    """A word for all, or one a column: f32, an offset in bits 37 to 45, bit 46 where signed."""
    elem, into = getattr(pto, kind), pto.i32 if kind == "i8" else pto.f32
    m, k, n = 20, 64, 96

    @pto.kernel(profile="a5")
    def scaled(a: pto.Global, b: pto.Global, w: pto.Global, word: pto.i64, c: pto.Global) -> None:
        a_mat, b_mat = pto.tile(32, k, elem, role="mat"), pto.tile(k, n, elem, role="mat")
        left, right = pto.tile(32, k, elem, role="left"), pto.tile(k, n, elem, role="right")
        acc = pto.tile(32, n, into, role="acc")
        words = pto.tile(1, n, pto.u64, role="mat")
        scaling = pto.tile(1, n, pto.u64, role="scaling")
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tload(words, w[:])
        isa.tmov(scaling, words)
        if how == "word":
            isa.tstore(c[:, :], acc, preQuantScalar=word, reluPreMode="normal_relu")
        elif how == "column":
            isa.tstore(c[:, :], acc, fp=scaling)
        else:
            isa.tstore_fp(c[:, :], acc, scaling, reluPreMode="normal_relu")

    a, b, _ = factors(kind, m, k, n)
    random = np.random.default_rng(5)
    scales = random.uniform(-2e-3, 2e-3, n).astype(np.float32).view(np.uint32).astype(np.uint64)
    offsets = random.integers(0, 512, n).astype(np.uint64) << np.uint64(37)
    words = scales | np.uint64(1 << 46) | (offsets if out == "i8" else np.uint64(0))
    given = [a, b, words, int(words[3]), np.ones((m, n), STORED[out])]
    agree(scaled.module(*given), given)


_STOP = "pto.barrier #pto.pipe<PIPE_ALL>"


@pytest.mark.parametrize("rows", [16, 1])
def test_accumulators_of_tiles_are_stored_by_pointer(rows: int) -> None:
    """L0C has boxes of 16 x 16, of which one row is the first; a tile that names none has them."""
    boxes = ", blayout=col_major, slayout=row_major"
    a, b, c = (f"{rows}x32xf16{boxes}", f"32x48xf16{boxes}", f"{rows}x48xf32{boxes}")
    left, right = f"!pto.tile_buf<left, {a}>", "!pto.tile_buf<right, 32x48xf16, slayout=col_major>"
    module = parse(f"""
!a = !pto.tile_buf<mat, {a}>
!b = !pto.tile_buf<mat, {b}>
!c = !pto.tile_buf<acc, {c}>
!x = !pto.partition_tensor_view<{rows}x32xf16>
!y = !pto.partition_tensor_view<32x48xf16>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<cube>}} {{
  func.func @product(%x: !pto.ptr<f16>, %y: !pto.ptr<f16>, %z: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %m = arith.constant {rows} : index
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant {rows} : i64
    %i16 = arith.constant 16 : i64
    %i48 = arith.constant 48 : i64
    %far = arith.constant 4096 : i64
    %xv = pto.make_tensor_view %x, shape = [%m, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<?x?xf16>
    %yv = pto.make_tensor_view %y, shape = [%c32, %c48], strides = [%c48, %c1]
      : !pto.tensor_view<?x?xf16>
    %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%m, %c32]
      : !pto.tensor_view<?x?xf16> -> !x
    %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c32, %c48]
      : !pto.tensor_view<?x?xf16> -> !y
    %a = pto.alloc_tile addr = %i0 : !a
    %b = pto.alloc_tile addr = %far : !b
    %l = pto.alloc_tile addr = %i0 : {left}
    %r = pto.alloc_tile addr = %i0 : {right}
    %c = pto.alloc_tile addr = %i0 : !c
    pto.tload ins(%xp : !x) outs(%a : !a)
    pto.tload ins(%yp : !y) outs(%b : !b)
    {_STOP}
    pto.tmov ins(%a : !a) outs(%l : {left})
    pto.tmov ins(%b : !b) outs(%r : {right})
    {_STOP}
    pto.{"tgemv" if rows == 1 else "tmatmul"} ins(%l, %r : {left}, {right}) outs(%c : !c)
    {_STOP}
    %p = pto.tile_buf_addr %c : !c -> !pto.ptr<f32, l0c>
    pto.mte_l0c_gm %p, %z, %i1, %i48, %i16, %i48, %i0, %i0, nz2nd
      : !pto.ptr<f32, l0c>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64
    return
  }}
}}""")
    rng = np.random.default_rng(rows)
    x = rng.integers(-9, 9, (rows, 32)).astype(np.float16)
    y = rng.integers(-9, 9, (32, 48)).astype(np.float16)
    *_, z = agree(module, [x, y, np.zeros((rows, 48), np.float32)], all_native=False)
    assert np.array_equal(z, x.astype(np.float32) @ y.astype(np.float32))


_NZ = "blayout=col_major, slayout=row_major, fractal"
_ONE_ROW = f"""
!va = !pto.partition_tensor_view<1x16xf16>
!vb = !pto.partition_tensor_view<16x64xf16>
!vc = !pto.partition_tensor_view<1x64xf32>
!ma = !pto.tile_buf<mat, 16x16xf16, valid=1x16, {_NZ}=512>
!mb = !pto.tile_buf<mat, 16x64xf16, {_NZ}=512>
!l = !pto.tile_buf<left, 16x16xf16, valid=1x16, {_NZ}=512>
!r = !pto.tile_buf<right, 16x64xf16, blayout=row_major, slayout=col_major, fractal=512>
!acc = !pto.tile_buf<acc, 1x64xf32, {_NZ}=1024, compact=1>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f(%a: !pto.ptr<f16>, %b: !pto.ptr<f16>, %c: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k = arith.constant 16 : index
    %n = arith.constant 64 : index
    %ta = pto.make_tensor_view %a, shape = [%c1, %k], strides = [%k, %c1] : !pto.tensor_view<1x16xf16>
    %tb = pto.make_tensor_view %b, shape = [%k, %n], strides = [%n, %c1] : !pto.tensor_view<16x64xf16>
    %tc = pto.make_tensor_view %c, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<1x64xf32>
    %wa = pto.partition_view %ta, offsets = [%c0, %c0], sizes = [%c1, %k] : !pto.tensor_view<1x16xf16> -> !va
    %wb = pto.partition_view %tb, offsets = [%c0, %c0], sizes = [%k, %n] : !pto.tensor_view<16x64xf16> -> !vb
    %wc = pto.partition_view %tc, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<1x64xf32> -> !vc
    %ma = pto.alloc_tile : !ma
    %mb = pto.alloc_tile : !mb
    %l = pto.alloc_tile : !l
    %r = pto.alloc_tile : !r
    %acc = pto.alloc_tile : !acc
    pto.tload ins(%wa : !va) outs(%ma : !ma)
    pto.tload ins(%wb : !vb) outs(%mb : !mb)
    pto.tmov ins(%ma : !ma) outs(%l : !l)
    pto.tmov ins(%mb : !mb) outs(%r : !r)
    pto.tmatmul ins(%l, %r : !l, !r) outs(%acc : !acc)
    pto.tstore ins(%acc : !acc) outs(%wc : !vc)
    return
  }}
}}
"""  # noqa: E501


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_row_of_an_accumulator_takes_whole_boxes(engine: str):
    """L0C has whole boxes, so the second strip of columns begins 16 rows behind the first."""
    a, b = np.arange(16, dtype=np.float16)[None], np.arange(1024).reshape(16, 64) % 13
    out = np.zeros((1, 64), np.float32)
    pto.launch(parse(_ONE_ROW), args=[a, b.astype(np.float16), out], engine=engine)
    assert (out == a.astype(np.float32) @ b.astype(np.float32)).all()
