"""The programs that benches time: one instruction many times over, attention, workloads."""

from __future__ import annotations

from typing import Any

import pto
from examples import flash_attention as flash
from pto import isa

Kernel = Any  # a traced kernel: the number of turns is its last argument


def unary(op: str, out: Any = pto.f32, size: int = 64, column: bool = False) -> Kernel:
    instruction = getattr(isa, op)

    @pto.kernel(profile="a5")
    def many(x: pto.Global[pto.f32], n: int) -> None:
        a = pto.tile(size, size, pto.f32)
        d = pto.tile(size, 1, out, layout="DN") if column else pto.tile(size, size, out)
        isa.tload(a, x[:, :])
        for _ in pto.range(n):
            instruction(d, a)

    return many


def binary(op: str, size: int = 64, column: bool = False) -> Kernel:
    """With `column`, the second source has one value a row."""
    instruction = getattr(isa, op)

    @pto.kernel(profile="a5")
    def many(x: pto.Global[pto.f32], n: int) -> None:
        a, d = pto.tile(size, size, pto.f32), pto.tile(size, size, pto.f32)
        b = pto.tile(size, 1, pto.f32, layout="DN") if column else pto.tile(size, size, pto.f32)
        isa.tload(a, x[:, :])
        if column:
            isa.trowmax(b, a)
        else:
            isa.tload(b, x[:, :])
        for _ in pto.range(n):
            instruction(d, a, b)

    return many


@pto.kernel(profile="a5")
def softmax_tiles(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """W2: tiles of 64 x 128, one after the other."""
    for i in pto.range(0, x.shape[0], 64):
        t = pto.tile(64, 128, pto.f32)
        most, total = pto.tile(64, 1, pto.f32, layout="DN"), pto.tile(64, 1, pto.f32, layout="DN")
        isa.tload(t, x[i : i + 64, :])
        isa.trowmax(most, t)
        isa.trowexpandsub(t, t, most)
        isa.texp(t, t)
        isa.trowsum(total, t)
        isa.trowexpanddiv(t, t, total)
        isa.tstore(y[i : i + 64, :], t)


def tiled_product(kind: Any, into: Any, size: int, deep: int) -> Kernel:
    """Tiles of size x deep by deep x size, from row-major memory to fractal tiles."""

    @pto.kernel(profile="a5")
    def gemm(a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any]) -> None:
        for i in pto.range(0, a.shape[0], size):
            for j in pto.range(0, b.shape[1], size):
                acc = pto.tile(size, size, into, role="acc")
                for k in pto.range(0, a.shape[1], deep):
                    a_mat = pto.tile(size, deep, kind, role="mat")
                    b_mat = pto.tile(deep, size, kind, role="mat")
                    left = pto.tile(size, deep, kind, role="left")
                    right = pto.tile(deep, size, kind, role="right")
                    isa.tload(a_mat, a[i : i + size, k : k + deep])
                    isa.tload(b_mat, b[k : k + deep, j : j + size])
                    isa.tmov(left, a_mat)
                    isa.tmov(right, b_mat)
                    if k == 0:
                        isa.tmatmul(acc, left, right)
                    else:
                        isa.tmatmul_acc(acc, acc, left, right)
                isa.tstore(c[i : i + size, j : j + size], acc)

    return gemm


def product_of_kept(kind: Any, into: Any, size: int, deep: int) -> Kernel:
    """The same, where L1 has room for all tiles of a row of the left factor: each loads once."""

    @pto.kernel(profile="a5")
    def gemm(a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any]) -> None:
        steps = range(0, a.shape[1], deep)
        for i in pto.range(0, a.shape[0], size):
            kept = [pto.tile(size, deep, kind, role="mat") for _ in steps]
            for k, held in zip(steps, kept, strict=True):
                isa.tload(held, a[i : i + size, k : k + deep])
            for j in pto.range(0, b.shape[1], size):
                acc = pto.tile(size, size, into, role="acc")
                for k, held in zip(steps, kept, strict=True):
                    left = pto.tile(size, deep, kind, role="left")
                    isa.tmov(left, held)
                    (right,) = _rights((b[k:, j:], deep, size), kind=kind)
                    if k == 0:
                        isa.tmatmul(acc, left, right)
                    else:
                        isa.tmatmul_acc(acc, acc, left, right)
                isa.tstore(c[i : i + size, j : j + size], acc)

    return gemm


gemm = tiled_product(pto.bf16, pto.f32, 128, 128)  # W3


@pto.kernel(profile="a5")
def layernorm(
    x: pto.Global[pto.f32],
    weight: pto.Global[pto.f32],
    bias: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
) -> None:
    """Rows of 1,024, sixteen at a time."""
    for i in pto.range(0, x.shape[0], 16):
        t = pto.load(x[i : i + 16, :], 16, 1024)
        t -= t.mean(axis=1)
        scale = pto.rsqrt((t * t).mean(axis=1) + 1e-5)
        pto.store(y[i : i + 16, :], t * scale * pto.load(weight, 1024) + pto.load(bias, 1024))


C0, TAPS = 16, 9  # channels of a group, places of a filter


@pto.kernel(profile="a5")
def convolution(
    x: pto.Global[pto.f16], filters: pto.Global[pto.f16], y: pto.Global[pto.f32]
) -> None:
    """3 x 3, padded by one: `x` has a row for each group of channels and line, `filters` for each
    group, tap and channel, `y` for each pixel."""
    k, pixels, n = TAPS * C0, 224, filters.shape[1]
    groups, width = filters.shape[0] // k, x.shape[1] // C0
    height = x.shape[0] // groups
    image = pto.tile(*x.shape, pto.f16, role="mat", layout="ND")
    weights = pto.tile(*filters.shape, pto.f16, role="mat")
    isa.tload(image, x[:, :])
    isa.tload(weights, filters[:, :])
    tiles = 2 if height * width % (2 * pixels) == 0 else 1  # that a right factor is good for
    for m in pto.range(0, height * width, tiles * pixels):
        accs = [pto.tile(pixels, n, pto.f32, role="acc") for _ in range(tiles)]
        left = pto.tile(pixels, k, pto.f16, role="left")
        right = pto.tile(k, n, pto.f16, role="right")
        for group in range(groups):
            pads = dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 1)
            isa.textract(right, weights, group * k, 0)
            for turn, acc in enumerate(accs):
                at = (groups, height, width, m + turn * pixels, group * k)
                isa.timg2col(left, image, *at, filter_h=3, filter_w=3, **pads)
                if group == 0:
                    isa.tmatmul(acc, left, right)
                else:
                    isa.tmatmul_acc(acc, acc, left, right)
        for turn, acc in enumerate(accs):
            first = m + turn * pixels
            isa.tstore(y[first : first + pixels, :], acc)


# W1: %ub holds three arrays of ROWS x 64 floats
ROWS = 256
VECTOR_ADD = f"""
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @add(%a: !pto.ptr<f32, gm>, %n: i32, %turns: index) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %size = arith.constant {ROWS * 64} : index
    %zero = arith.constant 0 : i64
    %x = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %y = pto.addptr %x, %size : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
    %z = pto.addptr %y, %size : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
    pto.vecscope {{
      scf.for %t = %c0 to %turns step %c1 {{
        scf.for %i = %c0 to %size step %c64 {{
          %m, %left = pto.plt_b32 %n : i32 -> !pto.mask<b32>, i32
          %p = pto.vlds %x[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
          %q = pto.vlds %y[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
          %r = pto.vadd %p, %q, %m
            : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
          pto.vsts %r, %z[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
        }}
      }}
    }}
    return
  }}
}}
"""
PER_ROW = 5  # plt, vlds, vlds, vadd, vsts


def attention(rows: int, chunk: int, tiles: int = 1, *, once: bool = False) -> Kernel:
    """`examples/flash_attention.py` as one function: what its queues carry stays where it is. So
    many rows a tile, keys a turn, and tiles of a block that go over the same keys; `once`: queries
    are scaled, not all scores."""

    @pto.kernel(profile="a5")
    def alone(
        q: pto.Global[pto.f16],
        kt: pto.Global[pto.f16],
        v: pto.Global[pto.f16],
        o: pto.Global[pto.f32],
    ) -> None:
        depth = flash.DEPTH
        firsts = [(pto.block_idx() * tiles + n) * rows for n in range(tiles)]
        scale = depth**-0.5
        states = [_begun(q[first:, :], rows, depth, scale if once else 1) for first in firsts]
        scores, part = pto.tile(rows, chunk, pto.f32), pto.tile(rows, depth, pto.f32)
        half, boxed = pto.tile(rows, chunk, pto.f16), pto.tile(rows, chunk, pto.f16, role="mat")
        weights = pto.tile(rows, chunk, pto.f16, role="left")
        now, now_row = _column(rows)
        shrink, shrink_row = _column(rows)
        for j in pto.range(0, kt.shape[1], chunk):
            keys, values = _rights((kt[:, j:], depth, chunk), (v[j:, :], chunk, depth))
            for queries, out, (highest, highest_row), (_, total_row) in states:
                isa.tmov(scores, _product(queries, keys))
                if not once:
                    isa.tmuls(scores, scores, scale)
                isa.trowmax(now, scores)
                isa.tmax(now_row, now_row, highest_row)
                isa.tsub(shrink_row, highest_row, now_row)
                isa.texp(shrink_row, shrink_row)
                isa.tmax(highest_row, highest_row, now_row)
                isa.trowexpandsub(scores, scores, highest)
                isa.texp(scores, scores)
                isa.tcvt(half, scores)
                isa.tmov(boxed, half)
                isa.tmov(weights, boxed)
                isa.trowsum(now, scores)
                isa.tmul(total_row, total_row, shrink_row)
                isa.tadd(total_row, total_row, now_row)
                isa.tmov(part, _product(weights, values))
                isa.trowexpandmul(out, out, shrink)
                isa.tadd(out, out, part)
        for first, (_, out, _, (total, _)) in zip(firsts, states, strict=True):
            isa.trowexpanddiv(out, out, total)
            isa.tstore(o[first : first + rows, :], out)

    return alone


def _begun(q: Any, rows: int, depth: int, scale: float) -> tuple[Any, Any, Any, Any]:
    """Queries where the cube wants them, and output, greatest score and sum of weights so far."""
    queries, out = pto.tile(rows, depth, pto.f16, role="mat"), pto.tile(rows, depth, pto.f32)
    left = pto.tile(rows, depth, pto.f16, role="left")
    if scale == 1:
        isa.tload(queries, q)
    else:
        given = pto.tile(rows, depth, pto.f16)
        isa.tload(given, q)
        isa.tmuls(given, given, scale)
        isa.tmov(queries, given)
    isa.tmov(left, queries)
    highest, total = _column(rows), _column(rows)
    isa.texpands(highest[1], float("-inf"))
    isa.texpands(total[1], 0.0)
    isa.texpands(out, 0.0)
    return left, out, highest, total


def _rights(*windows: tuple[Any, int, int], kind: Any = pto.f16) -> list[Any]:
    """Windows of memory, and their sizes, where the cube wants right factors: loads come first."""
    held = [pto.tile(*size, kind, role="mat") for _, *size in windows]
    rights = [pto.tile(*size, kind, role="right") for _, *size in windows]
    for mat, (window, *_) in zip(held, windows, strict=True):
        isa.tload(mat, window)
    for right, mat in zip(rights, held, strict=True):
        isa.tmov(right, mat)
    return rights


def _product(left: Any, right: Any) -> Any:
    acc = pto.tile(left.rows, right.cols, pto.f32, role="acc")
    isa.tmatmul(acc, left, right)
    return acc


def _column(rows: int) -> tuple[Any, Any]:
    tall = pto.tile(rows, 1, pto.f32, layout="DN")
    return tall, isa.treshape(tall, to=pto.tile_type(1, rows, pto.f32))


attention_alone = attention(flash.ROWS, flash.CHUNK)
