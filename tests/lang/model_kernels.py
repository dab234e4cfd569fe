"""Fourteen kernels of models as a person writes them from the guides, each under 20 lines."""

from __future__ import annotations

import pto
from pto import isa

F16, F32, I32, I8 = (pto.Global[each] for each in (pto.f16, pto.f32, pto.i32, pto.i8))
Single = pto.Scalar[pto.f32]


@pto.kernel
def gemm_int8_weights(x: F16, w: I8, scale: F32, room: F16, y: F32) -> None:
    """y = x (w * scale): weights are widened by the vector unit, and go by `room` to the cube."""
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.zeros(32, 64, pto.f32, role="acc")
    for k in pto.range(0, x.shape[1], 64):
        t = pto.load(w[k:, j:], 64, 64).to(pto.f16)
        own = room[pto.block_idx(), 0 : t.valid[0], 0 : t.valid[1]]
        pto.store(own, t)
        acc = pto.dot(pto.load(x[i:, k:], 32, 64), pto.load(own, 64, 64), acc=acc)
    pto.store(y[i:, j:], acc * pto.load(scale[j:], 64))


@pto.kernel
def top2_gating(x: F16, w: F16, weights: F32, experts: I32) -> None:
    i = pto.block_idx() * 16
    chances = pto.softmax(pto.dot(pto.load(x[i:, :], 16, 64), pto.load(w, 64, 32)))
    best, which = pto.topk(chances, 2)
    pto.store(weights[i:, :], best / best.sum(axis=1))
    pto.store(experts[i:, :], which)


@pto.kernel
def paged_attention(
    q: F16, keys: F16, values: F16, table: I32, lengths: I32, room: F16, o: F32
) -> None:
    """A sequence a block: queries of 16 heads, keys and values in pages of 32 tokens."""
    b = pto.block_idx()
    length = isa.load_scalar(lengths, b)
    queries = pto.load(q[b, :, :], 16, 64, role="mat")
    highest, total = pto.full(16, 1, -1e30, pto.f32), pto.zeros(16, 1, pto.f32)
    out = pto.zeros(16, 64, pto.f32)
    for n in pto.range(pto.cdiv(length, 32)):
        page = isa.load_scalar(table, b, n)
        scores = pto.dot(queries, pto.load(keys[page, :, :].T, 64, 32)) * 0.125
        scores = pto.where(pto.arange(32) + n * 32 < length, scores, -1e30)
        now = pto.max(highest, scores.max(axis=1))
        part, shrink = pto.exp(scores - now), pto.exp(highest - now)
        pto.store(room[b, :, :], part.to(pto.f16))
        product = pto.load(room[b, :, :], 16, 32) @ pto.load(values[page, :, :], 32, 64)
        out, total, highest = out * shrink + product, total * shrink + part.sum(axis=1), now
    pto.store(o[b, :, :], out / total)


@pto.kernel
def selective_scan(x: F32, dt: F32, a: F32, b: F32, c: F32, y: F32) -> None:
    """Mamba: h = exp(dt a) h + dt b x, y = h c; 32 channels a block, states along columns."""
    d = pto.block_idx() * 32
    rates = pto.load(a[d:, :], 32, 16)
    h = pto.zeros_like(rates)
    for t in pto.range(x.shape[0]):
        step, now = pto.load(dt[t, d:], 32).T, pto.load(x[t, d:], 32).T
        h = pto.exp(step * rates) * h + step * now * pto.load(b[t, :], 16)
        pto.store(y[t, d:], (h * pto.load(c[t, :], 16)).sum(axis=1))


@pto.kernel
def rmsnorm_rope(x: F32, w: F32, cos: F32, sin: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    t = pto.load(x[i:, :], 16, 64)
    t = t * pto.rsqrt((t * t).mean(axis=1) + 1e-5) * pto.load(w, 64)
    c, s = pto.load(cos[i:, :], 16, 32), pto.load(sin[i:, :], 16, 32)
    a, b = t[:, 0:32], t[:, 32:64]
    pto.store(y[i:, 0:32], a * c - b * s)
    pto.store(y[i:, 32:64], b * c + a * s)


@pto.kernel
def strided_convolution(x: F32, w: F32, y: F32) -> None:
    """Every second position, each channel by itself; positions x channels."""
    i, c = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    total = pto.zeros(16, 64, pto.f32)
    for k in pto.range(w.shape[0]):
        total += pto.load(x[2 * i + k :: 2, c:], 16, 64) * pto.load(w[k, c:], 64)
    pto.store(y[i:, c:], total)


@pto.kernel
def histogram(x: F32, counts: I32, low: float, high: float) -> None:
    """How many of 16 x 256 numbers a block lie in each of the bins; added to `counts`."""
    i, bins = pto.block_idx() * 16, counts.shape[0]
    t = pto.load(x[i:, :], 16, 256)
    at = pto.clamp((t - low) * (bins / (high - low)), 0.0, bins - 1.0).to(pto.i32)
    for n in pto.range(bins):
        found = pto.where(at == n, 1.0, 0.0).sum()
        pto.store(counts[n:], found.to(pto.i32), atomic="add")


@pto.kernel
def batched_matmul(a: F16, b: F16, c: F32) -> None:
    n, i, j = pto.block_idx(2), pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.zeros(32, 64, pto.f32, role="acc")
    for k in pto.range(0, a.shape[2], 64):
        acc = pto.dot(pto.load(a[n, i:, k:], 32, 64), pto.load(b[n, k:, j:], 64, 64), acc=acc)
    pto.store(c[n, i:, j:], acc)


@pto.kernel
def cross_entropy(x: F32, targets: I32, losses: F32) -> None:
    """log of the sum of exp over a row, minus its element `targets[i]`; 64 columns at a time."""
    i = pto.block_idx() * 16
    target = pto.load(targets[i:], 16).T
    highest = pto.full_like(target, -1e30, pto.f32)
    total = chosen = pto.zeros_like(highest)
    for j in pto.range(0, x.shape[1], 64):
        t = pto.load(x[i:, j:], 16, 64)
        now = pto.max(highest, t.max(axis=1))
        total = total * pto.exp(highest - now) + pto.exp(t - now).sum(axis=1)
        chosen = chosen + pto.where(pto.arange(64) + j == target, t, 0.0).sum(axis=1)
        highest = now
    pto.store(losses[i:], pto.log(total) + highest - chosen)


def butterflies(re, im, cos, sin, yr, yi, k, step) -> None:  # type: ignore[no-untyped-def]
    n = re.shape[0]
    if n == 1:
        pto.store(yr[k, :], re)
        pto.store(yi[k, :], im)
        return
    h = n // 2
    c, s = (pto.load(each[0 : h * step : step, :], h, 1) for each in (cos, sin))
    r, i = re[0:h, :] - re[h:n, :], im[0:h, :] - im[h:n, :]
    butterflies(re[0:h, :] + re[h:n, :], im[0:h, :] + im[h:n, :], cos, sin, yr, yi, k, 2 * step)
    butterflies(r * c - i * s, r * s + i * c, cos, sin, yr, yi, k + step, 2 * step)


@pto.kernel
def fft(xr: F32, xi: F32, cos: F32, sin: F32, yr: F32, yi: F32) -> None:
    """Down the 16 rows, 64 columns a block; `cos` and `sin` are those of -2 pi j / 16."""
    j = pto.block_idx() * 64
    re, im = pto.load(xr[:, j:], 16, 64), pto.load(xi[:, j:], 16, 64)
    butterflies(re, im, cos, sin, yr[:, j:], yi[:, j:], 0, 1)


@pto.kernel
def top_50(x: F32, values: F32, places: I32) -> None:
    i = pto.block_idx() * 4
    best, which = pto.topk(pto.load(x[i:, :], 4, 500), 50)
    pto.store(values[i:, :], best)
    pto.store(places[i:, :], which)


@pto.kernel
def adam(w: F32, g: F32, m: F32, v: F32, rate: Single, root: Single) -> None:
    """`rate` is that of the step over 1 - 0.9 ** step, `root` is 1 / (1 - 0.999 ** step)."""
    i = pto.block_idx() * 16
    t, grad = pto.load(w[i:, :], 16, 128), pto.load(g[i:, :], 16, 128)
    mean = pto.load(m[i:, :], 16, 128) * 0.9 + grad * 0.1
    square = pto.load(v[i:, :], 16, 128) * 0.999 + grad * grad * 0.001
    pto.store(w[i:, :], t - mean * rate / (pto.sqrt(square * root) + 1e-8))
    pto.store(m[i:, :], mean)
    pto.store(v[i:, :], square)


@pto.kernel
def fused_transpose(x: F32, bias: F32, y: F32) -> None:
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    pto.store(y[j:, i:], pto.gelu(pto.load(x[i:, j:], 32, 64) + pto.load(bias[j:], 64)).T)


@pto.kernel
def k_means(x: F16, centres: F16, labels: I32, sums: F32, counts: F32) -> None:
    """The nearest of the centres for each point, and the sums of the points of each."""
    i, k = pto.block_idx() * 32, centres.shape[0]
    t, c = pto.load(x[i:, :], 32, 32).to(pto.f32), pto.load(centres, 16, 32).to(pto.f32)
    near = pto.dot(pto.load(x[i:, :], 32, 32), pto.load(centres.T, 32, 16))
    label = ((c * c).sum(axis=1).T - 2.0 * near).argmin(axis=1)
    pto.store(labels[i:], label)
    for n in pto.range(k):
        own = pto.where(label == n, t, 0.0)
        pto.store(sums[n, :], own.sum(axis=0), atomic="add")
        pto.store(counts[n:], pto.where(label == n, 1.0, 0.0).sum(), atomic="add")
