"""Embedding: rows of a table by their numbers, 16 at a time; the last group may be smaller."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
ROWS, WIDTH = 16, 64


@pto.kernel(profile="a5")
def embedding(
    table: pto.Global[pto.f16], tokens: pto.Global[pto.i32], y: pto.Global[pto.f16]
) -> None:
    i = pto.block_idx() * ROWS
    numbers = pto.tile(1, ROWS, pto.i32)
    isa.tload(numbers, tokens[i:])
    rows = pto.tile(ROWS, WIDTH, pto.f16)
    isa.mgather(rows, table, numbers, coalesce="row")
    isa.tstore(y[i:, :], rows)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float16]]:
    """What the kernel gives, and what NumPy gives."""
    rng = np.random.default_rng(8)
    table = rng.standard_normal((1000, WIDTH)).astype(np.float16)
    tokens = rng.integers(0, len(table), 50, dtype=np.int32)
    y = np.zeros((50, WIDTH), np.float16)
    embedding.on(profile)[pto.cdiv(len(tokens), ROWS)](table, tokens, y)
    return y, table[tokens]


if __name__ == "__main__":
    actual, expected = example()
    print(f"embedding: largest error {abs(actual - expected).max():.1e}")
