"""Launches that stand for the measurements of `measured.csv`: published times of single launches.

Vendor operators are of unknown tiling: a natural kernel of ours stands for each. Kernels with
published sources in vector registers are written again, by the same tiling.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from examples.timing import operators, registers
from examples.timing.data_copy import data_copy
from examples.timing.gemm import Tiling, gemm
from examples.timing.vector_add import vector_add
from pto.observe.timing import Timing
from pto.target.profile import device as find_device

ROWS = Path(__file__).with_suffix(".csv")
_TYPES = {
    **{name: np.dtype(kind) for name in ("f16", "float16") for kind in (np.float16,)},
    **{name: np.dtype(kind) for name in ("f32", "float32") for kind in (np.float32,)},
    **{name: np.dtype(ml_dtypes.bfloat16) for name in ("bf16", "bfloat16")},
    "int32": np.dtype(np.int32),
}
_UB_LEFT = 8192  # bytes that row kernels keep for columns and weights


@dataclass(frozen=True)
class Measured:
    """One published time of a launch."""

    name: str
    kind: str  # the class of kernels that it is counted with
    device: str
    shape: str
    dtype: str
    us: float
    cache: str  # the state of the L2 cache when the launch began
    source: str

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.shape.split()[0].split("x"))

    @property
    def group(self) -> str:
        """The operator and its case, on all chips."""
        return self.name.removesuffix(f"_{self.device}")

    @property
    def in_cpp(self) -> bool:
        """True if a launch of the published C++ source is timed, not a kernel of ours."""
        return self.kind.endswith("C++")

    def times(self) -> list[Timing]:
        """The timings of its launches; the time of the row is their sum."""
        found = [self._time(*builder_of(self.name)(self))]
        if self.name.startswith("cb_argmax"):  # the operator casts its result in a second launch
            found.append(self._time(*_cast(self)))
        return found

    def _time(self, kernel: Any, blocks: int, args: tuple[Any, ...]) -> Timing:
        profile = find_device(self.device).profile
        how: dict[str, Any] = {"device": self.device, "cache": self.cache}
        return kernel.on(profile)[blocks].time(*args, **how)


def fitted() -> frozenset[str]:
    """Every other group: their rows decided fixed costs, the rate of new data, and intervals."""
    return frozenset(sorted({row.group for row in measured()})[::2])


def measured() -> list[Measured]:
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [
            Measured(*row[:5], float(row[5]), *row[6:])  # type: ignore[arg-type]
            for row in list(csv.reader(file))[1:]
        ]


Launch = tuple[Any, int, tuple[Any, ...]]  # kernel, blocks, arguments


def _array(dtype: Any, *shape: int) -> Any:
    return np.empty(shape, dtype)


def _cores(row: Measured) -> int:
    return find_device(row.device).vector_cores


def _flat(row: Measured, largest: int, unit: int = 2) -> tuple[int, int, int]:
    """Blocks, width of a tile and tiles of a block that share elements evenly."""
    count = prod(row.sizes)
    share = -(-count // _cores(row))
    tiles = max(unit, -(-share // largest))
    tiles = -(-tiles // unit) * unit
    width = -(-share // (tiles * operators.LANES)) * operators.LANES
    return -(-count // (tiles * width)), width, tiles


def _elementwise(name: str) -> Callable[[Measured], Launch]:
    def build(row: Measured) -> Launch:
        blocks, width, tiles = _flat(row, operators.TILE)
        x, y = (_array(_TYPES[row.dtype], 1, prod(row.sizes)) for _ in range(2))
        return operators.elementwise(name), blocks, (x, y, width, tiles)

    return build


def _maximum(row: Measured) -> Launch:
    dtype = _TYPES[row.dtype]
    blocks, width, tiles = _flat(row, 24 * 1024 // dtype.itemsize)
    convert = row.dtype == "bfloat16" and row.device.startswith("910")
    arrays = [_array(dtype, 1, prod(row.sizes)) for _ in range(3)]
    return operators.maximum, blocks, (*arrays, width, tiles, convert)


def _rows(row: Measured, each: int) -> tuple[int, int, int]:
    """Blocks, rows of a tile and tiles of a block; `each`: bytes of UB for an element of a tile."""
    count, cols = row.sizes
    padded = -(-cols // operators.LANES) * operators.LANES
    left = find_device(row.device).usable_ub - _UB_LEFT - 8 * padded
    share = -(-count // _cores(row))
    rows = 32
    while rows > 1 and (rows * padded * each > left or 2 * rows > share):
        rows //= 2
    tiles = max(2, -(-share // rows))
    tiles += tiles % 2
    return -(-count // (tiles * rows)), rows, tiles


def _rms_norm(row: Measured) -> Launch:
    dtype = _TYPES[row.dtype]
    blocks, rows, tiles = _rows(row, 2 * dtype.itemsize + (8 if dtype.itemsize < 4 else 4))
    arrays = (_array(dtype, *row.sizes), _array(dtype, 1, row.sizes[1]), _array(dtype, *row.sizes))
    return operators.rms_norm, blocks, (*arrays, rows, tiles)


def _argmax(row: Measured) -> Launch:
    dtype = _TYPES[row.dtype]
    convert = row.dtype == "bfloat16" and row.device.startswith("910")
    blocks, rows, tiles = _rows(row, 2 * dtype.itemsize + (8 if convert else dtype.itemsize))
    places = _array(np.uint32, row.sizes[0], 1)
    return operators.argmax, blocks, (_array(dtype, *row.sizes), places, rows, tiles, convert)


def _transpose(row: Measured) -> Launch:
    dtype, side = _TYPES[row.dtype], operators.TRANSPOSED
    high, wide = row.sizes
    across = -(-wide // side)
    count = across * -(-high // side)
    tiles = max(2, -(-count // _cores(row)))
    tiles += tiles % 2
    arrays = _array(dtype, high, wide), _array(dtype, wide, high)
    return operators.transpose, -(-count // tiles), (*arrays, across, count, tiles)


def _copy(row: Measured) -> Launch:
    blocks, width, tiles = _flat(row, 16384, unit=4)
    x, y = (_array(_TYPES[row.dtype], 1, prod(row.sizes)) for _ in range(2))
    return operators.copy, blocks, (x, y, width, tiles)


def _cast(row: Measured) -> Launch:
    """A copy of the result stands for its cast."""
    rows = -(-row.sizes[0] // 4) * 4
    x, y = (_array(np.uint32, 1, rows) for _ in range(2))
    return operators.copy, 1, (x, y, rows // 4, 4)


# variants of the published kernels, by the last word of their names: our loops
_GELU = {
    "dk_gelu_case_1": "gelu",
    "dk_gelu_case_2": "gelu unrolled",
    "dk_gelu_eltwise_case_0": "both by halves",
    "dk_gelu_eltwise_case_1": "both",
    "dk_gelu_eltwise_case_2": "both split",
    "dk_gelu_eltwise_case_3": "both split, unrolled",
}


def _gelu(row: Measured) -> Launch:
    count = prod(row.sizes)
    x, y = (_array(np.float32, 1, count) for _ in range(2))
    if row.name not in _GELU:
        return _elementwise("gelu")(row)
    tiles = count // (registers.CHUNK * 64)
    return registers.by_registers(_GELU[row.name]), 64, (x, y, tiles)


def _softmax(row: Measured) -> Launch:
    rows, together = {"1": (2, 1), "3": (2, 2), "5": (4, 2)}[row.name[-1]]
    x, y = (_array(np.float32, *row.sizes) for _ in range(2))
    return registers.softmax, 32, (x, y, rows, together, row.sizes[0] // 32)


def _hadamard(row: Measured) -> Launch:
    n = row.sizes[1]
    size = row.name.split("_")[2]
    kib = int(size[4:-1]) if size.startswith("tile") else 0
    elements = kib * 512 if kib else int(row.name.split("_")[1][4:]) * n
    buffers = min(4, 256 * 1024 // (2 * elements) - 1) if elements > 32768 else 4
    return registers.hadamard, 64, (_array(np.float16, 1, prod(row.sizes)), n, elements, buffers)


def _mxfp4(row: Measured) -> Launch:
    count = prod(row.sizes)
    x = _array(ml_dtypes.bfloat16, 1, count)
    return registers.mxfp4_quant, 64, (x, (1, count // 2), (1, count // 32), 16384)


def _gemm(row: Measured) -> Launch:
    m, n, k = row.sizes if row.sizes[0] > 64 else (64, 36 * 256, row.sizes[2])
    base = (256, 64, 256) if m > 64 else (64, 64, 256)
    grid = m // base[0]
    blocks = grid * (n // base[2])
    out = _array(np.float16, m, n)
    return gemm, blocks, ((m, k), (n, k), out, blocks, grid, Tiling(base, (2, 2), ahead=True))


def _cached_copy(row: Measured) -> Launch:
    slices = 4 if "slices" in row.shape else 1
    return data_copy, 64, ((12288, 12288), 64, 1024, "vec", 4, slices)


def _cached_add(row: Measured) -> Launch:
    columns = 16384
    shape = (8192 * 8192 // columns, columns)
    hint = 4 if row.name == "dk_l2_case4" else 0
    return vector_add, 64, (shape, shape, shape, columns, 2, hint)


BUILDERS: dict[str, Callable[[Measured], Launch]] = {
    "cb_exp": _elementwise("exp"),
    "cb_gelu": _elementwise("gelu"),
    "cb_sigmoid": _elementwise("sigmoid"),
    "cb_max": _maximum,
    "cb_rms_norm": _rms_norm,
    "cb_argmax": _argmax,
    "cb_transpose": _transpose,
    "copy": _copy,
    "cs_softmax": _softmax,
    "cs_gemm": _gemm,
    "dk_gelu": _gelu,
    "dk_l2_case1": _cached_copy,
    "dk_l2_case2": _cached_copy,
    "dk_l2_case3": _cached_add,
    "dk_l2_case4": _cached_add,
    "hadamard": _hadamard,
    "mxfp4": _mxfp4,
}


def builder_of(name: str) -> Callable[[Measured], Launch]:
    return next(build for start, build in BUILDERS.items() if name.startswith(start))
