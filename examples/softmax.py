"""Softmax of the rows of a matrix, 16 rows a block; the last block may have fewer."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
ROWS = 16


@pto.kernel(profile="a5")
def softmax_rows(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * ROWS
    t = pto.tile(ROWS, 128, pto.f32)  # Vec, row-major; the valid region follows the view
    m = pto.tile(ROWS, 1, pto.f32, layout="DN")
    work = pto.tile(ROWS, 128, pto.f32)
    isa.tload(t, x[i:, :])
    isa.trowmax(m, t, work)
    isa.trowexpandsub(t, t, m)
    isa.texp(t, t)
    isa.trowsum(m, t, work)
    isa.trowexpanddiv(t, t, m)
    isa.tstore(y[i:, :], t)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    x = np.random.default_rng(2).standard_normal((100, 128), dtype=np.float32)
    y = np.zeros_like(x)
    softmax_rows.on(profile)[pto.cdiv(len(x), ROWS)](x, y)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return y, e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    actual, expected = example()
    print(f"softmax: largest error {abs(actual - expected).max():.1e}")
