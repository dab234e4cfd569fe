"""The same softmax on vector registers: a row is two registers of 64 lanes."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a5",)
ROWS, LANES = 16, 64


@pto.kernel(profile="a5")
def softmax_registers(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * ROWS
    t = pto.tile(ROWS, 2 * LANES, pto.f32)
    isa.tload(t, x[i : i + ROWS, :])
    isa.set_flag("MTE2", "V", 0)
    isa.wait_flag("MTE2", "V", 0)
    with pto.vecscope():
        every = isa.pset_b32("PAT_ALL")
        for row in pto.range(ROWS):
            start = row * (2 * LANES)
            a = isa.vlds(t, start)
            b = isa.vlds(t, start + LANES)
            greatest = isa.vdup(isa.vcmax(isa.vmax(a, b)), every)  # lane 0 holds it; spread it
            a = isa.vexp(a - greatest)
            b = isa.vexp(b - greatest)
            total = isa.vdup(isa.vcadd(a + b), every)
            isa.vsts(a / total, t, start)
            isa.vsts(b / total, t, start + LANES)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    isa.tstore(y[i : i + ROWS, :], t)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    x = np.random.default_rng(9).standard_normal((64, 2 * LANES), dtype=np.float32)
    y = np.zeros_like(x)
    softmax_registers.on(profile)[4](x, y)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return y, e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    actual, expected = example()
    print(f"softmax_registers: largest error {abs(actual - expected).max():.1e}")
