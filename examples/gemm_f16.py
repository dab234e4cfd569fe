"""C = A x B in f16 with f32 sums: a block makes one tile of C, and walks along K."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
M, K, N = 64, 64, 64  # the tile of a block


@pto.kernel(profile="a5")
def gemm(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
    columns = pto.cdiv(b.shape[1], N)
    block = pto.block_idx()
    i, j = block // columns * M, block % columns * N
    acc = pto.tile(M, N, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], K):
        a_mat = pto.tile(M, K, pto.f16, role="mat")
        b_mat = pto.tile(K, N, pto.f16, role="mat")
        left = pto.tile(M, K, pto.f16, role="left")
        right = pto.tile(K, N, pto.f16, role="right")
        isa.tload(a_mat, a[i:, k:])
        isa.tload(b_mat, b[k:, j:])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        if k == 0:
            isa.tmatmul(acc, left, right)
        else:
            isa.tmatmul_acc(acc, acc, left, right)
    isa.tstore(c[i:, j:], acc)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((128, 192)).astype(np.float16)
    b = rng.standard_normal((192, 192)).astype(np.float16)
    c = np.zeros((128, 192), np.float32)
    gemm.on(profile)[2 * 3](a, b, c)
    return c, a.astype(np.float64) @ b.astype(np.float64)


if __name__ == "__main__":
    actual, expected = example()
    print(f"gemm_f16: largest error {abs(actual - expected).max():.1e}")
