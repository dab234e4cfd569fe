"""Natural kernels in which values of the vector unit feed the cube, with their references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import pto
from pto.ir.graph import Module, Operation
from pto.run.launch.host import launch
from pto.target.profile import profile
from pto.transform.separate import Separated, separate

NPUS = ("a2a3", "a5")
HALF, FLOAT, BYTE = pto.Global[pto.f16], pto.Global[pto.f32], pto.Global[pto.i8]
Array = npt.NDArray[Any]


@pto.kernel
def mlp(x: HALF, w: HALF, u: HALF, y: FLOAT) -> None:
    """y = max(x w, 0) u; the cube adds the products."""
    i = pto.block_idx() * 32
    out = pto.zeros(32, 64, pto.f32, role="acc")
    for j in pto.range(0, w.shape[1], 64):
        hidden = pto.max(pto.load(x[i:, :], 32, 64) @ pto.load(w[:, j:], 64, 64), 0.0)
        out += hidden.to(pto.f16) @ pto.load(u[j:, :], 64, 64)
    pto.store(y[i:, :], out)


@pto.kernel
def attention(
    q: HALF,
    k: HALF,
    v: HALF,
    o: FLOAT,
    causal: bool = False,
    m: int = 32,
    n: int = 64,
    d: int = 64,
) -> None:
    i = pto.block_idx() * m
    queries = pto.load(q[i:, :], m, d)
    highest, total = pto.full(m, 1, float("-inf"), pto.f32), pto.zeros(m, 1, pto.f32)
    out = pto.zeros(m, d, pto.f32)
    for j in pto.range(0, i + m if causal else k.shape[0], n):
        scores = queries @ pto.load(k.T[:, j:], d, n) * d**-0.5
        if causal:
            scores = pto.where(pto.tri(m, n, i - j) > 0.0, scores, -1e30)
        now = pto.max(highest, scores.max(axis=1))
        weights, shrink = pto.exp(scores - now), pto.exp(highest - now)
        out = out * shrink + weights.to(pto.f16) @ pto.load(v[j:, :], n, d)
        total = total * shrink + weights.sum(axis=1)
        highest = now
    pto.store(o[i:, :], out / total)


@pto.kernel
def quantised(a: BYTE, s: FLOAT, w: HALF, c: FLOAT) -> None:
    """c = (s a) w, where s has a number for each row."""
    i = pto.block_idx() * 32
    acc = pto.zeros(32, 64, pto.f32, role="acc")
    for at in pto.range(0, a.shape[1], 64):
        acc += pto.load(a[i:, at:], 32, 64).to(pto.f16) @ pto.load(w[at:, :], 64, 64)
    pto.store(c[i:, :], acc * pto.load(s[i:, :], 32, 1))


@pto.kernel
def delta_rule(q: HALF, k: HALF, v: HALF, b: FLOAT, o: FLOAT) -> None:
    """Chunks of 32 steps: new = b (v - k S), o = q S + tril(q k') new, S += k' new."""
    state = pto.zeros(64, 64, pto.f32)
    for i in pto.range(0, q.shape[0], 32):
        queries, keys = pto.load(q[i:, :], 32, 64), pto.load(k[i:, :], 32, 64)
        old = pto.load(v[i:, :], 32, 64).to(pto.f32) - keys @ state.to(pto.f16)
        new = (old * pto.load(b[i:, :], 32, 1)).to(pto.f16)
        inner = pto.where(pto.tri(32, 32) > 0.0, queries @ pto.load(k.T[:, i:], 64, 32), 0.0)
        pto.store(o[i:, :], queries @ state.to(pto.f16) + inner.to(pto.f16) @ new)
        state += pto.load(k.T[:, i:], 64, 32) @ new


Case = tuple[pto.Kernel[...], list[Any], int, int, Array]  # args, the output, blocks, expected


def halves(seed: int, *shapes: tuple[int, int]) -> list[Array]:
    random = np.random.default_rng(seed)
    return [(0.3 * random.standard_normal(shape)).astype(np.float16) for shape in shapes]


def empty(rows: int) -> Array:
    return np.full((rows, 64), np.nan, np.float32)


def mlp_case(rows: int, hidden: int) -> Case:
    x, w, u = halves(1, (rows, 64), (64, hidden), (hidden, 64))
    expected = np.maximum(x.astype(float) @ w.astype(float), 0) @ u.astype(float)
    return mlp, [x, w, u, empty(rows)], 3, -(-rows // 32), expected


def attention_case(rows: int, keys: int, causal: bool) -> Case:
    q, k, v = halves(2, (rows, 64), (keys, 64), (keys, 64))
    scores = 9 * q.astype(float) @ k.T.astype(float) / 8
    scores[causal * ~np.tri(rows, keys, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(float)
    return attention, [9 * q, k, v, empty(rows), causal], 3, -(-rows // 32), expected


def quantised_case(rows: int, inner: int) -> Case:
    random = np.random.default_rng(3)
    a = random.integers(-100, 100, (rows, inner), np.int8)
    s = random.uniform(0.5, 2.0, (rows, 1)).astype(np.float32)
    (w,) = halves(3, (inner, 64))
    expected = a.astype(float) @ w.astype(float) * s
    return quantised, [a, s, w, empty(rows)], 3, -(-rows // 32), expected


def delta_rule_case(steps: int) -> Case:
    q, k, v = halves(4, *[(steps, 64)] * 3)
    b = np.random.default_rng(4).uniform(0.0, 0.5, (steps, 1)).astype(np.float32)
    state, expected = np.zeros((64, 64)), np.zeros((steps, 64))
    for i in range(0, steps, 32):
        queries, keys, values, share = (a[i : i + 32].astype(float) for a in (q, k, v, b))
        new = share * (values - keys @ state)
        expected[i : i + 32] = queries @ state + np.tril(queries @ keys.T) @ new
        state += keys.T @ new
    return delta_rule, [q, k, v, b, empty(steps)], 4, 1, expected


CASES: dict[str, Callable[[], Case]] = {
    "mlp": lambda: mlp_case(64, 192),
    "mlp, ragged": lambda: mlp_case(50, 150),
    "attention": lambda: attention_case(64, 128, False),
    "attention, ragged rows": lambda: attention_case(50, 128, False),
    "causal attention": lambda: attention_case(96, 96, True),
    "quantised": lambda: quantised_case(64, 128),
    "quantised, ragged": lambda: quantised_case(50, 100),
    "delta rule": lambda: delta_rule_case(96),
}


# ---- runs of the program as it is written and as two functions


def run(
    module: Module, args: list[Any], blocks: int, engine: str, entry: str | None
) -> list[bytes]:
    copies = [each.copy() for each in args]
    launch(module, args=copies, blocks=blocks, engine=engine, entry=entry, coverage=False)
    return [each.tobytes() for each in copies]


def both(kernel: pto.Kernel[...], args: list[Any], name: str) -> tuple[Module, Separated]:
    """The program of a kernel, and the same as two functions."""
    module = kernel.on(name).module(*args)
    (function,) = module.functions()
    return module, separate(module, profile(name), [function]).required()


def function_of(split: Separated, side: str) -> Operation:
    return next(f for f in split.module.functions() if f.symbol.endswith(side))


def has_equal_bits(module: Module, split: Separated, args: list[Any], blocks: int) -> bool:
    """True if both programs leave the same bytes, on both engines."""
    arrays = [each for each in args if isinstance(each, np.ndarray)]
    wanted, given = run(module, arrays, blocks, "reference", None), split.arguments(arrays, blocks)
    found = [run(split.module, given, blocks, each, split.entry) for each in ("reference", "jit")]
    return all(each[: len(wanted)] == wanted for each in found)
