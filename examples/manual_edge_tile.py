"""The PTO manual (Tiles), example 1: a tile of 16 x 16 of which only 5 x 9 elements hold data."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("cpu", "a2a3", "a5")


@pto.kernel(profile="a5")
def edge_tile(x: pto.Global[pto.f16], y: pto.Global[pto.f16]) -> None:
    tile = pto.tile(16, 16, pto.f16, pad="zero", valid=(5, 9))
    isa.tload(tile, x)
    isa.tstore(y[0:5, 0:9], tile)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float16]]:
    """Only tile[0..4][0..8] is meaningful: only that part arrives."""
    x = np.random.default_rng(10).standard_normal((16, 16)).astype(np.float16)
    y = np.zeros((16, 16), np.float16)
    edge_tile.on(profile)(x, y)
    expected = np.zeros_like(y)
    expected[:5, :9] = x[:5, :9]
    return y, expected


if __name__ == "__main__":
    with pto.eager("a5"):
        t = pto.tile(16, 16, pto.f16, pad="zero")
        isa.tload(t, np.arange(45, dtype=np.float16).reshape(5, 9))
        print(t)
