"""A prompt and the tokens after it, by kernels and by NumPy; then how long that takes on chips."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import pto
from examples.decoder import reference
from examples.decoder.layer import BF16, Array, Cache, Layer, Quantized, Sizes, Weights

PROFILES = {"a2a3": "910b1", "a5": "950pr"}
PROMPT, NEXT = 70, 7  # tokens at once, then one by one
# A layer of a model of 8 billion parameters, for the times.
LARGE = Sizes(width=4096, heads=32, key_heads=8, depth=128, hidden=14336, base=500_000.0)
# Kernels whose data decides what they do: a table of pages, the one scale of a tile of one row.
LOOKING = ("append", "attention", "quantize")
STEPS = {"prompt of 255": (255, 0), "token after 1,000": (1, 1000)}


def written(profile: str, *, int8: bool = False) -> tuple[Array, Array]:
    """What the layer gives for a prompt and the tokens after it, and what NumPy gives in f64."""
    sizes = Sizes()
    weights = Weights.random(sizes, int8=int8)
    x = np.random.default_rng(1).standard_normal((PROMPT + NEXT, sizes.width)).astype(BF16)
    layer, cache = Layer(sizes, weights, profile), Cache.empty(sizes, len(x))
    parts = [layer(x[:PROMPT], cache)]
    parts += [layer(x[n : n + 1], cache) for n in range(PROMPT, len(x))]
    return np.concatenate(parts).astype(np.float64), reference.layer(x, weights, sizes)


def shapes(sizes: Sizes, *, int8: bool) -> Weights:
    """Weights of which only shapes count."""

    def matrix(rows: int, cols: int) -> Any:
        if not int8:
            return np.empty((rows, cols), BF16)
        return Quantized(np.empty((rows, cols), np.int8), np.empty((1, cols), np.float32))

    norm = np.empty((1, sizes.width), BF16)
    heads, hidden = sizes.splits[0], sizes.hidden
    return Weights(
        (norm, norm),
        matrix(sizes.width, heads + 2 * sizes.key_heads * sizes.depth),
        matrix(heads, sizes.width),
        matrix(sizes.width, hidden),
        matrix(sizes.width, hidden),
        matrix(hidden, sizes.width),
    )


def times(profile: str, tokens: int, before: int, *, int8: bool) -> dict[str, float]:
    """Microseconds of each kernel in one pass through the layer, by the model of the chip."""
    found: dict[str, float] = {}

    def launch(kernel: pto.Kernel[...], blocks: Any, args: tuple[Any, ...]) -> None:
        data = kernel.name in LOOKING
        took = kernel.time(*args, blocks=blocks, device=PROFILES[profile], data=data)
        found[kernel.name] = found.get(kernel.name, 0.0) + took.us

    cache = Cache.empty(LARGE, before + tokens)
    cache.length = before
    layer = Layer(LARGE, shapes(LARGE, int8=int8), profile, launch)
    layer(np.zeros((tokens, LARGE.width), BF16), cache)
    return found


def table(int8: bool) -> str:
    """One row a kernel, one column a chip and step."""
    found = {
        (device, step): times(profile, *STEPS[step], int8=int8)
        for profile, device in PROFILES.items()
        for step in STEPS
    }
    names = list(dict.fromkeys(name for column in found.values() for name in column))
    head = " | ".join(f"{device}, {step}" for device, step in found)
    rows = [f"| us | {head} |", f"| --- |{' ---: |' * len(found)}"]
    rows += [
        f"| {n} | " + " | ".join(f"{c.get(n, 0.0):,.0f}" for c in found.values()) + " |"
        for n in names
    ]
    rows.append("| all | " + " | ".join(f"{sum(c.values()):,.0f}" for c in found.values()) + " |")
    return "\n".join(rows)


def main() -> None:
    for profile in PROFILES:
        for int8 in (False, True):
            actual, expected = written(profile, int8=int8)
            error = np.abs(actual - expected).max() / np.abs(expected).max()
            kind = "int8" if int8 else "bf16"
            print(f"{profile}, {kind} weights: largest error {error:.1e} of the largest value")
    if "--time" in sys.argv:
        for int8 in (False, True):
            print(f"\n{'int8' if int8 else 'bf16'} weights\n\n{table(int8)}")


if __name__ == "__main__":
    main()
