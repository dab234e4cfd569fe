"""Gated recurrent units: for each position r, z = sigmoid(..), n = tanh(x W_n + b + r (h U_n +
c)), h = (1 - z) n + z h; several layers, in one or both directions.

Bound by latency: every position waits for the one before it. What depends on the inputs alone is
one matrix product for all positions; only the products with h remain in the loop.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 4
ROWS = 16  # sequences of a block
M, K, N = 64, 64, 128  # the tiles of the products of all positions


@pto.kernel
def inputs_of(
    x: pto.Global[Any],
    w: pto.Global[Any],
    bias: pto.Global[Any],
    y: pto.Global[pto.f32],
    has_bias: bool,
) -> None:
    """y = x w' + bias, for all positions: x (rows, k), w (n, k), bias (1, n)."""
    i, j = pto.block_idx(1) * M, pto.block_idx(0) * N
    acc = pto.zeros(M, N, pto.f32, role="acc")
    for k in pto.range(0, x.shape[1], K):
        acc = pto.dot(pto.load(x[i:, k:], M, K), pto.load(w.T[k:, j:], K, N), acc=acc)
    total = acc * 1.0
    if has_bias:
        total += pto.load(bias[:, j:], 1, N).to(pto.f32)
    pto.store(y[i:, j:], total)


@pto.kernel
def cells(
    gates: pto.Global[pto.f32],
    w: pto.Global[Any],
    bias: pto.Global[Any],
    h0: pto.Global[Any],
    y: pto.Global[Any],
    hn: pto.Global[Any],
    has: tuple[bool, bool],
    direction: int,
    by_sequence: bool,
) -> None:
    """gates is (positions, sequences, 3 h), y alike; the first two exchanged if by_sequence."""
    if by_sequence:
        gates, y = gates.transpose(1, 0, 2), y.transpose(1, 0, 2)
    b, size, (has_bias, has_state) = pto.block_idx() * ROWS, hn.shape[1], has
    count = gates.shape[0]
    h = pto.load(gates[0, b:, 0:size], ROWS, size) * 0.0
    if has_state:
        h[:] = pto.load(h0[b:, :], ROWS, size).to(pto.f32)
    for step in pto.range(count):
        t = count - 1 - step if direction else step
        r, z, n = (slice(g * size, (g + 1) * size) for g in range(3))
        state = parts_of(h, w.dtype)
        parts = [product(state, w, bias, g, has_bias) for g in (r, z, n)]
        given = [pto.load(gates[t, b:, g], ROWS, size) for g in (r, z, n)]
        reset, update = pto.sigmoid(given[0] + parts[0]), pto.sigmoid(given[1] + parts[1])
        new = pto.tanh(given[2] + reset * parts[2])
        h[:] = new + update * (h - new)
        here = slice(direction * size, (direction + 1) * size)
        pto.store(y[t, b:, here], h.to(y.dtype))
    pto.store(hn[b:, :], h.to(hn.dtype))


def parts_of(state: pto.Tile, kind: Any) -> list[Any]:
    """A state in f32 as a sum of tiles of the type of the weights."""
    if kind is pto.f32:
        return [state]
    first = state.to(kind)
    return [first, (state - first.to(pto.f32)).to(kind)]


def product(state: list[Any], w: Any, bias: Any, gate: slice, has_bias: bool) -> Any:
    """The product of a state, a sum of parts, with the rows of a gate."""
    acc: Any = None
    for part in state:
        acc = pto.dot(part, pto.load(w[gate, :].T, part.asked[1], gate.stop - gate.start), acc=acc)
    total = acc * 1.0
    return total + pto.load(bias[:, gate], 1).to(pto.f32) if has_bias else total


@pto.operator
def run(
    x: Any,
    weight_ih: list[Any],
    weight_hh: list[Any],
    inputSize: int,
    hiddenSize: int,
    numLayers: int = 1,
    bias: bool = True,
    batchFirst: bool = False,
    dropout: float = 0.0,
    bidirectional: bool = False,
    bias_ih: Any = None,
    bias_hh: Any = None,
    h0: Any = None,
) -> Any:
    ways, size, none = 2 if bidirectional else 1, hiddenSize, np.zeros((1, 1), x.dtype)
    (first, second, _), rows = x.shape, x.shape[0] * x.shape[1]
    sequences = first if batchFirst else second
    hn = np.empty((numLayers * ways, sequences, size), x.dtype)
    has_bias = bias and bias_ih is not None
    for layer in range(numLayers):
        y = np.empty((first, second, ways * size), x.dtype)
        for way in range(ways):
            n = layer * ways + way
            gates = np.empty((first, second, 3 * size), np.float32)
            rows_of_bias = [
                r[n][None] if has_bias else none for r in (bias_ih or [], bias_hh or [])
            ]
            grid = pto.cdiv(3 * size, N), pto.cdiv(rows, M)
            flat = x.reshape(rows, -1), weight_ih[n], rows_of_bias[0], gates.reshape(rows, -1)
            inputs_of[grid](*flat, has_bias)
            state = none if h0 is None else h0[n]
            arrays = gates, weight_hh[n], rows_of_bias[1], state, y, hn[n]
            cells[pto.cdiv(sequences, ROWS)](*arrays, (has_bias, h0 is not None), way, batchFirst)
        x = y
    return x, hn


def reference(x: Any, weight_ih: Any, weight_hh: Any, **given: Any) -> Any:
    size, layers = given["hiddenSize"], given.get("numLayers", 1)
    ways, h0 = 1 + given.get("bidirectional", False), given.get("h0")
    biases = [given.get(n) if given.get("bias", True) else None for n in ("bias_ih", "bias_hh")]
    x = np.swapaxes(x, 0, 1) if given.get("batchFirst") else x
    last = []
    for layer in range(layers):
        found = []
        for n in range(layer * ways, (layer + 1) * ways):
            h = np.zeros((x.shape[1], size)) if h0 is None else h0[n]
            b, c = (np.zeros(3 * size) if each is None else each[n] for each in biases)
            steps: list[Any] = [None] * len(x)
            for t in range(len(x))[:: -1 if n % ways else 1]:
                i, u = x[t] @ weight_ih[n].T + b, h @ weight_hh[n].T + c
                (ir, iz, new), (ur, uz, un) = np.split(i, 3, axis=1), np.split(u, 3, axis=1)
                reset, update = 1 / (1 + np.exp(-ir - ur)), 1 / (1 + np.exp(-iz - uz))
                h = (1 - update) * np.tanh(new + reset * un) + update * h
                steps[t] = h
            found.append(np.stack(steps))
            last.append(h)
        x = np.concatenate(found, axis=2)
    return np.swapaxes(x, 0, 1) if given.get("batchFirst") else x, np.stack(last)


CASES = [
    {
        "x": "f16[4, 3, 20]",
        "weight_ih": ["f16[48, 20] -0.3..0.3", "f16[48, 20] -0.3..0.3"],
        "weight_hh": ["f16[48, 16] -0.3..0.3", "f16[48, 16] -0.3..0.3"],
        "bias_ih": ["f16[48]", "f16[48]"],
        "bias_hh": ["f16[48]", "f16[48]"],
        "h0": "f16[2, 3, 16]",
        "inputSize": 20,
        "hiddenSize": 16,
        "bidirectional": True,
    },
    {
        "x": "f32[2, 3, 9]",
        "weight_ih": ["f32[21, 9]", "f32[21, 7]"],
        "weight_hh": ["f32[21, 7]", "f32[21, 7]"],
        "inputSize": 9,
        "hiddenSize": 7,
        "numLayers": 2,
        "bias": False,
        "batchFirst": True,
    },
]
