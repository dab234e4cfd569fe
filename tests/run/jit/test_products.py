"""Products of tiles on the fast engine: the same bits as on the reference, in every shape."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from examples import gemm_mx
from pto.ir.graph import Module
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
        pto.tload(a_mat, a[:, :])
        pto.tload(b_mat, b[:, :])
        pto.tmov(left, a_mat)
        pto.tmov(right, b_mat)
        pto.tmatmul(acc, left, right)
        if extra == "acc":
            pto.tmatmul_acc(acc, acc, left, right)
        pto.tstore(c[:, :], acc)

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
