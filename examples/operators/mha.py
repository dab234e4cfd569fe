"""softmax(q k' scale) v for each head: grouped attention in which each head has keys of its own.

Bound by the matrix unit where there are many queries, by reading keys and values in decoding.
"""

from typing import Any

import numpy as np

import pto
from examples.operators import gqa

LEVEL = 4


@pto.operator
def run(query: Any, key: Any, value: Any, scaleValue: float = -1.0, is_causal: bool = False) -> Any:
    return gqa.run.function(query, key, value, scaleValue, is_causal)


def reference(
    query: Any, key: Any, value: Any, scaleValue: float = -1.0, is_causal: bool = False
) -> Any:
    scale = scaleValue if scaleValue > 0 else query.shape[3] ** -0.5
    found = np.empty((*query.shape[:3], value.shape[3]))
    for b, n in np.ndindex(query.shape[0], query.shape[2]):
        scores = query[b, :, n] @ key[b, :, n].T * scale
        if is_causal:
            s, t = scores.shape
            scores[np.arange(t) > np.arange(s)[:, None] + (t - s)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        found[b, :, n] = weights / weights.sum(axis=1, keepdims=True) @ value[b, :, n]
    return found


TOLERANCE = gqa.TOLERANCE
CASES = [
    {
        "query": "f16[2, 70, 2, 64] 0..1",
        "key": "f16[2, 70, 2, 64]",
        "value": "f16[2, 70, 2, 64] 0..1",
        "is_causal": True,
    },
    {
        "query": "bf16[1, 33, 3, 32] 0..1",
        "key": "bf16[1, 20, 3, 32]",
        "value": "bf16[1, 20, 3, 32] 0..1",
    },
]
