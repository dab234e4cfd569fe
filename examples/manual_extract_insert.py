"""PTO manual, layout conversion: TEXTRACT with ND2NZ into a left tile, TINSERT with NZ2ND back.

The manual's int8 tiles are 16 x 16; a box of the hardware has 32 int8 in a row, so the left tile is
that wide and 16 columns of it are valid.
"""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a5",)


@pto.kernel(profile="a5")
def there_and_back(x: pto.Global[pto.i8], y: pto.Global[pto.i8]) -> None:
    src = pto.tile(16, 32, pto.i8)
    left = pto.tile(16, 32, pto.i8, role="left")
    dst = pto.tile(16, 32, pto.i8)
    isa.tload(src, x)
    isa.textract(left, src, 0, 0, mode="ND2NZ")  # row by row -> box by box
    isa.tinsert(dst, left, 0, 0, mode="NZ2ND")  # and back
    isa.tstore(y, dst)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """What comes back is what went in."""
    x = np.random.default_rng(15).integers(-128, 128, (16, 32), dtype=np.int8)
    y = np.zeros_like(x)
    there_and_back.on(profile)(x, y)
    return y, x


if __name__ == "__main__":
    actual, expected = example()
    print(f"extract and insert: {np.count_nonzero(actual != expected)} wrong elements")
