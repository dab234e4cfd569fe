"""PTO manual, custom pad values: a load puts -1.0 beside the valid region of a tile."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("cpu", "a5")


@pto.kernel(profile="a5")
def custom_pad(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(16, 16, pto.f32, pad=-1.0)
    whole = pto.tile(16, 16, pto.f32, pad=-1.0)
    isa.tload(t, x)  # 5 x 9 elements
    isa.tfillpad(whole, t)  # the others become -1.0
    isa.tstore(y, whole)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Data where there is data, -1.0 elsewhere."""
    x = np.random.default_rng(16).standard_normal((5, 9), dtype=np.float32)
    y = np.zeros((16, 16), np.float32)
    custom_pad.on(profile)(x, y)
    expected = np.full((16, 16), -1.0, np.float32)
    expected[:5, :9] = x
    return y, expected


if __name__ == "__main__":
    actual, expected = example()
    print(f"custom pad: {np.count_nonzero(actual != expected)} wrong elements")
