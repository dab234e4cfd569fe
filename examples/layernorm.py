"""Layer norm and RMS norm of rows, with weights along the columns."""

import numpy as np
import numpy.typing as npt

import pto
from pto import isa

PROFILES = ("a2a3", "a5")
ROWS, COLS, EPSILON = 16, 256, 1e-5


@pto.kernel(profile="a5")
def layernorm(
    x: pto.Global[pto.f32],
    weight: pto.Global[pto.f32],
    bias: pto.Global[pto.f32],
    y: pto.Global[pto.f32],
) -> None:
    i = pto.block_idx() * ROWS
    t = pto.tile(ROWS, COLS, pto.f32)
    squares = pto.tile(ROWS, COLS, pto.f32)
    work = pto.tile(ROWS, COLS, pto.f32)
    w = pto.tile(1, COLS, pto.f32)
    b = pto.tile(1, COLS, pto.f32)
    s = pto.tile(ROWS, 1, pto.f32, layout="DN")
    isa.tload(t, x[i:, :])
    isa.tload(w, weight)
    isa.tload(b, bias)
    isa.trowsum(s, t, work)
    scale_column(s, 1.0 / x.shape[1], 0.0)
    isa.trowexpandsub(t, t, s)
    isa.tmul(squares, t, t)
    isa.trowsum(s, squares, work)
    scale_column(s, 1.0 / x.shape[1], EPSILON)
    root_column(s)
    isa.trowexpanddiv(t, t, s)
    isa.tcolexpandmul(t, t, w)
    isa.tcolexpandadd(t, t, b)
    isa.tstore(y[i:, :], t)


@pto.kernel(profile="a5")
def rmsnorm(x: pto.Global[pto.f32], weight: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * ROWS
    t = pto.tile(ROWS, COLS, pto.f32)
    squares = pto.tile(ROWS, COLS, pto.f32)
    work = pto.tile(ROWS, COLS, pto.f32)
    w = pto.tile(1, COLS, pto.f32)
    s = pto.tile(ROWS, 1, pto.f32, layout="DN")
    isa.tload(t, x[i:, :])
    isa.tload(w, weight)
    isa.tmul(squares, t, t)
    isa.trowsum(s, squares, work)
    scale_column(s, 1.0 / x.shape[1], EPSILON)
    root_column(s)
    isa.trowexpanddiv(t, t, s)
    isa.tcolexpandmul(t, t, w)
    isa.tstore(y[i:, :], t)


def scale_column(s: pto.Tile, factor: float, plus: float) -> None:
    """s = s * factor + plus. Arithmetic wants row-major tiles: a column is a row seen otherwise."""
    row = isa.treshape(s, to=pto.tile_type(1, ROWS, pto.f32))
    isa.tmuls(row, row, factor)
    isa.tadds(row, row, plus)


def root_column(s: pto.Tile) -> None:
    row = isa.treshape(s, to=pto.tile_type(1, ROWS, pto.f32))
    isa.tsqrt(row, row)


def example(profile: str = "a5") -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Both norms of one matrix, one above the other: by the kernels, and by NumPy in f64."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((64, COLS), dtype=np.float32)
    weight, bias = rng.standard_normal((2, COLS), dtype=np.float32)
    y = np.zeros((2, *x.shape), np.float32)
    layernorm.on(profile)[4](x, weight, bias, y[0])
    rmsnorm.on(profile)[4](x, weight, y[1])
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPSILON)
    root = np.sqrt(np.square(wide).mean(axis=1, keepdims=True) + EPSILON)
    return y, np.stack([centred / deviation * weight + bias, wide / root * weight])


if __name__ == "__main__":
    actual, expected = example()
    print(f"layernorm, rmsnorm: largest error {abs(actual - expected).max():.1e}")
