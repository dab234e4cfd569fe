"""y[r] = skip1[r] + skip2[r] + the sum over k of scales[r, k] (rows[d] + bias[expert[r, k]]),
where d is the place of the k-th copy of token r; dropped copies, with d = -1, add nothing.

Bound by memory: each row is read once. Places and experts are numbers of the program, so rows
come by loads of whole lines.
"""

from typing import Any

import numpy as np

import pto
from pto import isa

LEVEL = 3
TOKENS, COLS = 16, 2048  # of a block


@pto.kernel
def combine(
    rows: pto.Global[Any],
    places: pto.Global[pto.i32],
    skips: tuple[bool, bool],
    skip1: pto.Global[Any],
    skip2: pto.Global[Any],
    bias: pto.Global[Any],
    scales: pto.Global[Any],
    experts: pto.Global[pto.i32],
    y: pto.Global[Any],
    has: tuple[bool, bool],
    by_columns: bool,
) -> None:
    """places is (k, tokens) if by_columns, else (tokens, k)."""
    i, j, (has_bias, has_scales) = pto.block_idx(1) * TOKENS, pto.block_idx(0) * COLS, has
    place = places.T if by_columns else places
    for r in pto.range(i, pto.min(i + TOKENS, y.shape[0])):
        total = pto.zeros_like(pto.load(rows[0, j:], 1, COLS), pto.f32)
        for skip, is_there in zip((skip1, skip2), skips, strict=True):
            if is_there:
                total += pto.load(skip[r, j:], 1, COLS).to(pto.f32)
        factors = pto.load(scales[r, :]).to(pto.f32) if has_scales else None
        for k in pto.range(place.shape[1]):
            at = isa.load_scalar(place[r : r + 1, :], 0, k)
            if at >= 0:
                t = pto.load(rows[at, j:], 1, COLS).to(pto.f32)
                if has_bias:
                    expert = isa.load_scalar(experts, r, k)
                    if (expert >= 0) and (expert < bias.shape[0]):
                        t += pto.load(bias[expert, j:], 1, COLS).to(pto.f32)
                total += t if factors is None else t * factors[0, k]
        pto.store(y[r, j:], total.to(y.dtype, saturate=False))


@pto.operator
def run(
    expanded_permuted_rows: Any,
    expanded_src_to_dst_row: Any,
    skip1: Any = None,
    skip2: Any = None,
    bias: Any = None,
    scales: Any = None,
    expert_for_source_row: Any = None,
    drop_pad_mode: int = 0,
) -> Any:
    rows = expanded_permuted_rows.reshape(-1, expanded_permuted_rows.shape[-1])
    copies = 1 if scales is None else scales.shape[1]
    tokens, by_columns = expanded_src_to_dst_row.size // copies, drop_pad_mode < 2
    shape = (copies, tokens) if by_columns else (tokens, copies)
    y, none = np.empty((tokens, rows.shape[1]), rows.dtype), np.zeros((1, 1), np.int32)
    has_bias = bias is not None and expert_for_source_row is not None
    given = [skip1, skip2, bias, scales, expert_for_source_row]
    first, second, b, s, experts = (none if each is None else each for each in given)
    combine[pto.cdiv(rows.shape[1], COLS), pto.cdiv(tokens, TOKENS)](
        rows,
        expanded_src_to_dst_row.reshape(shape),
        (skip1 is not None, skip2 is not None),
        first,
        second,
        b,
        s,
        experts,
        y,
        (has_bias, scales is not None),
        by_columns,
    )
    return y


def reference(
    expanded_permuted_rows: Any,
    expanded_src_to_dst_row: Any,
    skip1: Any = None,
    skip2: Any = None,
    bias: Any = None,
    scales: Any = None,
    expert_for_source_row: Any = None,
    drop_pad_mode: int = 0,
) -> Any:
    rows = expanded_permuted_rows.reshape(-1, expanded_permuted_rows.shape[-1])
    copies = 1 if scales is None else scales.shape[1]
    places = expanded_src_to_dst_row
    places = places.reshape(copies, -1).T if drop_pad_mode < 2 else places.reshape(-1, copies)
    taken = rows[places] + (0 if bias is None else bias[expert_for_source_row])
    taken = np.where(places[..., None] < 0, 0, taken)
    total = (taken * (1 if scales is None else scales[..., None])).sum(axis=1)
    return total + (0 if skip1 is None else skip1) + (0 if skip2 is None else skip2)


CASES = [
    {
        "expanded_permuted_rows": "f16[60, 70]",
        "expanded_src_to_dst_row": "i32[60] -1..59",
        "skip1": "f16[20, 70]",
        "skip2": "f16[20, 70]",
        "bias": "f16[4, 70]",
        "scales": "f16[20, 3] 0..1",
        "expert_for_source_row": "i32[20, 3] 0..3",
    },
    {
        "expanded_permuted_rows": "bf16[3, 7, 33]",
        "expanded_src_to_dst_row": "i32[34] -1..20",
        "skip1": "bf16[17, 33]",
        "scales": "f32[17, 2] 0..1",
        "drop_pad_mode": 3,
    },
    {"expanded_permuted_rows": "f32[9, 16]", "expanded_src_to_dst_row": "i32[9] 0..8"},
]
