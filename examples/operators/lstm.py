"""Long short-term memory: for each position c = sigmoid(f) c + sigmoid(i) tanh(g) and h =
sigmoid(o) tanh(c), of which a projection may follow; several layers, in one or both directions.

Bound by latency: every position waits for the one before it. What depends on the inputs alone is
one matrix product for all positions; only the products with h remain in the loop.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.gru import ROWS, M, N, inputs_of, parts_of, product

LEVEL = 4


@pto.kernel
def cells(
    gates: pto.Global[pto.f32],
    w: pto.Global[Any],
    bias: pto.Global[Any],
    projection: pto.Global[Any],
    h0: pto.Global[Any],
    c0: pto.Global[Any],
    y: pto.Global[Any],
    hn: pto.Global[Any],
    cn: pto.Global[Any],
    has: tuple[bool, bool, bool],
    direction: int,
    by_sequence: bool,
) -> None:
    """gates is (positions, sequences, 4 size), y alike; the first two exchanged if by_sequence."""
    if by_sequence:
        gates, y = gates.transpose(1, 0, 2), y.transpose(1, 0, 2)
    b, (has_bias, has_state, has_projection) = pto.block_idx() * ROWS, has
    size, width, count = cn.shape[1], hn.shape[1], gates.shape[0]
    c = pto.load(gates[0, b:, 0:size], ROWS, size) * 0.0
    h = pto.load(gates[0, b:, 0:width], ROWS, width) * 0.0
    if has_state:
        h[:] = pto.load(h0[b:, :], ROWS, width).to(pto.f32)
        c[:] = pto.load(c0[b:, :], ROWS, size).to(pto.f32)
    for step in pto.range(count):
        t = count - 1 - step if direction else step
        places = [slice(g * size, (g + 1) * size) for g in range(4)]
        state = parts_of(h, w.dtype)
        i, f, g, o = (
            product(state, w, bias, place, has_bias) + pto.load(gates[t, b:, place], ROWS, size)
            for place in places
        )
        c[:] = pto.sigmoid(f) * c + pto.sigmoid(i) * pto.tanh(g)
        new = pto.sigmoid(o) * pto.tanh(c)
        if has_projection:
            new = product(parts_of(new, w.dtype), projection, bias, slice(0, width), False)
        h[:] = new
        pto.store(y[t, b:, direction * width : (direction + 1) * width], h.to(y.dtype))
    pto.store(hn[b:, :], h.to(hn.dtype))
    pto.store(cn[b:, :], c.to(cn.dtype))


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
    projSize: int = 0,
    bias_ih: Any = None,
    bias_hh: Any = None,
    weight_hr: Any = None,
    h0: Any = None,
    c0: Any = None,
) -> Any:
    ways, size, none = 2 if bidirectional else 1, hiddenSize, np.zeros((1, 1), x.dtype)
    (first, second, _), rows, width = x.shape, x.shape[0] * x.shape[1], projSize or hiddenSize
    sequences = first if batchFirst else second
    hn = np.empty((numLayers * ways, sequences, width), x.dtype)
    cn = np.empty((numLayers * ways, sequences, size), x.dtype)
    has_bias = bias and bias_ih is not None
    has = has_bias, h0 is not None, projSize > 0
    for layer in range(numLayers):
        y = np.empty((first, second, ways * width), x.dtype)
        for way in range(ways):
            n = layer * ways + way
            gates = np.empty((first, second, 4 * size), np.float32)
            ih, hh = (none if r is None or not bias else r[n][None] for r in (bias_ih, bias_hh))
            projection = none if weight_hr is None else weight_hr[n]
            h, c = (none if each is None else each[n] for each in (h0, c0))
            grid, flat = (pto.cdiv(4 * size, N), pto.cdiv(rows, M)), x.reshape(rows, -1)
            inputs_of[grid](flat, weight_ih[n], ih, gates.reshape(rows, -1), has_bias)
            blocks = pto.cdiv(sequences, ROWS)
            cells[blocks](
                gates, weight_hh[n], hh, projection, h, c, y, hn[n], cn[n], has, way, batchFirst
            )
        x = y
    return x, hn, cn


def reference(x: Any, weight_ih: Any, weight_hh: Any, **options: Any) -> Any:
    size, layers = options["hiddenSize"], options.get("numLayers", 1)
    ways, width = 1 + options.get("bidirectional", False), options.get("projSize", 0) or size
    x = np.swapaxes(x, 0, 1) if options.get("batchFirst") else x
    states: Any = {"h0": [], "c0": []}
    for layer in range(layers):
        outputs = []
        for n in range(layer * ways, (layer + 1) * ways):
            h, c = (
                np.zeros((x.shape[1], k)) if options.get(name) is None else options[name][n]
                for name, k in (("h0", width), ("c0", size))
            )
            steps: list[Any] = [None] * len(x)
            for t in range(len(x))[:: -1 if n % ways else 1]:
                total = x[t] @ weight_ih[n].T + h @ weight_hh[n].T
                for name in ("bias_ih", "bias_hh"):
                    total = total if options.get(name) is None else total + options[name][n]
                i, f, g, o = np.split(total, 4, axis=1)
                i, f, o = (1 / (1 + np.exp(-each)) for each in (i, f, o))
                c = f * c + i * np.tanh(g)
                h = o * np.tanh(c)
                h = h @ options["weight_hr"][n].T if width != size else h
                steps[t] = h
            outputs.append(np.stack(steps))
            states["h0"].append(h)
            states["c0"].append(c)
        x = np.concatenate(outputs, axis=2)
    y = np.swapaxes(x, 0, 1) if options.get("batchFirst") else x
    return y, np.stack(states["h0"]), np.stack(states["c0"])


CASES = [
    {
        "x": "f16[4, 3, 20]",
        "weight_ih": ["f16[64, 20] -0.3..0.3", "f16[64, 20] -0.3..0.3"],
        "weight_hh": ["f16[64, 16] -0.3..0.3", "f16[64, 16] -0.3..0.3"],
        "bias_ih": ["f16[64]", "f16[64]"],
        "bias_hh": ["f16[64]", "f16[64]"],
        "h0": "f16[2, 3, 16]",
        "c0": "f16[2, 3, 16]",
        "inputSize": 20,
        "hiddenSize": 16,
        "bidirectional": True,
    },
    {
        "x": "f32[2, 3, 9]",
        "weight_ih": ["f32[96, 9]", "f32[96, 16]"],
        "weight_hh": ["f32[96, 16]", "f32[96, 16]"],
        "weight_hr": ["f32[16, 24]", "f32[16, 24]"],
        "inputSize": 9,
        "hiddenSize": 24,
        "projSize": 16,
        "numLayers": 2,
        "batchFirst": True,
    },
]
