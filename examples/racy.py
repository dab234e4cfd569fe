"""A mistake on purpose: nobody waits for the load. A plain run hides it; the sanitizer does not."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")


@pto.kernel(profile="a5")
def racy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(16, 64, pto.f32, address=0)
    isa.tload(t, x)
    # missing: isa.set_flag("MTE2", "V", 0) and isa.wait_flag("MTE2", "V", 0)
    isa.tadds(t, t, 1.0)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    isa.tstore(y, t)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """A run in program order gives the right answer, which is why such mistakes live long."""
    x = np.random.default_rng(19).standard_normal((16, 64), dtype=np.float32)
    y = np.zeros_like(x)
    racy.on(profile)(x, y)
    return y, x + 1


if __name__ == "__main__":
    data = np.zeros((16, 64), np.float32)
    print(racy.sanitize(data, data.copy()))
