"""The kernels of examples/gallery by instructions, in place, as one writes them by hand.

They do the same job: tiles that nothing is loaded into get the valid region of their data by hand.
"""

# ruff: noqa: F821 (names of sizes stand in annotations)

import pto
from pto import isa

Matrix = pto.Global[pto.f32, "m", "n"]
Row = pto.Global[pto.f32, "n"]
Half, Single = pto.Global[pto.f16, "h", "s", 64], pto.Global[pto.f32, "h", "s", 64]
Turned, Room = pto.Global[pto.f16, "h", 64, "s"], pto.Global[pto.f16, "b", 32, 32]


def _tiles(count: int, rows: int, cols: int, kind=pto.f32, **how):
    return [pto.tile(rows, cols, kind, **how) for _ in range(count)]


def _left(size, start, most: int):
    """How many of `most` there are from a start on."""
    return pto.min(pto.max(size - start, 0), most)


@pto.kernel
def gelu_tanh(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t, u = _tiles(2, 16, 256)
    isa.tload(t, x[i:, j:])
    isa.tmuls(u, t, 0.044715)
    isa.tmul(u, u, t)
    isa.tmul(u, u, t)
    isa.tadd(u, u, t)
    isa.tmuls(u, u, -1.5957691216057308)
    isa.texp(u, u)
    isa.tadds(u, u, 1.0)
    isa.tdiv(t, t, u)
    isa.tstore(y[i:, j:], t)


@pto.kernel
def gelu_erf(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t, a, z, k, p = _tiles(5, 16, 256)
    isa.tload(t, x[i:, j:])
    isa.tabs(a, t)
    isa.tmuls(z, a, 0.7071067811865476)
    isa.tmuls(p, z, 0.3275911)
    isa.tadds(p, p, 1.0)
    isa.tdivs(k, 1.0, p)  # on a2a3 not in place: the result is filled with the number first
    isa.tmuls(p, k, 1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        isa.tadds(p, p, term)
        isa.tmul(p, p, k)
    isa.tmul(z, z, z)
    isa.tmuls(z, z, -1.0)
    isa.texp(z, z)
    isa.tmul(p, p, z)
    isa.tmuls(a, a, 0.5)
    isa.tmul(a, a, p)
    isa.trelu(t, t)
    isa.tsub(t, t, a)
    isa.tstore(y[i:, j:], t)


def _column(rows: int):
    """One number a row, as a column and, over the same bytes, as a row to compute with."""
    tall = pto.tile(rows, 1, pto.f32, layout="DN")
    return tall, isa.treshape(tall, to=pto.tile_type(1, rows, pto.f32))


def _mean_of_squares(t, squares, column, row, count) -> None:
    isa.tmul(squares, t, t)
    isa.trowsum(column, squares)
    isa.tdivs(row, row, count)
    isa.tadds(row, row, 1e-5)
    isa.tsqrt(row, row)


@pto.kernel
def rmsnorm(x: Matrix, weight: Row, y: Matrix) -> None:
    i = pto.block_idx() * 16
    t, squares = _tiles(2, 16, 512)
    column, row = _column(16)
    w = pto.tile(1, 512, pto.f32)
    isa.tload(t, x[i:, :])
    _mean_of_squares(t, squares, column, row, x.shape[1].to(pto.f32))
    isa.trowexpanddiv(t, t, column)
    isa.tload(w, weight)
    isa.tcolexpandmul(t, t, w)
    isa.tstore(y[i:, :], t)


@pto.kernel
def layernorm(x: Matrix, weight: Row, bias: Row, y: Matrix) -> None:
    i = pto.block_idx() * 16
    t, squares = _tiles(2, 16, 512)
    column, row = _column(16)
    w, b = _tiles(2, 1, 512)
    count = x.shape[1].to(pto.f32)
    isa.tload(t, x[i:, :])
    isa.trowsum(column, t)
    isa.tdivs(row, row, count)
    isa.trowexpandsub(t, t, column)
    _mean_of_squares(t, squares, column, row, count)
    isa.trowexpanddiv(t, t, column)
    isa.tload(w, weight)
    isa.tcolexpandmul(t, t, w)
    isa.tload(b, bias)
    isa.tcolexpandadd(t, t, b)
    isa.tstore(y[i:, :], t)


@pto.kernel
def column_mean(x: Matrix, y: Row) -> None:
    j = pto.block_idx() * 128
    total, part = _tiles(2, 1, 128)
    t = pto.tile(64, 128, pto.f32)
    pto.set_validshape(total, 1, _left(x.shape[1], j, 128))
    isa.texpands(total, 0.0)
    for i in pto.range(0, x.shape[0], 64):
        isa.tload(t, x[i:, j:])
        isa.tcolsum(part, t)
        isa.tadd(total, total, part)
    isa.tdivs(total, total, x.shape[0].to(pto.f32))
    isa.tstore(y[j:], total)


@pto.kernel
def cumsum_axis0(x: Matrix, y: Matrix) -> None:
    j = pto.block_idx() * 256
    total, row = _tiles(2, 1, 256)
    pto.set_validshape(total, 1, _left(x.shape[1], j, 256))
    isa.texpands(total, 0.0)
    for i in pto.range(x.shape[0]):
        isa.tload(row, x[i, j:])
        isa.tadd(total, total, row)
        isa.tstore(y[i, j:], total)


@pto.kernel
def cumsum_axis1(x: Matrix, y: Matrix) -> None:
    i = pto.block_idx() * 64
    total = pto.tile(1, 64, pto.f32)
    t, turned = _tiles(2, 64, 64)
    pto.set_validshape(total, 1, _left(x.shape[0], i, 64))
    isa.texpands(total, 0.0)
    for j in pto.range(0, x.shape[1], 64):
        isa.tload(t, x[i:, j:])
        isa.ttrans(turned, t)
        for r in pto.range(turned.valid[0]):
            line = turned[r : r + 1, :]
            isa.tadd(total, total, line)
            isa.tmov(line, total)
        isa.ttrans(t, turned)
        isa.tstore(y[i:, j:], t)


def _product(a, b, acc, k, tiles) -> None:
    a_mat, b_mat, left, right = tiles
    isa.tload(a_mat, a)
    isa.tload(b_mat, b)
    isa.tmov(left, a_mat)
    isa.tmov(right, b_mat)
    if k == 0:
        isa.tmatmul(acc, left, right)
    else:
        isa.tmatmul_acc(acc, acc, left, right)


def _operands(m: int, k: int, n: int, kind):
    shapes = (((m, k), "mat"), ((k, n), "mat"), ((m, k), "left"), ((k, n), "right"))
    return [pto.tile(*shape, kind, role=role) for shape, role in shapes]


@pto.kernel
def batched_gemm(
    x: pto.Global[pto.f16, "b", "m", "k"],
    y: pto.Global[pto.f16, "b", "k", "n"],
    z: pto.Global[pto.f32, "b", "m", "n"],
) -> None:
    i, j, b = pto.block_idx(0) * 64, pto.block_idx(1) * 128, pto.block_idx(2)
    acc = pto.tile(64, 128, pto.f32, role="acc")
    for k in pto.range(0, x.shape[2], 64):
        _product(x[b, i:, k:], y[b, k:, j:], acc, k, _operands(64, 64, 128, pto.f16))
    isa.tstore(z[b, i:, j:], acc)


@pto.kernel
def gemm_int8(
    x: pto.Global[pto.i8, "m", "k"],
    w: pto.Global[pto.i8, "k", "n"],
    bias: pto.Global[pto.i32, "n"],
    scale: Row,
    y: pto.Global[pto.f16, "m", "n"],
) -> None:
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.tile(32, 64, pto.i32, role="acc")
    for k in pto.range(0, x.shape[1], 64):
        _product(x[i:, k:], w[k:, j:], acc, k, _operands(32, 64, 64, pto.i8))
    total, row = pto.tile(32, 64, pto.i32), pto.tile(1, 64, pto.i32)
    wide, scales = pto.tile(32, 64, pto.f32), pto.tile(1, 64, pto.f32)
    half = pto.tile(32, 64, pto.f16)
    isa.tmov(total, acc)
    isa.tload(row, bias[j:])
    isa.tcolexpandadd(total, total, row)
    isa.trelu(total, total)
    isa.tcvt(wide, total)
    isa.tload(scales, scale[j:])
    isa.tcolexpandmul(wide, wide, scales)
    isa.tcvt(half, wide)
    isa.tstore(y[i:, j:], half)


@pto.kernel
def attention(q: Half, kt: Turned, v: Half, o: Single, room: Room) -> None:
    i, h, own = pto.block_idx(0) * 32, pto.block_idx(1), pto.block_idx()
    queries, keys = pto.tile(32, 64, pto.f16, role="mat"), pto.tile(64, 32, pto.f16, role="mat")
    weights_l1, values = (
        pto.tile(32, 32, pto.f16, role="mat"),
        pto.tile(32, 64, pto.f16, role="mat"),
    )
    out, part = _tiles(2, 32, 64)
    columns, rows = zip(*(_column(32) for _ in range(4)), strict=True)
    (_, total, now, shrink), (highest_row, total_row, now_row, shrink_row) = columns, rows
    scores, triangle, low = _tiles(3, 32, 32)
    mask, half = pto.tile(32, 32, pto.u8), pto.tile(32, 32, pto.f16)
    isa.tload(queries, q[h, i:, :])
    count = queries.valid[0]
    for column in columns:
        pto.set_validshape(column, count, 1)
    pto.set_validshape(out, count, 64)
    isa.texpands(highest_row, float("-inf"))
    isa.texpands(total_row, 0.0)
    isa.texpands(out, 0.0)
    for j in pto.range(0, i + 32, 32):
        left, right = (
            pto.tile(32, 64, pto.f16, role="left"),
            pto.tile(64, 32, pto.f16, role="right"),
        )
        acc = pto.tile(32, 32, pto.f32, role="acc")
        isa.tload(keys, kt[h, :, j:])
        isa.tmov(left, queries)
        isa.tmov(right, keys)
        isa.tmatmul(acc, left, right)
        isa.tmov(scores, acc)
        isa.tmuls(scores, scores, 0.125)
        for each in (triangle, low):
            pto.set_validshape(each, *scores.valid)
        isa.ttri(triangle, (i - j).to(pto.i32))
        isa.texpands(low, 0.0)
        isa.tcmp(mask, triangle, low, cmpMode="gt")
        isa.tsels(scores, mask, scores, -1e30)
        isa.trowmax(now, scores)
        isa.tmax(now_row, now_row, highest_row)
        isa.trowexpandsub(scores, scores, now)
        isa.texp(scores, scores)
        isa.tsub(shrink_row, highest_row, now_row)
        isa.texp(shrink_row, shrink_row)
        isa.tmov(highest_row, now_row)
        isa.tcvt(half, scores)
        place = room[own, 0 : half.valid[0], 0 : half.valid[1]]
        isa.tstore(place, half)
        isa.trowexpandmul(out, out, shrink)
        left, right = (
            pto.tile(32, 32, pto.f16, role="left"),
            pto.tile(32, 64, pto.f16, role="right"),
        )
        acc = pto.tile(32, 64, pto.f32, role="acc")
        isa.tload(weights_l1, place)
        isa.tload(values, v[h, j:, :])
        isa.tmov(left, weights_l1)
        isa.tmov(right, values)
        isa.tmatmul(acc, left, right)
        isa.tmov(part, acc)
        isa.tadd(out, out, part)
        isa.tmul(total_row, total_row, shrink_row)
        isa.trowsum(now, scores)
        isa.tadd(total_row, total_row, now_row)
    isa.trowexpanddiv(out, out, total)
    isa.tstore(o[h, i:, :], out)


@pto.kernel
def top_k(
    x: pto.Global[pto.f32], values: pto.Global[pto.f32], columns: pto.Global[pto.i32]
) -> None:
    row, k = pto.block_idx(), values.shape[1]
    t, places = pto.tile(1, 512, pto.f32, pad="min"), pto.tile(1, 512, pto.i32)
    loaded, best, where = *_tiles(2, 1, 512), pto.tile(1, 512, pto.i32)
    records, merged = _tiles(2, 1, 1024)
    isa.tload(loaded, x[row, :])
    isa.tfillpad(t, loaded)
    isa.tci(places, 0)
    isa.tsort32(records, t, places)
    isa.tmrgsort(merged, records, blockLen=64)
    isa.tmrgsort(records, merged, blockLen=256)
    isa.tgather(best, records, maskPattern="P0101")
    isa.tgather(where, records, maskPattern="P1010")
    pto.set_validshape(best, 1, k)
    pto.set_validshape(where, 1, k)
    isa.tstore(values[row, :], best)
    isa.tstore(columns[row, :], where)


@pto.kernel
def gather(
    table: pto.Global[pto.f32, "rows", "n"], numbers: pto.Global[pto.i32, "m"], y: Matrix
) -> None:
    i, t = pto.block_idx() * 16, pto.tile(1, 512, pto.f32)
    for r in pto.range(i, pto.min(i + 16, y.shape[0])):
        isa.tload(t, table[isa.load_scalar(numbers, r), :])
        isa.tstore(y[r, :], t)


@pto.kernel
def scatter_add(
    table: pto.Global[pto.f32, "rows", "n"], numbers: pto.Global[pto.i32, "m"], x: Matrix
) -> None:
    i, t = pto.block_idx() * 16, pto.tile(1, 512, pto.f32)
    for r in pto.range(i, pto.min(i + 16, x.shape[0])):
        isa.tload(t, x[r, :])
        isa.tstore(table[isa.load_scalar(numbers, r), :], t, atomicType="atomic_add")


@pto.kernel
def depthwise_convolution(
    x: pto.Global[pto.f32, "c", "n"],
    w: pto.Global[pto.f32, "taps", "c"],
    y: pto.Global[pto.f32, "c", "width"],
) -> None:
    c, i = pto.block_idx(0) * 16, pto.block_idx(1) * 128
    total, t = _tiles(2, 16, 128)
    tap = pto.tile(16, 1, pto.f32, layout="DN")
    room = _left(y.shape[0], c, 16), _left(y.shape[1], i, 128)
    pto.set_validshape(total, *room)
    isa.texpands(total, 0.0)
    for k in pto.range(w.shape[0]):
        isa.tload(t, x[c:, i + k :])
        pto.set_validshape(t, *room)
        isa.tload(tap, w.T[c:, k : k + 1])
        isa.trowexpandmul(t, t, tap)
        isa.tadd(total, total, t)
    isa.tstore(y[c:, i:], total)


@pto.kernel
def transpose(x: Matrix, y: pto.Global[pto.f32, "n", "m"]) -> None:
    i, j = pto.block_idx(0) * 64, pto.block_idx(1) * 64
    t, turned = _tiles(2, 64, 64)
    isa.tload(t, x[i:, j:])
    isa.ttrans(turned, t)
    isa.tstore(y[j:, i:], turned)


@pto.kernel
def leaky_relu(x: Matrix, y: Matrix) -> None:
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 256
    t, part, zero = _tiles(3, 16, 256)
    mask = pto.tile(16, 32, pto.u8)
    isa.tload(t, x[i:, j:])
    pto.set_validshape(zero, *t.valid)
    isa.texpands(zero, 0.0)
    isa.tcmp(mask, t, zero, cmpMode="gt")
    isa.tmuls(part, t, 0.1)
    isa.tsel(t, mask, t, part)
    isa.tstore(y[i:, j:], t)
