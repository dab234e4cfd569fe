"""C = A x B in MXFP4: elements of four bits (e2m1), two in a byte, a power-of-two scale for 32."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a5",)
M, K, N, GROUP = 32, 64, 32, 32
PAIRS = K // 2  # bytes along K: tiles and arrays of packed types count those


@pto.kernel(profile="a5")
def gemm_mxfp4(
    a: pto.Global[pto.float4_e2m1x2],
    a_scale: pto.Global[pto.e8m0],
    b: pto.Global[pto.float4_e2m1x2],
    b_scale: pto.Global[pto.e8m0],
    c: pto.Global[pto.f32],
) -> None:
    j = pto.block_idx() * N
    acc = pto.tile(M, N, pto.f32, role="acc")
    for k in pto.range(0, 2 * a.shape[1], K):
        a_mat = pto.tile(M, PAIRS, pto.float4_e2m1x2, role="mat")
        b_mat = pto.tile(PAIRS, N, pto.float4_e2m1x2, role="mat", layout="ZN")  # pairs along K
        sa_mat = pto.tile(M, K // GROUP, pto.e8m0, role="mat", layout="ZZ", fractal=32)
        sb_mat = pto.tile(K // GROUP, N, pto.e8m0, role="mat", layout="NN", fractal=32)
        left = pto.tile(M, PAIRS, pto.float4_e2m1x2, role="left")
        right = pto.tile(PAIRS, N, pto.float4_e2m1x2, role="right")
        scale_left = pto.tile(M, K // GROUP, pto.e8m0, role="scaling", layout="ZZ", fractal=32)
        scale_right = pto.tile(K // GROUP, N, pto.e8m0, role="scaling", layout="NN", fractal=32)
        pair, group = k // 2, k // GROUP
        isa.tload(a_mat, a[:, pair:])
        isa.tload(b_mat, b.T[pair:, j:])
        isa.tload(sa_mat, a_scale[:, group:])
        isa.tload(sb_mat, b_scale.T[group:, j:])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmov(scale_left, sa_mat)
        isa.tmov(scale_right, sb_mat)
        if k == 0:
            isa.tmatmul_mx(acc, left, scale_left, right, scale_right)
        else:
            isa.tmatmul_mx_acc(acc, acc, left, scale_left, right, scale_right)
    isa.tstore(c[:, j:], acc)


def quantise(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows in groups of 32: e2m1 elements, and the scale that brings the largest below 2^3."""
    groups = x.reshape(len(x), -1, GROUP)
    power = np.floor(np.log2(np.abs(groups).max(axis=2))) - 2
    elements = (groups / 2.0 ** power[:, :, None]).astype(ml_dtypes.float4_e2m1fn)
    return elements.reshape(x.shape), (2.0**power).astype(ml_dtypes.float8_e8m0fnu)


def packed(elements: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Two codes a byte along the last axis, the first in the low half."""
    codes = elements.view(np.uint8)
    return codes[:, 0::2] | codes[:, 1::2] << np.uint8(4)


def wide(elements: npt.NDArray[Any], scales: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The values that elements and scales stand for."""
    return elements.astype(np.float64) * np.repeat(scales.astype(np.float64), GROUP, axis=1)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """What the kernel gives, and what NumPy gives in f64 for the same quantised values."""
    rng = np.random.default_rng(7)
    depth, columns = 128, 2 * N
    a, a_scale = quantise(rng.standard_normal((M, depth)))
    b, b_scale = quantise(rng.standard_normal((columns, depth)))  # B by columns: groups lie along K
    c = np.zeros((M, columns), np.float32)
    gemm_mxfp4.on(profile)[columns // N](packed(a), a_scale, packed(b), b_scale, c)
    return c, wide(a, a_scale) @ wide(b, b_scale).T


if __name__ == "__main__":
    actual, expected = example()
    print(f"gemm_mx_fp4: largest error {abs(actual - expected).max():.1e}")
