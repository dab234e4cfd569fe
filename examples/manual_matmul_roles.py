"""Manual, example 2: c[i,j] = sum over k of a[i,k] * b[k,j], with tiles in the roles of a matmul.

The manual's int8 tiles are 16 x 16; a box of the hardware has 32 int8 along k, so these tiles are
that long and 16 of k are valid.
"""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")


@pto.kernel(profile="a5")
def matmul_roles(a: pto.Global[pto.i8], b: pto.Global[pto.i8], c: pto.Global[pto.i32]) -> None:
    a_mat = pto.tile(16, 32, pto.i8, role="mat")
    b_mat = pto.tile(32, 32, pto.i8, role="mat")
    left = pto.tile(16, 32, pto.i8, role="left")
    right = pto.tile(32, 32, pto.i8, role="right")
    acc = pto.tile(16, 32, pto.i32, role="acc")
    isa.tload(a_mat, a)
    isa.tload(b_mat, b)
    isa.tmov(left, a_mat)
    isa.tmov(right, b_mat)
    isa.tmatmul(acc, left, right)
    isa.tstore(c, acc)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """What the kernel gives, and what NumPy gives."""
    a, b = np.random.default_rng(11).integers(-128, 128, (2, 16, 16), dtype=np.int8)
    c = np.zeros((16, 16), np.int32)
    matmul_roles.on(profile)(a, b, c)
    return c, a.astype(np.int32) @ b.astype(np.int32)


if __name__ == "__main__":
    actual, expected = example()
    print(f"matmul roles: {np.count_nonzero(actual != expected)} wrong elements")
