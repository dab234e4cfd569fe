"""A gate by two normalised vectors for each value, then a causal convolution along the positions
of the gated and normalised values, added to them; the last positions are kept for the next call.

Bound by memory: keys, states and results are read or written once, and gated values go through
global memory as f32 for the convolution, whose taps lie `dilation` positions apart.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import transpose

LEVEL = 3
ROWS = 8  # positions of a block
COLS = 128  # channels of a tile that is turned


@pto.kernel
def gate(
    keys: pto.Global[Any],
    queries: pto.Global[Any],
    values: pto.Global[Any],
    key_weight: pto.Global[pto.f32],
    query_weight: pto.Global[pto.f32],
    line_weight: pto.Global[pto.f32],
    gated: pto.Global[pto.f32],
    lines: pto.Global[pto.f32],
    eps: float,
    before: int,
) -> None:
    """keys, queries and gated are (batch, positions, heads, d), weights (heads, d)."""
    d, i, h, b = keys.shape[3], pto.block_idx(0) * ROWS, pto.block_idx(1), pto.block_idx(2)

    def normed(t: Any, weight: Any) -> Any:
        root = pto.sqrt((t * t).mean(axis=1) + eps)
        return t / root * pto.load(weight[h, :], 1, d)

    k = normed(pto.load(keys[b, i:, h, :], ROWS, d).to(pto.f32), key_weight)
    q = normed(pto.load(queries[b, i:, h, :], ROWS, d).to(pto.f32), query_weight)
    raw = (k * q).sum(axis=1) / d**0.5
    root = pto.sqrt(pto.max(abs(raw), 1e-6))
    signed = pto.where(raw > 0.0, root, pto.where(raw < 0.0, -root, 0.0 * root))
    t = pto.load(values[b, i:, :], ROWS, d).to(pto.f32) * pto.sigmoid(signed)
    pto.store(gated[b, i:, h, :], t)
    pto.store(lines[b, i + before :, h, :], normed(t, line_weight))


@pto.kernel
def begin(state: pto.Global[Any], lines: pto.Global[pto.f32], before: int, has_state: bool) -> None:
    """The first positions of the lines: those of the last call, (batch, heads, d, before), or 0."""
    c, h, b = pto.block_idx(0) * COLS, pto.block_idx(1), pto.block_idx(2)
    t = pto.full(before, COLS, 0.0, pto.f32)
    if has_state:
        t = pto.load(state[b, h, c:, :], COLS, before).to(pto.f32).T
    pto.store(lines[b, 0:before, h, c:], t)


@pto.kernel
def convolve(
    gated: pto.Global[pto.f32],
    lines: pto.Global[pto.f32],
    taps: pto.Global[pto.f32],
    y: pto.Global[Any],
    dilation: int,
) -> None:
    """taps is (kernel, heads, d)."""
    d, i, h, b = y.shape[3], pto.block_idx(0) * ROWS, pto.block_idx(1), pto.block_idx(2)
    end = pto.min(i + ROWS, y.shape[1])
    t = pto.load(gated[b, i:end, h, :], ROWS, d)
    total = t * 0.0
    for k in range(taps.shape[0]):
        line = lines[b, i + k * dilation : end + k * dilation, h, :]
        total = total + pto.load(line, ROWS, d) * pto.load(taps[k, h, :], 1, d)
    pto.store(y[b, i:, h, :], (t + pto.silu(total)).to(y.dtype))


@pto.kernel
def finish(lines: pto.Global[pto.f32], state: pto.Global[Any], before: int) -> None:
    """The last positions of the lines, with positions last."""
    c, h, b = pto.block_idx(0) * COLS, pto.block_idx(1), pto.block_idx(2)
    last = lines.shape[1] - before
    t = pto.load(lines[b, last : last + before, h, c:], before, COLS)
    pto.store(state[b, h, c:, :], t.T.to(state.dtype))


@pto.operator
def run(
    keys: Any,
    hidden_states: Any,
    value: Any,
    norm1_weight: Any,
    norm2_weight: Any,
    conv_norm_weight: Any,
    conv_weight: Any,
    conv_state: Any = None,
    hc_mult: int = 4,
    hidden_size: int = 1024,
    kernel_size: int = 4,
    dilation: int = 3,
    norm_eps: float = 1e-5,
) -> Any:
    (b, length, heads, d), before = keys.shape, (kernel_size - 1) * dilation
    gated = np.empty(keys.shape, np.float32)
    lines = np.empty((b, length + before, heads, d), np.float32)
    weights = norm1_weight, norm2_weight, conv_norm_weight
    rows, turned = (pto.cdiv(length, ROWS), heads, b), (pto.cdiv(d, COLS), heads, b)
    gate[rows](keys, hidden_states, value, *weights, gated, lines, norm_eps, before)
    state = np.empty((b, heads * d, before), keys.dtype)
    given = state if conv_state is None else conv_state
    shape = b, heads, d, before
    begin[turned](given.reshape(shape), lines, before, conv_state is not None)
    taps = transpose.run.function(conv_weight.reshape(heads * d, -1), [1, 0])
    y = np.empty_like(keys)
    convolve[rows](gated, lines, taps.reshape(-1, heads, d), y, dilation)
    finish[turned](lines, state.reshape(shape), before)
    return y, state


def reference(
    keys: Any,
    hidden_states: Any,
    value: Any,
    norm1_weight: Any,
    norm2_weight: Any,
    conv_norm_weight: Any,
    conv_weight: Any,
    conv_state: Any = None,
    hc_mult: int = 4,
    hidden_size: int = 1024,
    kernel_size: int = 4,
    dilation: int = 3,
    norm_eps: float = 1e-5,
) -> Any:
    def norm(x: Any, w: Any) -> Any:
        return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + norm_eps) * w

    b, length, heads, d = keys.shape
    raw = (norm(keys, norm1_weight) * norm(hidden_states, norm2_weight)).sum(axis=-1) / np.sqrt(d)
    signed = np.sqrt(np.maximum(abs(raw), 1e-6)) * np.sign(raw)
    gated = value[:, :, None] / (1 + np.exp(-signed))[..., None]
    x = norm(gated, conv_norm_weight).reshape(b, length, heads * d).transpose(0, 2, 1)
    before = (kernel_size - 1) * dilation
    first = np.zeros((b, heads * d, before)) if conv_state is None else conv_state
    x = np.concatenate([first, x], axis=2)
    taps = [
        x[:, :, k * dilation :][:, :, :length] * conv_weight[:, :, k] for k in range(kernel_size)
    ]
    t = np.sum(taps, axis=0)
    t = (t / (1 + np.exp(-t))).transpose(0, 2, 1).reshape(keys.shape)
    return gated + t, x[:, :, -before:]


CASES = [
    {
        "keys": f"bf16[{b}, {length}, {heads}, {d}]",
        "hidden_states": f"bf16[{b}, {length}, {heads}, {d}]",
        "value": f"bf16[{b}, {length}, {d}] 0..1",
        "norm1_weight": f"f32[{heads}, {d}] 0.5..1",
        "norm2_weight": f"f32[{heads}, {d}] 0.5..1",
        "conv_norm_weight": f"f32[{heads}, {d}] 0.5..1",
        "conv_weight": f"f32[{heads * d}, 1, {taps}] 0..1",
        "hc_mult": heads,
        "hidden_size": d,
        "kernel_size": taps,
        **more,
    }
    for b, length, heads, d, taps, more in (
        (2, 13, 2, 40, 4, dict[str, Any]()),
        (1, 1, 3, 150, 3, {"dilation": 2, "conv_state": "bf16[1, 450, 4] 0..1"}),
    )
]
