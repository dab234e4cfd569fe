"""The manual (Tiles), example 3: TADD works on the destination's valid region, 8 x 8 of 16 x 16."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("cpu", "a2a3", "a5")


@pto.kernel(profile="a5")
def add_region(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
    src0 = pto.tile(16, 16, pto.f32)
    src1 = pto.tile(16, 16, pto.f32)
    dst = pto.tile(16, 16, pto.f32)
    isa.tload(src0, x[0:8, 0:8])
    isa.tload(src1, y[0:8, 0:8])
    isa.tadd(dst, src0, src1)  # dst has the region of what is added
    isa.tstore(z[0:8, 0:8], dst)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Only [0..7][0..7] takes part; the rest of z stays."""
    x, y, z = np.random.default_rng(12).standard_normal((3, 16, 16), dtype=np.float32)
    expected = z.copy()
    expected[:8, :8] = x[:8, :8] + y[:8, :8]
    add_region.on(profile)(x, y, z)
    return z, expected


if __name__ == "__main__":
    actual, expected = example()
    print(f"add over 8 x 8: {np.count_nonzero(actual != expected)} wrong elements")
