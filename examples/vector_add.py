"""Vector add over an array of any length: the last tile of a row is cut where the array ends."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
WIDTH = 256


@pto.kernel(profile="a5")
def vector_add(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
    start = pto.block_idx() * WIDTH
    a = pto.tile(1, WIDTH, pto.f32)
    b = pto.tile(1, WIDTH, pto.f32)
    isa.tload(a, x[start : start + WIDTH])
    isa.tload(b, y[start : start + WIDTH])
    isa.tadd(a, a, b)
    isa.tstore(z[start : start + WIDTH], a)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 1000), dtype=np.float32)
    z = np.zeros_like(x)
    vector_add.on(profile)[pto.cdiv(len(x), WIDTH)](x, y, z)
    return z, x.astype(np.float64) + y


if __name__ == "__main__":
    actual, expected = example()
    print(f"vector_add: largest error {abs(actual - expected).max():.1e}")
