"""The k greatest values of each row, with their columns: block sorts of 32, then merges of four."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
WIDTH = 512


@pto.kernel(profile="a5")
def top_k(
    x: pto.Global[pto.f32], values: pto.Global[pto.f32], columns: pto.Global[pto.i32]
) -> None:
    row, k = pto.block_idx(), values.shape[1]
    t = pto.tile(1, WIDTH, pto.f32)
    places = pto.tile(1, WIDTH, pto.i32)
    records = pto.tile(1, 2 * WIDTH, pto.f32)  # (value, column) pairs
    merged = pto.tile(1, 2 * WIDTH, pto.f32)
    isa.tload(t, x[row, :])
    isa.tci(places, 0)
    isa.tsort32(records, t, places)  # 16 runs of 32
    isa.tmrgsort(merged, records, blockLen=64)  # 4 runs of 128
    isa.tmrgsort(records, merged, blockLen=256)  # one run of 512
    best = pto.tile(1, WIDTH, pto.f32)
    where = pto.tile(1, WIDTH, pto.i32)
    isa.tgather(best, records, maskPattern="P0101", axis="row")
    isa.tgather(where, records, maskPattern="P1010", axis="row")
    isa.tstore(values[row, 0:k], best[0:1, 0:k])
    isa.tstore(columns[row, 0:k], where[0:1, 0:k])


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Values and columns, one above the other: by the kernel, and by NumPy."""
    x = np.random.default_rng(7).standard_normal((4, WIDTH), dtype=np.float32)
    k = 16
    values, columns = np.zeros((4, k), np.float32), np.zeros((4, k), np.int32)
    top_k.on(profile)[4](x, values, columns)
    order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
    expected = np.stack([np.take_along_axis(x, order, axis=1), order])
    return np.stack([values, columns]).astype(np.float64), expected.astype(np.float64)


if __name__ == "__main__":
    actual, expected = example()
    print(f"top_k: largest error {abs(actual - expected).max():.1e}")
