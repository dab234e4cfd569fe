"""Times that others have measured on chips and published, each beside a kernel of ours that does
the same by the same tiling. `docs/timing.md` is the table of them; `docs/make/timing.py` writes it.

The costs of the model were fitted to rows that say `fitted`; the others test it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.timing.conv2d import conv2d
from examples.timing.data_copy import data_copy, read_together
from examples.timing.flash_attention import ROWS, flash_attention, shapes
from examples.timing.gemm import Tiling, gemm
from examples.timing.gemm_mx import SCALES, gemm_mx
from examples.timing.top_k import top_k
from examples.timing.vector_add import vector_add
from pto.lang.kernel import Kernel
from pto.observe.timing import Timing
from pto.observe.timing.cache import State

A2, A5 = "910b1", "950pr"
B2 = "910b2"
CUBES = {A2: 24, B2: 24, A5: 32}
DEVKIT = "asc-devkit, examples/01_simd_cpp_api/05_best_practices"
KERNELS = "pto-isa, kernels/manual"


@dataclass(frozen=True)
class Published:
    """One measurement: the time of a launch, and the share of it that pipes were busy."""

    name: str
    device: str
    us: float
    busy: Mapping[str, float]
    source: str
    fitted: bool
    kernel: Kernel[...]
    blocks: int
    args: tuple[Any, ...]
    # warm: repeated on the same arrays, as by benchmarks and by `msprof op` before it measures
    cache: State = "cold"

    def time(self) -> Timing:
        blocks, device = self.blocks, self.device
        return self.kernel.time(*self.args, blocks=blocks, device=device, cache=self.cache)


def gemms() -> Iterator[Published]:
    """A grid of 4 x 6 cubes; one load brings four pieces of k."""
    measured = {
        1536: (38.8, 0.545, 0.422, 0.722, 0.077),
        3072: (206.7, 0.790, 0.620, 0.909, 0.058),
        6144: (1506.0, 0.867, 0.681, 0.952, 0.031),
        7680: (3168.0, 0.806, 0.630, 0.984, 0.024),
    }
    for size, (us, *busy) in measured.items():
        yield Published(
            f"GEMM {size}",
            A2,
            us,
            dict(zip(("M", "MTE1", "MTE2", "FIX"), busy, strict=True)),
            f"{KERNELS}/a2a3/gemm_performance",
            size == 6144,
            gemm,
            24,
            ((size, size), (size, size), np.empty((size, size), np.float32), 24, 4),
        )


# groups of 16 channels, lines, columns, groups of 16 outputs; us; busy. In the first row the shares
# of loads and extracts contradict the others: they are left out.
CONVOLUTIONS = (
    ((8, 8, 48, 96), 32.2, {"M": 0.529, "FIX": 0.056}),
    ((16, 12, 64, 192), 147.3, {"M": 0.861, "MTE2": 0.751, "MTE1": 0.573, "FIX": 0.04}),
    ((24, 12, 96, 288), 470.9, {"M": 0.893, "MTE2": 0.788, "MTE1": 0.616, "FIX": 0.028}),
    ((32, 16, 96, 384), 1097.9, {"M": 0.908, "MTE2": 0.804, "MTE1": 0.611, "FIX": 0.021}),
    ((40, 15, 128, 480), 2131.2, {"M": 0.913, "MTE2": 0.807, "MTE1": 0.624, "FIX": 0.017}),
)


def convolutions() -> Iterator[Published]:
    """Four images by 3 x 3 filters; a grid of 4 x 6 cubes."""
    for (groups, height, width, outputs), us, busy in CONVOLUTIONS:
        x, y = (4 * groups * height, width * 16), (4 * height * width, outputs * 16)
        yield Published(
            f"conv2d 4x{groups * 16}x{height}x{width} to {outputs * 16}",
            A2,
            us,
            busy,
            f"{KERNELS}/a2a3/conv2d_forward",
            groups == 16,
            conv2d,
            24,
            (x, (groups * 9, outputs * 256), y, groups, height, 24),
        )


def _by(a: int, b: int, base_m: int = 128, rounds: int = 1) -> Tiling:
    return Tiling((base_m, 64, 256), (a, b), ahead=True, rounds=rounds)


# chip, name, us, shares of M, MTE1, MTE2; tiling; fitted. Shares are of the mean core's time.
_VENDOR = (
    (A2, "case 4", 5039.86, (0.694, 0.520, 0.903), _by(2, 2), True),
    (A2, "case 5", 4156.76, (0.854, 0.701, 0.963), _by(8, 4), False),
    (A2, "case 6", 4088.36, (0.860, 0.708, 0.958), _by(8, 4, rounds=2), False),
    (A2, "basic 1", 4121.16, (0.840, 0.692, 0.968), _by(8, 4), False),
    (A2, "basic 2", 4081.64, (0.847, 0.702, 0.959), _by(8, 4, rounds=2), False),
    (A5, "case 4", 2668.224, (0.964, 0.300, 0.949), _by(2, 2, 256), False),
    (A5, "case 5", 2591.366, (0.983, 0.322, 0.744), _by(4, 4, 256), False),
    (A5, "case 6", 2589.888, (0.984, 0.319, 0.726), _by(4, 4, 256, 2), False),
    (A5, "basic 1", 2572.047, (0.997, 0.322, 0.729), _by(4, 4, 256), True),
    (A5, "basic 2", 2574.492, (0.996, 0.318, 0.736), _by(4, 4, 256, 2), False),
)


def vendor_matmuls() -> Iterator[Published]:
    """8192 cubed in f16, by the vendor's library and by its own flags."""
    size = 8192
    for device, name, us, busy, tiling, fitted in _VENDOR:
        folder = "matmul_basic_api" if name.startswith("basic") else "matmul"
        yield Published(
            f"vendor matmul 8192, {name}",
            device,
            us,
            dict(zip(("M", "MTE1", "MTE2"), busy, strict=True)),
            f"{DEVKIT}/01_matrix_compute/{folder}_high_performance",
            fitted,
            gemm,
            CUBES[device],
            (
                *((size, size), (size, size), np.empty((size, size), np.float16)),
                *(CUBES[device], 4, tiling),
            ),
        )


# us; shares of M, MTE1, MTE2, FIX
MX = {
    2048: (38.3, (0.582, 0.351, 0.846, 0.073)),
    4096: (187.9, (0.877, 0.542, 0.963, 0.053)),
    6144: (602.0, (0.916, 0.573, 0.982, 0.035)),
    8192: (1474.9, (0.901, 0.562, 0.996, 0.026)),
}


def mx_products() -> Iterator[Published]:
    """A grid of 4 x 8 cubes. The published loads of scales reach beyond rows that are shorter than
    a load, into the next ones: in ours the rows are longer, and at a distance too."""
    for size, (us, busy) in MX.items():
        loads, rest = divmod(size, 4096)
        columns = size // 32 if not rest else loads * SCALES + SCALES * 3 // 2
        matrix, scales = (size, size), (size, columns)
        yield Published(
            f"MXFP8 matmul {size}",
            A5,
            us,
            dict(zip(("M", "MTE1", "MTE2", "FIX"), busy, strict=True)),
            f"{KERNELS}/a5/matmul_mxfp8_performance",
            size == 4096,
            gemm_mx,
            32,
            (matrix, scales, matrix, scales, matrix, 32, 4),
        )


# element type, rows, best of a row; us; shares of V, MTE2, MTE3
TOP_K = (
    (np.float32, 4800, 1000, 324.106, (0.94, 0.117, 0.104)),
    (np.float32, 3456, 1000, 238.819, (0.915, 0.123, 0.105)),
    (np.float32, 2304, 1000, 161.375, (0.887, 0.124, 0.101)),
    (np.float16, 4800, 1008, 326.886, (0.937, 0.115, 0.096)),
)


def top_ks() -> Iterator[Published]:
    """The best of 1024 in rows of 1280, on 48 vector cores."""
    for dtype, rows, best, us, busy in TOP_K:
        values, columns = np.empty((rows, best), dtype), np.empty((rows, best), np.uint32)
        yield Published(
            f"top-k {np.dtype(dtype)} {rows}x1024, best {best}",
            A2,
            us,
            dict(zip(("V", "MTE2", "MTE3"), busy, strict=True)),
            f"{KERNELS}/a2a3/topk",
            rows == 4800,
            top_k,
            48,
            (np.empty((rows, 1280), dtype), np.empty((1, 1024), np.uint32), values, columns, 48),
        )


# chip, case, us; busy us of V, MTE2, MTE3 (0: not published); columns, buffers, blocks
_ADDS = (
    (A2, 1, 6909.6, (761.65, 6208.762, 2613.205), 4096, 1, 1),
    (A2, 2, 306.58, (15.885, 215.485, 54.33), 4096, 1, 48),
    (A2, 3, 268.5, (12.845, 184.369, 57.354), 16384, 1, 48),
    (A2, 4, 264.02, (12.846, 250.528, 84.988), 16384, 2, 48),
    (A2, 5, 187.68, (12.846, 175.997, 160.291), 16384, 2, 48),
    (A2, 6, 184.52, (6.954, 171.611, 121.442), 16256, 2, 48),
    (A5, 1, 8924.021, (943.362, 0, 0), 4096, 1, 1),
    (A5, 2, 310.489, (15.465, 0, 0), 4096, 1, 64),
    (A5, 3, 251.684, (11.121, 0, 0), 21760, 1, 64),
    (A5, 4, 247.665, (10.976, 0, 0), 21760, 2, 64),
    (A5, 5, 182.04, (10.997, 0, 0), 21760, 2, 64),
)


def adds() -> Iterator[Published]:
    """8192 x 8192 in f16. From case 5 on loads pass by the L2 cache, which then keeps the sums."""
    for device, case, us, busy, columns, buffers, blocks in _ADDS:
        shape = (8192 * 8192 // columns, columns)
        yield Published(
            f"vector add, case {case}",
            device,
            us,
            {p: t / us for p, t in zip(("V", "MTE2", "MTE3"), busy, strict=True) if t},
            f"{DEVKIT}/00_vector_compute/add_high_performance",
            True,
            vector_add,
            blocks,
            (shape, shape, shape, columns, buffers, 4 if case > 4 else 0),
            "warm",
        )


# chip, buffer, tile, columns of the matrix, repeat, slices, us, share of MTE2 (0: not published)
_COPIES = (
    (A2, "vec", (1, 64), 12288, 1, 1, 564.84, 0.989),
    (A2, "vec", (64, 64), 12288, 1, 1, 233.54, 0.972),
    (A2, "vec", (64, 1024), 12288, 1, 1, 215.82, 0.969),
    (A5, "vec", (1, 64), 12288, 1, 1, 884.06, 1.0),
    (A5, "vec", (64, 64), 12288, 1, 1, 208.64, 0.99),
    (A5, "vec", (64, 1024), 12288, 1, 1, 188.52, 0.99),
    (A2, "mat", (64, 64), 12288, 1, 1, 300.7, 0.978),
    (A2, "mat", (64, 256), 12288, 1, 1, 230.24, 0.972),
    (A5, "mat", (64, 64), 12288, 1, 1, 245.1, 0.99),
    (A5, "mat", (64, 256), 12288, 1, 1, 190.52, 0.99),
    (A2, "vec", (64, 1024), 12287, 1, 1, 275.3, 0.97),
    (A5, "vec", (64, 1024), 12287, 1, 1, 192.07, 0.99),
    (A2, "mat", (64, 256), 12287, 1, 1, 438.76, 0.97),
    (A5, "mat", (64, 256), 12287, 1, 1, 206.61, 0.99),
    (A2, "vec", (64, 1024), 12288, 4, 1, 828.06, 0),
    (A2, "vec", (64, 1024), 12288, 4, 4, 365.74, 0),
    (A5, "vec", (64, 1024), 12288, 4, 1, 741.58, 0),
    (A5, "vec", (64, 1024), 12288, 4, 4, 354.95, 0),
    (A2, "mat", (64, 1024), 12288, 4, 1, 899.34, 0),
    (A2, "mat", (64, 1024), 12288, 4, 4, 414.96, 0),
    (A5, "mat", (64, 1024), 12288, 4, 1, 732.809, 0),
    (A5, "mat", (64, 1024), 12288, 4, 4, 390.347, 0),
)
# chip, buffer, rows of a tile, whether blocks begin apart, us, share of MTE2
_TOGETHER = (
    (A2, "vec", 128, False, 539.42, 0.984),
    (A2, "vec", 128, True, 328.88, 0.973),
    (A5, "vec", 128, False, 342.29, 0.99),
    (A5, "vec", 128, True, 335.64, 0.99),
    (A2, "mat", 256, False, 278.56, 0.98),
    (A2, "mat", 256, True, 221.34, 0.977),
    (A5, "mat", 256, False, 369.99, 0.99),
    (A5, "mat", 256, True, 187.35, 0.99),
)


def copies() -> Iterator[Published]:
    """A matrix of f16 read by all cores, in tiles; and a small one that all of them read whole."""
    source = f"{DEVKIT}/04_memory_access/data_copy"
    for device, role, (rows, cols), width, repeat, slices, us, share in _COPIES:
        blocks = CUBES[device] * (2 if role == "vec" else 1)
        again = f", {repeat} times" if repeat > 1 else ""
        yield Published(
            f"copy to {_BUFFER[role]} by {rows}x{cols} of 12288x{width}{again}"
            + (f" in {slices} slices" if slices > 1 else ""),
            device,
            us,
            {"MTE2": share} if share else {},
            source,
            True,
            data_copy,
            blocks,
            ((12288, width), rows, cols, role, repeat, slices),
            "warm",
        )
    for device, role, rows, apart, us, share in _TOGETHER:
        blocks = CUBES[device] * (2 if role == "vec" else 1)
        shape = (6144 if device == A2 else 8192, 512)
        yield Published(
            f"copy to {_BUFFER[role]}, all blocks all of {shape[0]}x512"
            + (", each elsewhere" if apart else ", the same at a time"),
            device,
            us,
            {"MTE2": share},
            source,
            True,
            read_together,
            blocks,
            (shape, rows, 64, role, apart),
            "warm",
        )


_BUFFER = {"vec": "UB", "mat": "L1"}

# rows of q, and of k and v; us. The table does not say how it is cut: as the kernel is by default.
ATTENTION = (
    (1024, 20.96),
    (2048, 32.461),
    (4096, 88.902),
    (8192, 292.626),
    (16384, 909.058),
    (32768, 3262.645),
)


def attentions() -> Iterator[Published]:
    """One head of 128; what is read has been brought into the L2 cache before."""
    for size, us in ATTENTION:
        yield Published(
            f"flash attention {size}x{size}",
            B2,
            us,
            {},
            f"{KERNELS}/common/flash_atten",
            False,
            flash_attention,
            size // ROWS,
            shapes(size, size, CUBES[B2]),
            "warm",
        )


def published() -> Iterator[Published]:
    """Every row."""
    every = (gemms, convolutions, mx_products, attentions, top_ks, vendor_matmuls, adds, copies)
    for rows in every:
        yield from rows()
