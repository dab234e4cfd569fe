"""Rotation of pairs of elements of query and key by angles that depend on the position.

Bound by memory: each element is read once and written once, and the cosines once for each head. The
pairs are the halves of a head, or neighbours ("interleaved"), which a gather exchanges.
"""

from typing import Any

import numpy as np

import pto

LEVEL = 2
ROWS = 64  # positions of a block
Array = pto.Global[Any]


@pto.kernel
def kernel(x: Array, cos: Array, sin: Array, y: Array, layout: int, interleaved: bool) -> None:
    s, n, b = pto.block_idx(0) * ROWS, pto.block_idx(1), pto.block_idx(2)
    source, result = (
        (x[b, s:, n, :], y[b, s:, n, :]) if layout == 0 else (x[b, n, s:, :], y[b, n, s:, :])
    )
    half, own = cos.shape[2], b if cos.shape[0] > 1 else 0
    c, d = (pto.load(each[own, s:, :], ROWS, half).to(pto.f32) for each in (cos, sin))
    if interleaved:
        t, column = pto.load(source, ROWS, 2 * half).to(pto.f32), pto.arange(2 * half)
        sign = (column & 1).to(pto.f32) * 2.0 - 1.0
        c, d = (pto.take(each, column >> 1) for each in (c, d))
        turned = pto.take(t, column + 1 - (column & 1) * 2)
        pto.store(result, (t * c + turned * (d * sign)).to(y.dtype, saturate=False))
    else:
        first, second = source[:, 0:half], source[:, half : 2 * half]
        a, e = (pto.load(each, ROWS, half).to(pto.f32) for each in (first, second))
        pto.store(result[:, 0:half], (a * c - e * d).to(y.dtype, saturate=False))
        pto.store(result[:, half : 2 * half], (e * c + a * d).to(y.dtype, saturate=False))


@pto.operator
def run(query: Any, key: Any, cos: Any, sin: Any, layout: int = 0, rotaryMode: str = "half") -> Any:
    results = np.empty_like(query), np.empty_like(key)
    angles = [each.reshape(-1, *each.shape[-2:]) for each in (cos, sin)]
    for x, y in zip((query, key), results, strict=True):
        length, heads = x.shape[1 + layout], x.shape[2 - layout]
        grid = pto.cdiv(length, ROWS), heads, x.shape[0]
        kernel[grid](x, angles[0], angles[1], y, layout, rotaryMode == "interleaved")
    return results


def reference(
    query: Any, key: Any, cos: Any, sin: Any, layout: int = 0, rotaryMode: str = "half"
) -> Any:
    c, d = (np.expand_dims(each, -2 if layout == 0 else -3) for each in (cos, sin))
    results: list[Any] = []
    for x in (query, key):
        half = x.shape[-1] // 2
        ways = (slice(0, None, 2), slice(1, None, 2)), (slice(0, half), slice(half, None))
        first, second = ways[rotaryMode == "half"]
        y = np.empty_like(x)
        y[..., first] = x[..., first] * c - x[..., second] * d
        y[..., second] = x[..., second] * c + x[..., first] * d
        results.append(y)
    return results


def _case(shape: str, angles: str, kind: str, **more: Any) -> dict[str, Any]:
    span = more.pop("span", "-3..6")
    each = dict.fromkeys(("query", "key"), f"{kind}[{shape}] {span}")
    return {**each, **dict.fromkeys(("cos", "sin"), f"{kind}[{angles}] -1..1"), **more}


CASES: list[dict[str, Any]] = [
    _case("2, 71, 3, 64", "71, 32", "f16"),
    _case("2, 3, 71, 128", "71, 64", "bf16", layout=1),
    _case("2, 71, 3, 64", "71, 32", "f32", rotaryMode="interleaved"),
    _case("3, 2, 17, 64", "3, 17, 32", "bf16", layout=1, rotaryMode="interleaved"),
    _case("1, 301, 1, 64", "301, 32", "f16", span="-inf..inf"),
]
