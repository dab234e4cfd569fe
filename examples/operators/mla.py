"""softmax((q_nope k_nope' + q_rope k_rope') scale) v: latent attention, all heads share one key.

Bound by the matrix unit: keys of 576 elements are read once for 32 query heads. Both parts of the
scores are added in one accumulator; the values are the first part of the keys.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.gqa import (
    accumulate,
    grid_of,
    is_by_heads,
    masked,
    place_of,
    rows_of,
    running,
)

LEVEL = 4
KEYS = 128  # of a step


@pto.kernel
def attention(
    q_nope: pto.Global[Any],
    q_rope: pto.Global[Any],
    k_nope: pto.Global[Any],
    k_rope: pto.Global[Any],
    v: pto.Global[Any],
    o: pto.Global[Any],
    scale: float,
    causal: bool,
    by_heads: bool,
) -> None:
    """Queries are (batch, positions, heads, group, d); with heads before positions if by_heads."""
    if by_heads:
        q_nope, q_rope, o = (each.transpose(0, 3, 1, 2, 4) for each in (q_nope, q_rope, o))
        k_nope, k_rope, v = (each.transpose(0, 2, 1, 3) for each in (k_nope, k_rope, v))
    (_, positions, _, _, d), r = q_nope.shape, q_rope.shape[4]
    keys, (i, place), rows = k_nope.shape[1], place_of(q_nope.shape), rows_of(q_nope.shape)
    b, h, step = place[0], place[2], 0 if is_by_heads(q_nope.shape) else 1
    left = pto.load(q_nope[*place], rows, d, role="mat")
    left_rope = pto.load(q_rope[*place], rows, r, role="mat")
    state, before = running(rows, d), keys - positions
    end = pto.min(keys, i + (rows if step else 1) + before) if causal else keys
    for j in pto.range(0, end, KEYS):
        products = pto.dot(left, pto.load(k_nope[b, j:, h, :].T, d, KEYS))
        products = pto.dot(left_rope, pto.load(k_rope[b, j:, h, :].T, r, KEYS), acc=products)
        scores = products * scale
        if causal:
            scores = masked(scores, i + before - j, step)
        accumulate(state, scores, pto.load(v[b, j:, h, :], KEYS, d))
    pto.store(o[*place], (state[0] / state[1]).to(o.dtype, saturate=False))


@pto.operator
def run(
    q_nope: Any,
    q_rope: Any,
    k_nope: Any,
    k_rope: Any,
    v: Any,
    numKVHeads: int = 1,
    scaleValue: float = -1.0,
    inputLayout: str = "BSND",
    is_causal: bool = False,
) -> Any:
    o, by_heads = np.empty_like(q_nope), inputLayout == "BNSD"
    d, heads = q_nope.shape[3], numKVHeads
    scale = scaleValue if scaleValue > 0 else (d + q_rope.shape[3]) ** -0.5
    batch, positions, count, _ = np.moveaxis(q_nope, 1, 2).shape if by_heads else q_nope.shape
    group = count // heads
    shape = (batch, heads, group, positions) if by_heads else (batch, positions, heads, group)
    q, r, out = (each.reshape(*shape, each.shape[-1]) for each in (q_nope, q_rope, o))
    grid = grid_of((batch, positions, heads, group, d))
    attention[grid](q, r, k_nope, k_rope, v, out, scale, is_causal, by_heads)
    return o


def reference(
    q_nope: Any,
    q_rope: Any,
    k_nope: Any,
    k_rope: Any,
    v: Any,
    numKVHeads: int = 1,
    scaleValue: float = -1.0,
    inputLayout: str = "BSND",
    is_causal: bool = False,
) -> Any:
    by_heads = inputLayout == "BNSD"
    q, k = np.concatenate([q_nope, q_rope], axis=3), np.concatenate([k_nope, k_rope], axis=3)
    if not by_heads:
        q, k, v = (np.swapaxes(each, 1, 2) for each in (q, k, v))
    group = q.shape[1] // numKVHeads
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = q @ np.swapaxes(k, 2, 3) * (scaleValue if scaleValue > 0 else q.shape[3] ** -0.5)
    if is_causal:
        s, t = scores.shape[2:]
        scores = np.where(np.tri(s, t, t - s) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    o = weights / weights.sum(axis=3, keepdims=True) @ v
    return o if by_heads else np.swapaxes(o, 1, 2)


TOLERANCE = {"f16": 0.01, "bf16": 0.05}  # weights are rounded to the type of the values


def inputs(given: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """The values are the first part of the keys."""
    return {**given, "v": given["k_nope"].copy()}


CASES = [
    {
        "q_nope": "f16[1, 3, 6, 64] 0..1",
        "q_rope": "f16[1, 3, 6, 16]",
        "k_nope": "f16[1, 20, 1, 64] 0..1",
        "k_rope": "f16[1, 20, 1, 16]",
        "v": None,
        "is_causal": True,
    },
    {
        "q_nope": "bf16[1, 40, 2, 512] 0..0.1",
        "q_rope": "bf16[1, 40, 2, 64] 0..0.1",
        "k_nope": "bf16[1, 1, 140, 512] 0..1",
        "k_rope": "bf16[1, 1, 140, 64]",
        "v": None,
        "inputLayout": "BNSD",
    },
]
