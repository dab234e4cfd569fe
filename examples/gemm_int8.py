"""C = (A x B) * scale in int8 with int32 sums, a scale for each column, applied on the way out."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
M, K, N = 32, 64, 32  # the tile of a block


@pto.kernel(profile="a5")
def gemm_int8(
    a: pto.Global[pto.i8],
    b: pto.Global[pto.i8],
    scale: pto.Global[pto.u64],
    c: pto.Global[pto.f16],
) -> None:
    j = pto.block_idx() * N
    acc = pto.tile(M, N, pto.i32, role="acc")
    for k in pto.range(0, a.shape[1], K):
        a_mat = pto.tile(M, K, pto.i8, role="mat")
        b_mat = pto.tile(K, N, pto.i8, role="mat")
        left = pto.tile(M, K, pto.i8, role="left")
        right = pto.tile(K, N, pto.i8, role="right")
        isa.tload(a_mat, a[:, k:])
        isa.tload(b_mat, b[k:, j:])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        if k == 0:
            isa.tmatmul(acc, left, right)
        else:
            isa.tmatmul_acc(acc, acc, left, right)
    words = pto.tile(1, N, pto.u64, role="mat", layout="ND")
    scaling = pto.tile(1, N, pto.u64, role="scaling")
    isa.tload(words, scale[j : j + N])
    isa.tmov(scaling, words)
    isa.tstore(c[:, j:], acc, fp=scaling)


def as_the_fixpipe_reads(scale: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A scale of a column has 10 mantissa bits."""
    return (scale.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def scale_words(scale: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """The words of the fixpipe: the bits of an f32 in the lower half."""
    return scale.view(np.uint32).astype(np.uint64)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64."""
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (M, 192), dtype=np.int8)
    b = rng.integers(-128, 128, (192, 96), dtype=np.int8)
    scale = as_the_fixpipe_reads(rng.uniform(1e-5, 1e-4, 96).astype(np.float32))
    c = np.zeros((M, 96), np.float16)
    gemm_int8.on(profile)[3](a, b, scale_words(scale), c)
    return c, a.astype(np.float64) @ b.astype(np.float64) * scale


if __name__ == "__main__":
    actual, expected = example()
    print(f"gemm_int8: largest error {abs(actual - expected).max():.1e}")
