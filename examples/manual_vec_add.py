"""The PTO manual (Data Movement), tile instructions: c = a + b with TLOAD, TADD and TSTORE."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("cpu", "a2a3", "a5")


@pto.kernel(profile="a5")
def vec_add(ga: pto.Global[pto.f32], gb: pto.Global[pto.f32], gc: pto.Global[pto.f32]) -> None:
    a = pto.tile(16, 16, pto.f32)
    b = pto.tile(16, 16, pto.f32)
    c = pto.tile(16, 16, pto.f32)
    isa.tload(a, ga)  # GM -> local tile buffer A
    isa.tload(b, gb)  # GM -> local tile buffer B
    isa.tadd(c, a, b)  # over c's valid region
    isa.tstore(gc, c)  # local tile buffer C -> GM


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """What the kernel gives, and what NumPy gives."""
    a, b, c = np.random.default_rng(13).standard_normal((3, 16, 16), dtype=np.float32)
    vec_add.on(profile)(a, b, c)
    return c, a + b


if __name__ == "__main__":
    actual, expected = example()
    print(f"vec_add: {np.count_nonzero(actual != expected)} wrong elements")
