"""softmax(q k' scale) v of query heads that share heads of keys: `group` query heads for one of
keys.

Bound by the matrix unit where there are many queries, by reading keys and values in decoding.
Rows of a tile are positions of one head, or the heads of a group at one position, whichever are
more. A running maximum and sum make one pass over the keys (flash attention).
"""

from typing import Any

import numpy as np

import pto

LEVEL = 4
KEYS = 128  # of a step


@pto.kernel
def attention(
    q: pto.Global[Any],
    k: pto.Global[Any],
    v: pto.Global[Any],
    o: pto.Global[Any],
    scale: float,
    causal: bool,
) -> None:
    """q and o are (batch, positions, heads, group, d), k and v (batch, keys, heads, d)."""
    (_, positions, _, _, d), keys = q.shape, k.shape[1]
    (i, place), rows = place_of(q.shape), rows_of(q.shape)
    b, h, step = place[0], place[2], 0 if is_by_heads(q.shape) else 1
    queries = pto.load(q[*place], rows, d, role="mat")
    state, before = running(rows, v.shape[3]), keys - positions
    end = pto.min(keys, i + (rows if step else 1) + before) if causal else keys
    for j in pto.range(0, end, KEYS):
        scores = pto.dot(queries, pto.load(k[b, j:, h, :].T, d, KEYS)) * scale
        if causal:
            scores = masked(scores, i + before - j, step)
        accumulate(state, scores, pto.load(v[b, j:, h, :], KEYS, v.shape[3]))
    pto.store(o[*place], (state[0] / state[1]).to(o.dtype, saturate=False))


def rows_of(shape: Any) -> int:
    """Rows of a tile: no more than fit for long vectors."""
    return 64 if shape[4] <= 256 else 32


def grid_of(shape: Any) -> tuple[int, int, int]:
    """Blocks: tiles of positions of one head, or of heads of one position where these are more."""
    batch, positions, heads, group, _ = shape
    tiles = (positions, group) if is_by_heads(shape) else (group, positions)
    return pto.cdiv(tiles[1], rows_of(shape)), tiles[0], batch * heads


def is_by_heads(shape: Any) -> bool:
    return shape[3] >= min(shape[1], 32)


def place_of(shape: Any) -> tuple[Any, tuple[Any, ...]]:
    """The first position of a block, and the window of its queries."""
    heads, tile, outer = shape[2], pto.block_idx(0) * rows_of(shape), pto.block_idx(1)
    b, h = pto.block_idx(2) // heads, pto.block_idx(2) % heads
    if is_by_heads(shape):
        return outer, (b, outer, h, slice(tile, None), slice(None))
    return tile, (b, slice(tile, None), h, outer, slice(None))


def running(rows: int, d: int) -> tuple[Any, Any, Any]:
    """The output so far, the sum of weights, the greatest score."""
    total, highest = pto.zeros(rows, 1, pto.f32), pto.full(rows, 1, -1e30, pto.f32)
    return pto.zeros(rows, d, pto.f32), total, highest


def accumulate(state: Any, scores: Any, values: Any) -> None:
    """Weights of more keys: what was summed before shrinks where the greatest score grows."""
    out, total, highest = state
    now = pto.max(highest, scores.max(axis=1))
    weights, shrink = pto.exp(scores - now), pto.exp(highest - now)
    out *= shrink
    out += pto.dot(weights.to(values.dtype), values)
    total *= shrink
    total += weights.sum(axis=1)
    highest[:] = now


def masked(scores: Any, first: Any, step: int) -> Any:
    """-inf after key `first` in row 0, and `step` keys later in each row below."""
    limit = (pto.arange(scores.rows) * step + first).to(pto.f32)
    return pto.where(pto.arange(KEYS).to(pto.f32) > limit.T, float("-inf"), scores)


@pto.operator
def run(query: Any, key: Any, value: Any, scaleValue: float = -1.0, is_causal: bool = False) -> Any:
    (batch, positions, count, d), heads = query.shape, key.shape[2]
    o = np.empty_like(query)
    q, out = (each.reshape(batch, positions, heads, count // heads, d) for each in (query, o))
    scale = scaleValue if scaleValue > 0 else d**-0.5
    attention[grid_of(q.shape)](q, key, value, out, scale, is_causal)
    return o


def reference(
    query: Any, key: Any, value: Any, scaleValue: float = -1.0, is_causal: bool = False
) -> Any:
    group = query.shape[2] // key.shape[2]
    k, v = (np.repeat(each, group, axis=2) for each in (key, value))
    scale = scaleValue if scaleValue > 0 else query.shape[3] ** -0.5
    scores = np.einsum("bsnd,btnd->bnst", query, k) * scale
    if is_causal:
        s, t = scores.shape[2:]
        scores = np.where(np.tri(s, t, t - s) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    return np.einsum("bnst,btnd->bsnd", weights / weights.sum(axis=3, keepdims=True), v)


TOLERANCE = {"f16": 0.01, "bf16": 0.05}  # weights are rounded to the type of the values
CASES = [
    {"query": "f16[1, 5, 6, 32] 0..1", "key": "f16[1, 7, 2, 32]", "value": "f16[1, 7, 2, 32] 0..1"},
    {
        "query": "bf16[1, 37, 2, 64] 0..1",
        "key": "bf16[1, 150, 1, 64]",
        "value": "bf16[1, 150, 1, 64] 0..1",
        "is_causal": True,
    },
    {
        "query": "f16[1, 1, 96, 32] 0..1",
        "key": "f16[1, 9, 1, 32]",
        "value": "f16[1, 9, 1, 32] 0..1",
        "scaleValue": 0.2,
    },
]
