"""What a layer should give, in NumPy and f64: written for reading, all tokens at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from examples.decoder.layer import Quantized, Sizes, Weight, Weights

Array = npt.NDArray[Any]


def layer(x: Array, weights: Weights, sizes: Sizes) -> Array:
    """Of a whole sequence, from its first token on."""
    x = x.astype(np.float64)
    tokens = len(x)
    normal = norm(x, weights.norms[0])
    together = normal @ wide(weights.query_key_value)
    first, second = sizes.splits
    q = together[:, :first].reshape(tokens, sizes.key_heads, sizes.group, sizes.depth)
    k = together[:, first:second].reshape(tokens, sizes.key_heads, 1, sizes.depth)
    v = together[:, second:].reshape(tokens, sizes.key_heads, sizes.depth)
    angles = sizes.angles(np.arange(tokens))
    mixed = attention(rotated(q, angles), rotated(k, angles)[:, :, 0], v)
    x = x + mixed.reshape(tokens, -1) @ wide(weights.out)
    normal = norm(x, weights.norms[1])
    gate, up = normal @ wide(weights.gate), normal @ wide(weights.up)
    return x + (gate / (1 + np.exp(-gate)) * up) @ wide(weights.down)


def wide(weight: Weight) -> Array:
    return weight.wide() if isinstance(weight, Quantized) else weight.astype(np.float64)


def norm(x: Array, weight: Array, epsilon: float = 1e-5) -> Array:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + epsilon) * weight.astype(np.float64)


def rotated(x: Array, angles: Array) -> Array:
    """Halves of a head as the parts of complex numbers, turned."""
    half = x.shape[-1] // 2
    number = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)[:, None, None, :]
    return np.concatenate([number.real, number.imag], axis=-1)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Each token looks at those up to itself; heads of a group at the same keys."""
    tokens = len(k)
    scores = np.einsum("tkgd,skd->tkgs", q, k) * q.shape[-1] ** -0.5
    later = np.arange(tokens)[None, :] > np.arange(tokens)[:, None]
    scores = np.where(later[:, None, None, :], -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("tkgs,skd->tkgd", weights / weights.sum(axis=-1, keepdims=True), v)
