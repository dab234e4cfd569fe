"""C = A x B in MXFP8: elements of eight bits (e4m3), a power-of-two scale for 32 along K.

Scales of B are given by columns: the chip loads those that follow each other along K.
"""

import ml_dtypes
import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a5",)
M, K, N, GROUP = 32, 64, 32, 32


@pto.kernel(profile="a5")
def gemm_mxfp8(
    a: pto.Global[pto.f8e4m3],
    a_scale: pto.Global[pto.e8m0],
    b: pto.Global[pto.f8e4m3],
    b_scale: pto.Global[pto.e8m0],
    c: pto.Global[pto.f32],
) -> None:
    acc = pto.tile(M, N, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], K):
        a_mat = pto.tile(M, K, pto.f8e4m3, role="mat")
        b_mat = pto.tile(K, N, pto.f8e4m3, role="mat")
        sa_mat = pto.tile(M, K // GROUP, pto.e8m0, role="mat", layout="ZZ", fractal=32)
        sb_mat = pto.tile(K // GROUP, N, pto.e8m0, role="mat", layout="NN", fractal=32)
        left = pto.tile(M, K, pto.f8e4m3, role="left")
        right = pto.tile(K, N, pto.f8e4m3, role="right")
        scale_left = pto.tile(M, K // GROUP, pto.e8m0, role="scaling", layout="ZZ", fractal=32)
        scale_right = pto.tile(K // GROUP, N, pto.e8m0, role="scaling", layout="NN", fractal=32)
        g = k // GROUP
        isa.tload(a_mat, a[:, k:])
        isa.tload(b_mat, b[k:, :])
        isa.tload(sa_mat, a_scale[:, g:])
        isa.tload(sb_mat, b_scale.T[g:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmov(scale_left, sa_mat)
        isa.tmov(scale_right, sb_mat)
        if k == 0:
            isa.tmatmul_mx(acc, left, scale_left, right, scale_right)
        else:
            isa.tmatmul_mx_acc(acc, acc, left, scale_left, right, scale_right)
    isa.tstore(c, acc)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(6)
    depth = 128
    a = rng.standard_normal((M, depth)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((depth, N)).astype(ml_dtypes.float8_e4m3fn)
    a_scale = (2.0 ** rng.integers(-4, 5, (M, depth // GROUP))).astype(ml_dtypes.float8_e8m0fnu)
    b_scale = (2.0 ** rng.integers(-4, 5, (N, depth // GROUP))).astype(ml_dtypes.float8_e8m0fnu)
    c = np.zeros((M, N), np.float32)
    gemm_mxfp8.on(profile)(a, a_scale, b, b_scale, c)
    wide_a = a.astype(np.float64) * np.repeat(a_scale.astype(np.float64), GROUP, axis=1)
    wide_b = b.astype(np.float64) * np.repeat(b_scale.T.astype(np.float64), GROUP, axis=0)
    return c, wide_a @ wide_b


if __name__ == "__main__":
    actual, expected = example()
    print(f"gemm_mx: largest error {abs(actual - expected).max():.1e}")
