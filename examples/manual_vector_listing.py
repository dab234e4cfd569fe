"""PTO manual, vector instructions: the six steps from global memory through a register and back."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a5",)
COUNT = 64  # lanes of a register; 256 bytes


@pto.kernel(profile="a5")
def double(gm: pto.Global[pto.f32], gm_out: pto.Global[pto.f32]) -> None:
    ub = pto.tile(1, COUNT, pto.f32)
    ub_out = pto.tile(1, COUNT, pto.f32)
    # 1. DMA copy from GM to UB
    isa.mte_gm_ub(gm, ub, 0, 4 * COUNT, 1, 4 * COUNT, 4 * COUNT)
    # 2. signal the vector pipe that data is ready
    isa.set_flag("MTE2", "V", 0)
    # 3. wait for it, then load a register
    isa.wait_flag("MTE2", "V", 0)
    with pto.vecscope():
        vreg = isa.vlds(ub, 0, dist="NORM")
        # 4. compute
        result = isa.vadd(vreg, vreg)
        # 5. store the register
        isa.vsts(result, ub_out, 0)
    isa.set_flag("V", "MTE3", 0)
    isa.wait_flag("V", "MTE3", 0)
    # 6. DMA copy from UB back to GM
    isa.mte_ub_gm(ub_out, gm_out, 4 * COUNT, 1, 4 * COUNT, 4 * COUNT)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """What the kernel gives, and what NumPy gives."""
    x = np.random.default_rng(14).standard_normal(COUNT, dtype=np.float32)
    y = np.zeros_like(x)
    double.on(profile)(x, y)
    return y, x + x


if __name__ == "__main__":
    actual, expected = example()
    print(f"six steps: {np.count_nonzero(actual != expected)} wrong elements")
