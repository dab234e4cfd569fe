"""C = A x B in f16, manual mode: addresses and flags by hand, and two buffers in turn, so that the
next tiles are loaded while the matrix unit works on these."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
M, K, N = 64, 64, 64
TILE = M * K * 2  # bytes of a tile of f16


@pto.kernel(profile="a5")
def gemm_double_buffered(
    a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]
) -> None:
    j = pto.block_idx() * N
    a_mats = [pto.tile(M, K, pto.f16, role="mat", address=n * TILE) for n in range(2)]
    b_mats = [pto.tile(K, N, pto.f16, role="mat", address=(2 + n) * TILE) for n in range(2)]
    left = pto.tile(M, K, pto.f16, role="left", address=0)
    right = pto.tile(K, N, pto.f16, role="right", address=0)
    acc = pto.tile(M, N, pto.f32, role="acc", address=0)
    steps = a.shape[1] // K
    for n in range(steps):  # Python unrolls it: `turn` is a number of this program
        turn, k = n % 2, n * K
        if n >= 2:
            isa.wait_flag("MTE1", "MTE2", turn)  # the buffer is free again
        isa.tload(a_mats[turn], a[:, k : k + K])
        isa.tload(b_mats[turn], b[k : k + K, j:])
        isa.set_flag("MTE2", "MTE1", turn)
        isa.wait_flag("MTE2", "MTE1", turn)
        if n >= 1:
            isa.wait_flag("M", "MTE1", 0)  # the operands have been used
        isa.tmov(left, a_mats[turn])
        isa.tmov(right, b_mats[turn])
        isa.set_flag("MTE1", "MTE2", turn)
        isa.set_flag("MTE1", "M", 2)  # ids 0 and 1 of MTE1 are up for the buffers
        isa.wait_flag("MTE1", "M", 2)
        if n == 0:
            isa.tmatmul(acc, left, right)
        else:
            isa.tmatmul_acc(acc, acc, left, right)
        isa.set_flag("M", "MTE1", 0)
    for n in range(max(0, steps - 2), steps):
        isa.wait_flag("MTE1", "MTE2", n % 2)
    isa.wait_flag("M", "MTE1", 0)
    isa.set_flag("M", "FIX", 0)
    isa.wait_flag("M", "FIX", 0)
    isa.tstore(c[:, j:], acc)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(18)
    a = rng.standard_normal((M, 320)).astype(np.float16)
    b = rng.standard_normal((320, 128)).astype(np.float16)
    c = np.zeros((M, 128), np.float32)
    gemm_double_buffered.on(profile)[2](a, b, c)
    return c, a.astype(np.float64) @ b.astype(np.float64)


if __name__ == "__main__":
    actual, expected = example()
    print(f"gemm_double_buffered: largest error {abs(actual - expected).max():.1e}")
