"""Tokens that lie by (rank, expert) are moved to lie by (expert, rank), with scales and numbers.

Bound by memory: each token is read once and written once. A block moves the tokens of one pair of
rank and expert, in pieces that fill a tile; its places are sums of counts, which it adds itself.
"""

from typing import Any

import numpy as np

import pto
from pto import isa

LEVEL = 3
ROOM = 16384  # bytes of a tile


@pto.kernel
def move(
    tokens: pto.Global[Any],
    counts: pto.Global[Any],
    scales: pto.Global[pto.f32],
    moved: pto.Global[Any],
    moved_scales: pto.Global[pto.f32],
    numbers: pto.Global[pto.i32],
    totals: pto.Global[Any],
    has_scales: bool,
) -> None:
    """scales, moved_scales and numbers are columns."""
    (ranks, experts), (_, width) = counts.shape, tokens.shape
    rank, expert = pto.block_idx() // experts, pto.block_idx() % experts
    rows, source, target = max(1, ROOM // (width * tokens.dtype.itemsize)), 0, 0
    for r in pto.range(ranks):
        for e in pto.range(experts):
            count = isa.load_scalar(counts, r, e).to(pto.i32)
            source += count if (r < rank) or ((r == rank) and (e < expert)) else 0
            target += count if (e < expert) or ((e == expert) and (r < rank)) else 0
    count = isa.load_scalar(counts, rank, expert).to(pto.i32)
    for i in pto.range(0, count, rows):
        here, there, end = source + i, target + i, target + count
        pto.store(moved[there:end, :], pto.load(tokens[here : source + count, :], rows, width))
        numbered = pto.arange(0, rows) + here
        pto.store(numbers[there:end, :], numbered.T)
        t = (
            pto.load(scales[here : source + count, :], rows, 1)
            if has_scales
            else pto.zeros(rows, 1, pto.f32)
        )
        pto.store(moved_scales[there:end, :], t)
    if pto.block_idx() == 0:
        for e in pto.range(experts):
            total = pto.scalar(0, totals.dtype)
            for r in pto.range(ranks):
                total += isa.load_scalar(counts, r, e).to(totals.dtype)
            isa.store_scalar(totals, e, total)


@pto.operator
def run(
    tokens: Any,
    expert_token_num_per_rank: Any,
    per_token_scales: Any = None,
    expert_token_num_type: int = 1,
    idx_type: int = 0,
) -> Any:
    count = len(tokens)
    moved, numbers = np.empty_like(tokens), np.empty(count, np.int32)
    scales, counts = np.empty(count, np.float32), expert_token_num_per_rank
    given = np.zeros((1, 1), np.float32) if per_token_scales is None else per_token_scales
    totals = np.empty(counts.shape[1], np.int64)
    columns = [each.reshape(-1, 1) for each in (given, scales, numbers)]
    results = moved, columns[1], columns[2], totals
    move[counts.size](tokens, counts, columns[0], *results, per_token_scales is not None)
    return moved, scales, numbers, totals


def reference(
    tokens: Any,
    expert_token_num_per_rank: Any,
    per_token_scales: Any = None,
    expert_token_num_type: int = 1,
    idx_type: int = 0,
) -> Any:
    counts = expert_token_num_per_rank
    experts = np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.reshape(-1))
    order = np.argsort(experts, kind="stable")
    scales = np.zeros(len(tokens)) if per_token_scales is None else per_token_scales[order]
    return tokens[order], scales, order, counts.sum(axis=0)


def inputs(given: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Counts whose sum is the number of tokens."""
    counts, left = given["expert_token_num_per_rank"], len(given["tokens"])
    cuts = np.sort(random.integers(0, left, counts.size - 1))
    parts = np.diff([0, *cuts, left]).astype(counts.dtype)
    return {**given, "expert_token_num_per_rank": parts.reshape(counts.shape)}


CASES = [
    {
        "tokens": "f16[50, 70]",
        "expert_token_num_per_rank": "i32[2, 3]",
        "per_token_scales": "f32[50]",
    },
    {"tokens": "bf16[90, 33]", "expert_token_num_per_rank": "i64[3, 2]"},
    {"tokens": "i8[300, 64]", "expert_token_num_per_rank": "i32[1, 4]"},
]
