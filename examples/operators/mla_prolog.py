"""Queries and keys of latent attention from hidden states: two projections, RMS norm, a
projection for each head, rotary positions.

Bound by reading the weights where there are few tokens, else by the matrix unit. Norms and
rotations are launches between the products, which go through global memory.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 4
M, K, N = 64, 128, 128  # the tiles of a product
ROWS = 8  # tokens of a block


@pto.kernel
def multiply(x: pto.Global[Any], w: pto.Global[Any], y: pto.Global[Any]) -> None:
    """y[b] = x[b] w[b]: x (batch, m, k), w (batch, k, n)."""
    i, j, b = pto.block_idx(1) * M, pto.block_idx(0) * N, pto.block_idx(2)
    acc = pto.zeros(M, N, pto.f32, role="acc")
    for k in pto.range(0, x.shape[2], K):
        acc = pto.dot(pto.load(x[b, i:, k:], M, K), pto.load(w[b, k:, j:], K, N), acc=acc)
    pto.store(y[b, i:, j:], (acc * 1.0).to(y.dtype, saturate=False))


@pto.kernel
def absorb(q: pto.Global[Any], w: pto.Global[Any], y: pto.Global[Any]) -> None:
    """y[:, h] = q[:, h] w[h] for each head: q (tokens, heads, d + r), w (heads, d, n)."""
    i, j, h, d = pto.block_idx(1) * M, pto.block_idx(0) * N, pto.block_idx(2), w.shape[1]
    product = pto.dot(pto.load(q[i:, h, 0:d], M, d), pto.load(w[h, :, j:], d, N))
    pto.store(y[i:, h, j:], (product * 1.0).to(y.dtype, saturate=False))


@pto.kernel
def normalise(
    x: pto.Global[pto.f32], gamma: pto.Global[Any], y: pto.Global[Any], eps: float
) -> None:
    """The first columns of x, as many as y has, divided by the root of their mean square."""
    i, n = pto.block_idx() * ROWS, y.shape[1]
    t = pto.load(x[i:, 0:n], ROWS, n)
    root = pto.sqrt((t * t).mean(axis=1) + eps)
    pto.store(y[i:, :], (t / root * pto.load(gamma[None, :]).to(pto.f32)).to(y.dtype))


@pto.kernel
def rotate(
    x: pto.Global[Any], sin: pto.Global[Any], cos: pto.Global[Any], y: pto.Global[Any]
) -> None:
    """The last columns of x, (tokens, heads, d + r), turned by the angles of their token."""
    i, h, r, heads = pto.block_idx(0) * ROWS, pto.block_idx(1), y.shape[2], x.shape[2]
    half, first = r // 2, heads - r
    parts = [slice(first, first + half), slice(first + half, heads)]
    a, b = (pto.load(x[i:, h, part], ROWS, half).to(pto.f32) for part in parts)
    for n, (here, there) in enumerate(((a, -b), (b, a))):
        part = slice(n * half, (n + 1) * half)
        s, c = (pto.load(each[i:, part], ROWS, half).to(pto.f32) for each in (sin, cos))
        pto.store(y[i:, h, part], (here * c + there * s).to(y.dtype))


@pto.operator
def run(
    token_x: Any,
    w_dq: Any,
    w_uq_qr: Any,
    w_uk: Any,
    w_dkv_kr: Any,
    rmsnorm_gamma_cq: Any,
    rmsnorm_gamma_ckv: Any,
    rope_sin: Any,
    rope_cos: Any,
    n_heads: int,
    rmsnorm_epsilon_cq: float = 1e-5,
    rmsnorm_epsilon_ckv: float = 1e-5,
) -> Any:
    (b, s, _), (heads, d, latent), r = token_x.shape, w_uk.shape, rope_sin.shape[-1]
    tokens, kind, rows = b * s, token_x.dtype, pto.cdiv(b * s, ROWS)
    x, sin, cos = (each.reshape(tokens, -1) for each in (token_x, rope_sin, rope_cos))

    def times(a: Any, w: Any, result: Any) -> Any:
        y = np.empty((len(a), w.shape[1]), result)
        multiply[pto.cdiv(w.shape[1], N), pto.cdiv(len(a), M), 1](a[None], w[None], y[None])
        return y

    raw, latents = times(x, w_dq, np.float32), times(x, w_dkv_kr, np.float32)
    c_q, c_kv = np.empty(raw.shape, kind), np.empty((tokens, latent), kind)
    normalise[rows](raw, rmsnorm_gamma_cq, c_q, rmsnorm_epsilon_cq)
    normalise[rows](latents, rmsnorm_gamma_ckv, c_kv, rmsnorm_epsilon_ckv)
    q = times(c_q, w_uq_qr, kind).reshape(tokens, heads, d + r)
    query = np.empty((tokens, heads, latent), kind)
    absorb[pto.cdiv(latent, N), pto.cdiv(tokens, M), heads](q, w_uk, query)
    query_rope, k_rope = np.empty((tokens, heads, r), kind), np.empty((tokens, 1, r), kind)
    rotate[rows, heads](q, sin, cos, query_rope)
    rotate[rows, 1](latents[:, None], sin, cos, k_rope)
    shapes = (heads, latent), (heads, r), (latent,), (r,)
    results = query, query_rope, c_kv, k_rope
    return [each.reshape(b, s, *shape) for each, shape in zip(results, shapes, strict=True)]


def reference(
    token_x: Any,
    w_dq: Any,
    w_uq_qr: Any,
    w_uk: Any,
    w_dkv_kr: Any,
    rmsnorm_gamma_cq: Any,
    rmsnorm_gamma_ckv: Any,
    rope_sin: Any,
    rope_cos: Any,
    n_heads: int,
    rmsnorm_epsilon_cq: float = 1e-5,
    rmsnorm_epsilon_ckv: float = 1e-5,
) -> Any:
    def norm(x: Any, gamma: Any, eps: float) -> Any:
        return gamma * x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps)

    def rope(x: Any, sin: Any, cos: Any) -> Any:
        a, b = np.split(x, 2, axis=-1)
        return x * cos + np.concatenate([-b, a], axis=-1) * sin

    d, latent = w_uk.shape[1:]
    q = norm(token_x @ w_dq, rmsnorm_gamma_cq, rmsnorm_epsilon_cq) @ w_uq_qr
    q = q.reshape(*q.shape[:2], n_heads, -1)
    keys = token_x @ w_dkv_kr
    query = np.einsum("bsnd,ndh->bsnh", q[..., :d], w_uk)
    query_rope = rope(q[..., d:], rope_sin[:, :, None], rope_cos[:, :, None])
    c_kv = norm(keys[..., :latent], rmsnorm_gamma_ckv, rmsnorm_epsilon_ckv)
    return query, query_rope, c_kv, rope(keys[..., latent:], rope_sin, rope_cos)


TOLERANCE = {"bf16": 0.03}  # the queries are rounded to bf16 between the products
CASES = [
    {
        "token_x": f"bf16[{b}, {s}, 96] 0..1",
        "w_dq": "bf16[96, 40] 0..1",
        "w_uq_qr": f"bf16[40, {heads * 48}] 0..1",
        "w_uk": f"bf16[{heads}, 32, 64] 0..1",
        "w_dkv_kr": "bf16[96, 80] 0..1",
        "rmsnorm_gamma_cq": "bf16[40] 0..1",
        "rmsnorm_gamma_ckv": "bf16[64] 0..1",
        "rope_sin": f"bf16[{b}, {s}, 16] 0..0.2",
        "rope_cos": f"bf16[{b}, {s}, 16] 0.9..1",
        "n_heads": heads,
    }
    for b, s, heads in ((2, 5, 3), (1, 1, 2))
]
