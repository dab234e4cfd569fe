"""One step of AdamW: moments m and v, the step, decoupled decay of weights. Returns the weights.

Bound by memory: four elements are read and one is written for each weight.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 2
WIDTH = 4096  # elements of a block


@pto.kernel
def kernel(
    var: pto.Global[Any],
    grad: pto.Global[Any],
    m: pto.Global[Any],
    v: pto.Global[Any],
    y: pto.Global[Any],
    beta1: pto.Scalar[pto.f32],
    beta2: pto.Scalar[pto.f32],
    unbias1: pto.Scalar[pto.f32],
    unbias2: pto.Scalar[pto.f32],
    rate: pto.Scalar[pto.f32],
    decay: pto.Scalar[pto.f32],
    epsilon: pto.Scalar[pto.f32],
    decays: bool,
) -> None:
    i = pto.block_idx() * WIDTH
    w, g, first, second = (pto.load(x[i:], WIDTH).to(pto.f32) for x in (var, grad, m, v))
    first = (g + (first - g) * beta1) * unbias1
    second = (second * beta2 + g * g * (1.0 - beta2)) * unbias2
    step = first / (pto.sqrt(second) + epsilon)
    if decays:  # else an infinite weight remains one
        step = step + w * decay
    pto.store(y[i:], (w - step * rate).to(y.dtype, saturate=False))


@pto.operator
def run(
    var: Any,
    grad: Any,
    m: Any,
    v: Any,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    epsilon: float = 1e-8,
    step: int = 1,
    maximize: bool = False,
) -> Any:
    y = np.empty_like(var)
    unbias1, unbias2 = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    a, b, c, d, out = (each.reshape(-1) for each in (var, grad, m, v, y))
    rate = -lr if maximize else lr
    kernel[pto.cdiv(y.size, WIDTH)](
        a,
        b,
        c,
        d,
        out,
        beta1,
        beta2,
        unbias1,
        unbias2,
        rate,
        weight_decay,
        epsilon,
        weight_decay != 0,
    )
    return y


def reference(
    var: Any,
    grad: Any,
    m: Any,
    v: Any,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    epsilon: float = 1e-8,
    step: int = 1,
    maximize: bool = False,
) -> Any:
    first = (beta1 * m + (1 - beta1) * grad) / (1 - beta1**step)
    second = (beta2 * v + (1 - beta2) * grad**2) / (1 - beta2**step)
    change = first / (np.sqrt(second) + epsilon) + (var * weight_decay if weight_decay else 0.0)
    return var + lr * change if maximize else var - lr * change


_RATES = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01}
CASES: list[dict[str, Any]] = [
    {
        **dict.fromkeys(("var", "grad", "m"), "f16[100, 77] -2..2"),
        "v": "f16[100, 77] 0..4",
        **_RATES,
    },
    {**dict.fromkeys(("var", "grad", "m"), "bf16[4, 1031]"), "v": "bf16[4, 1031] 0..1", **_RATES},
    {
        **dict.fromkeys(("var", "grad", "m"), "f32[31, 331] -1..3"),
        "v": "f32[31, 331] 0..1",
        **_RATES,
        "maximize": True,
        "step": 5,
    },
    {
        **dict.fromkeys(("var", "grad", "m"), "f32[31, 31] 0..0"),
        "v": "f32[31, 31] 0..0",
        **_RATES,
        "beta1": 0.0,
    },
    {
        "var": "bf16[31, 31] -inf..inf",
        "grad": "bf16[31, 31] -inf..inf",
        "m": "bf16[31, 31]",
        "v": "bf16[31, 31] 0..1",
        **_RATES,
        "weight_decay": 0.0,
    },
]
