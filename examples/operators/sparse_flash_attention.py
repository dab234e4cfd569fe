"""softmax(q k' scale) v over the keys that an index names for each position and head of keys.

Bound by reading keys and values, row by row: each position has keys of its own, which all query
heads of a group share. A running maximum and sum make one pass over them (flash attention).
"""

from typing import Any

import numpy as np

import pto
from examples.operators.gqa import accumulate, running
from pto import isa

LEVEL = 4
KEYS, HEADS = 64, 32  # of a step, of a tile


@pto.kernel
def attention(
    q: pto.Global[Any],
    k: pto.Global[Any],
    v: pto.Global[Any],
    indices: pto.Global[pto.i32],
    o: pto.Global[Any],
    scale: float,
    causal: bool,
    by_heads: bool,
) -> None:
    """q and o are (batch, positions, heads, group, d); heads come before positions if by_heads."""
    if by_heads:
        q, o = (each.transpose(0, 3, 1, 2, 4) for each in (q, o))
        k, v, indices = (each.transpose(0, 2, 1, 3) for each in (k, v, indices))
    (_, positions, heads, _, d), (_, keys, _, width) = q.shape, v.shape
    g, s = pto.block_idx(0) * HEADS, pto.block_idx(1)
    b, h, count = pto.block_idx(2) // heads, pto.block_idx(2) % heads, indices.shape[3]
    queries = pto.load(q[b, s, h, g:, :].T, d, HEADS, role="mat")
    state = running(HEADS, width)
    for j in pto.range(0, count, KEYS):
        places = pto.load(indices[b, s, h, j:], 1, KEYS)
        rows, values = pto.tile(KEYS, d, k.dtype), pto.tile(KEYS, width, v.dtype)
        isa.mgather(rows, k[b, :, h, :], places, coalesce="row")
        isa.mgather(values, v[b, :, h, :], places, coalesce="row")
        scores = (pto.dot(rows, queries) * scale).T
        if causal:
            last = pto.scalar(s + (keys - positions), pto.i32).to(pto.f32)
            scores = pto.where(places.to(pto.f32) > last, float("-inf"), scores)
        accumulate(state, scores, values)
    total = pto.max(state[1], 1e-30)  # no key at all: zeros
    pto.store(o[b, s, h, g:, :], (state[0] / total).to(o.dtype, saturate=False))


@pto.operator
def run(
    query: Any,
    key: Any,
    value: Any,
    sparseIndices: Any,
    scaleValue: float,
    inputLayout: str = "BSND",
    is_causal: bool = False,
) -> Any:
    by_heads, width = inputLayout == "BNSD", value.shape[3]
    o = np.empty((*query.shape[:3], width), query.dtype)
    batch, first, second, d = query.shape
    heads = key.shape[1] if by_heads else key.shape[2]
    (positions, count) = (second, first) if by_heads else (first, second)
    group = count // heads
    shape = (batch, heads, group, positions) if by_heads else (batch, positions, heads, group)
    grid = pto.cdiv(group, HEADS), positions, batch * heads
    q, out = query.reshape(*shape, d), o.reshape(*shape, width)
    attention[grid](q, key, value, sparseIndices, out, scaleValue, is_causal, by_heads)
    return o


def reference(
    query: Any,
    key: Any,
    value: Any,
    sparseIndices: Any,
    scaleValue: float,
    inputLayout: str = "BSND",
    is_causal: bool = False,
) -> Any:
    arrays = query, key, value, sparseIndices
    if inputLayout == "BSND":
        arrays = tuple(np.swapaxes(each, 1, 2) for each in arrays)
    q, k, v, indices = arrays
    group, o = q.shape[1] // k.shape[1], np.zeros((*q.shape[:3], v.shape[3]))
    for b, n, s in np.ndindex(*q.shape[:3]):
        places = indices[b, n // group, s]
        if is_causal:
            places = places[places <= s + k.shape[2] - q.shape[2]]
        if not places.size:
            continue
        scores = k[b, n // group, places] @ q[b, n, s] * scaleValue
        weights = np.exp(scores - scores.max())
        o[b, n, s] = weights / weights.sum() @ v[b, n // group, places]
    return np.swapaxes(o, 1, 2) if inputLayout == "BSND" else o


def inputs(arguments: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Indices that differ in each row; values are the first part of the keys."""
    key, places = arguments["key"], arguments["sparseIndices"]
    keys = key.shape[2 if arguments.get("inputLayout") == "BNSD" else 1]
    rows = [random.permutation(keys)[: places.shape[3]] for _ in range(places[..., 0].size)]
    width = arguments["value"].shape[3]
    return {
        **arguments,
        "sparseIndices": np.array(rows, np.int32).reshape(places.shape),
        "value": np.ascontiguousarray(key[..., :width]),
    }


TOLERANCE = {"f16": 0.01, "bf16": 0.05}  # weights are rounded to the type of the values
CASES = [
    {
        "query": "f16[1, 3, 4, 64] 0..1",
        "key": "f16[1, 70, 2, 64] 0..1",
        "value": "f16[1, 70, 2, 32] 0..1",
        "sparseIndices": "i32[1, 3, 2, 40]",
        "scaleValue": 0.1,
    },
    {
        "query": "bf16[1, 40, 2, 96] 0..1",
        "key": "bf16[1, 1, 100, 96] 0..1",
        "value": "bf16[1, 1, 100, 64] 0..1",
        "sparseIndices": "i32[1, 1, 2, 70]",
        "scaleValue": 0.1,
        "inputLayout": "BNSD",
        "is_causal": True,
    },
]
