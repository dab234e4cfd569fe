"""The kernels that stand for published times of single launches: they compute what they say."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from docs.make.timing_rows import PAGE
from examples.timing import operators, registers
from examples.timing.measured import BUILDERS, Measured, measured

rng = np.random.default_rng(52)
BF16 = ml_dtypes.bfloat16
TYPES = [np.float16, np.float32, BF16]
CHOSEN = ("cb_exp_1_950pr", "cb_argmax_12_910b2", "copy_k4096_b1024", "cs_softmax_5")


def near(actual: np.ndarray, expected: np.ndarray) -> bool:
    share = {2: 0.02, 4: 1e-5}[actual.dtype.itemsize]
    return np.allclose(actual.astype(np.float64), expected, rtol=share, atol=share)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", operators.UNARY)
def test_elementwise(name: str, dtype: type):
    x = rng.standard_normal((1, 1000)).astype(dtype)
    y = np.zeros_like(x)
    operators.elementwise(name).on("a2a3")[4](x, y, 128, 2)
    wide = x.astype(np.float64)
    cubic = 1.59576912 * (wide + 0.044715 * wide**3)
    expected = {
        "exp": np.exp(wide),
        "sigmoid": 1 / (1 + np.exp(-wide)),
        "gelu": wide / (1 + np.exp(-cubic)),
    }
    assert near(y, expected[name])


@pytest.mark.parametrize(("dtype", "convert"), [(np.float32, False), (BF16, True)])
def test_maximum(dtype: type, convert: bool):
    x, y = rng.standard_normal((2, 1, 1000)).astype(dtype)
    z = np.zeros_like(x)
    operators.maximum.on("a2a3")[4](x, y, z, 128, 2, convert)
    assert (z == np.maximum(x, y)).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(30, 256), (9, 125)])
def test_rms_norm(dtype: type, shape: tuple[int, int]):
    x = rng.standard_normal(shape).astype(dtype)
    weight = rng.standard_normal((1, shape[1])).astype(dtype)
    y = np.zeros_like(x)
    operators.rms_norm.on("a2a3")[2](x, weight, y, 4, shape[0] // 8 + 1)
    wide = x.astype(np.float64)
    root = np.sqrt((wide**2).mean(axis=1, keepdims=True))
    assert near(y, wide / root * weight.astype(np.float64))


@pytest.mark.parametrize(("dtype", "convert"), [(np.float32, False), (BF16, True)])
def test_argmax(dtype: type, convert: bool):
    x = np.stack([rng.permutation(200) for _ in range(14)]).astype(dtype)
    y = np.zeros((14, 1), np.uint32)
    operators.argmax.on("a2a3")[2](x, y, 2, 4, convert)
    assert (y == x.astype(np.float32).argmax(axis=1, keepdims=True)).all()


@pytest.mark.parametrize("shape", [(128, 256), (100, 65)])
def test_transpose(shape: tuple[int, int]):
    x = rng.standard_normal(shape).astype(np.float32)
    y = np.zeros(shape[::-1], np.float32)
    across, count = -(-shape[1] // 64), -(-shape[1] // 64) * -(-shape[0] // 64)
    operators.transpose.on("a2a3")[2](x, y, across, count, -(-count // 4) * 2)
    assert (y == x.T).all()


def test_copy():
    x = rng.standard_normal((1, 5000)).astype(np.float16)
    y = np.zeros_like(x)
    operators.copy.on("a5")[2](x, y, 640, 4)
    assert (y == x).all()


@pytest.mark.parametrize("name", registers.LOOPS)
def test_loops_over_registers(name: str):
    x = rng.standard_normal((1, 4 * registers.CHUNK)).astype(np.float32)
    y = np.zeros_like(x)
    registers.by_registers(name)[2](x, y, 2)
    wide = x.astype(np.float64)
    expected = wide / (1 + np.exp(-1.595769 * (wide + 0.044715 * wide**3)))
    if "both" in name:
        expected = np.exp(2 - (expected + 1) ** 2 / 2)
    assert near(y, expected)


@pytest.mark.parametrize(("rows", "together"), [(2, 1), (2, 2)])
def test_softmax(rows: int, together: int):
    x = rng.standard_normal((8, 256)).astype(np.float32)
    y = np.zeros_like(x)
    registers.softmax[2](x, y, rows, together, 4)
    e = np.exp(x.astype(np.float64))
    assert near(y, e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("n", [32, 64, 128, 256])
def test_hadamard(n: int):
    x = rng.integers(-2, 3, (16 * 4096 // n, n)).astype(np.float16)
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    y = x.reshape(1, -1).copy()
    registers.hadamard[2](y, n, 4096, 4)
    expected = x.astype(np.float64) @ matrix
    assert (np.sort(np.abs(y.reshape(x.shape))) == np.sort(np.abs(expected))).all()


def test_mxfp4_quant():
    x = rng.standard_normal((1, 16 * 2048)).astype(BF16)
    codes = np.zeros((1, x.size // 2), np.uint8)
    scales = np.zeros((1, x.size // 32), np.uint8)
    registers.mxfp4_quant[2](x, codes, scales, 2048)
    most = np.abs(x.astype(np.float64).reshape(-1, 32)).max(axis=1)
    assert (scales[0] == np.floor(np.log2(most)).astype(int) - 2 + 127).all()


def test_every_row_has_a_launch():
    """Only C++ kernels are timed from their own sources."""
    for row in measured():
        builders = [name for name in BUILDERS if row.name.startswith(name)]
        assert len(builders) == (0 if row.in_cpp else 1), row.name


@pytest.mark.parametrize(
    "row", [row for row in measured() if row.name in CHOSEN], ids=lambda row: row.name
)
def test_the_page_has_the_row(row: Measured):
    """With the time that the model gives now."""
    assert f"| {row.us:.1f} | {sum(t.us for t in row.times()):.1f} | " in next(
        line for line in PAGE.read_text().splitlines() if line.startswith(f"| {row.name} |")
    )
