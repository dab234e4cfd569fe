"""docs/timing_cpp.md: published measurements beside what `time` says of the same C++ source.

`python -m docs.make.timing_cpp PTO-ISA` replays kernels of a checkout of pto-isa, unmodified, which
takes minutes and a C++ compiler; words after it choose rows, and then nothing is written.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from examples.timing.published import ATTENTION, CONVOLUTIONS, MX, TOP_K
from pto.cxx.kernel import cpp

PAGE = Path(__file__).parents[1] / "timing_cpp.md"
_INTRO = """\
# Times of C++ kernels, measured and predicted

Kernels of [pto-isa](https://github.com/PTO-ISA/pto-isa) as they are, with the times that their
READMEs give beside what `pto.cpp(...)[...].time(...)` says. `python -m docs.make.timing_cpp
CHECKOUT` writes this page; [timing.md](timing.md) has the rows of our own kernels. Costs were
fitted to rows marked *fit*: those that timing.md marks too, and one for how long products and
extracts of fp4 take.
"""
_REASONS = """\
- Flash attention, first table (`kernels/manual/common/flash_atten`, `Tables (A2/A3)`): 1,024 and
  2,048 keys take as much time as 4,096 or more, and eight blocks up to twice the time of one. The
  second table of that README has 21.0 us for 1024x1024 where the first has 63.7, and the table of
  the JIT, by nearly the same source, 18.7 and 19.4. The first does not name its chip: taken as a
  910B2, as the others.
- 16 blocks of flash attention (2,048 queries) take a third longer for each key than 8 or 24 in
  every one of these tables. Nothing public says why; 24 blocks at a time do not.
- Not replayed: `allgather_gemm` and the communication of `gemm_ar` (several devices),
  `tget_bandwidth` (the same), `engram_simt` (cycles of a simulator, no device), `t_dhrystone` (the
  scalar unit alone: C++ outside PTO instructions takes no time here), `kernels/python` (built by
  another package).
- MXFP4, the smallest: storing its two tiles takes a quarter of the measured time, three times as
  long for a byte as in the other rows.
"""
_MXFP4 = (
    ((2048, 2048, 2048), 42.5),
    ((2048, 4096, 4096), 100.3),
    ((4096, 1024, 8192), 122.6),
    ((1024, 12288, 4096), 137.7),
    ((2048, 8192, 8192), 348.9),
    ((2040, 8192, 8100), 377.3),
)
_KEYS = (1024, 2048, 4096, 8192)
_ATTENTION = {
    128: (42.08, 51.44, 43.80, 74.54),
    256: (33.201, 44.101, 43.521, 75.162),
    512: (41.721, 55.441, 46.621, 86.322),
    1024: (63.72, 85.882, 64.461, 107.342),
}
# by queries: with a host of aarch64, with one of x86_64
_JIT = {
    128: ((19.2, 23.42, 38.317, 68.778), (16.54, 23.98, 40.94, 72.14)),
    256: ((18.604, 23.939, 39.838, 71.212), (16.77, 22.96, 40.43, 72.39)),
    512: ((18.603, 24.787, 41.475, 74.903), (18.03, 25.02, 41.21, 73.93)),
    1024: ((19.439, 26.221, 43.127, 76.855), (18.70, 26.76, 44.20, 77.65)),
    2048: ((23.424, 36.055, 59.690, 107.780), (23.27, 35.15, 58.43, 100.93)),
}
_MANUAL = "kernels/manual"


class Case(NamedTuple):
    """A launch of a C++ kernel, and how long it was measured to take."""

    name: str
    device: str
    us: float
    file: str
    entry: str
    args: tuple[Any, ...]  # an array as the number of its elements in a tuple
    blocks: int
    fitted: bool = False

    @property
    def launch(self) -> tuple[str, ...]:
        return self.device, self.file, self.entry, repr(self.args)


def _sizes(*elements: int) -> tuple[tuple[int], ...]:
    return tuple((size,) for size in elements)


def _template(name: str, *numbers: Any) -> str:
    return f"{name}<{', '.join(map(str, numbers))}>"


def cases() -> Iterator[Case]:
    for each in (gemms, convolutions, reduced_gemms, top_ks, mx_products, attentions, jit):
        yield from each()


def gemms() -> Iterator[Case]:
    for size, us in ((1536, 38.8), (3072, 206.7), (6144, 1506.0), (7680, 3168.0)):
        shape = (size, size, size, size // 4, size, size // 6, 128, 64, 256, 1, 4, 4, 1)
        yield Case(
            f"GEMM {size}",
            "910b1",
            us,
            f"{_MANUAL}/a2a3/gemm_performance/gemm_performance_kernel.cpp",
            _template("GemmPerformance", "half", 24, *shape),
            _sizes(4 * size**2, 2 * size**2, 2 * size**2),
            24,
            size == 6144,
        )


def convolutions() -> Iterator[Case]:
    for (groups, height, width, outputs), us, _ in CONVOLUTIONS:
        m, k, n = 4 * height * width, groups * 9 * 16, outputs * 16
        tiling = (m // 4, k, n // 6, 128, 48, 256, 1, 3, 3, 1)
        shape = (4, groups, height, width, 16, 3, 3, height, width)
        yield Case(
            f"conv2d 4x{groups * 16}x{height}x{width} to {n}",
            "910b1",
            us,
            f"{_MANUAL}/a2a3/conv2d_forward/conv2d_forward_kernel.cpp",
            _template("Conv2dForward", "half", 24, m, k, n, *tiling, *shape),
            _sizes(2 * m * n, 2 * m * groups * 16, 2 * k * n),
            24,
            groups == 16,
        )


def reduced_gemms() -> Iterator[Case]:
    """The product of a GEMM whose results are summed over ranks: what is measured of it alone."""
    m, k, n = 5504, 6144, 1536
    for folder, device, blocks, us in (("a2a3", "910b1", 24, 368.1), ("a5", "950pr", 32, 323.2)):
        queues = np.zeros(1 << 16, np.int32)
        queues[8 : 8 + blocks] = [192 + 640 * block for block in range(blocks)]  # where each begins
        yield Case(
            "GEMM 5416x6144x1408 of gemm_ar",
            device,
            us,
            f"{_MANUAL}/{folder}/gemm_ar/gemm_compute_kernel.cpp",
            "GemmComputeKernel",
            (*_sizes(2 * m * n, 2 * m * k, 2 * k * n), queues.view(np.uint8), 0, blocks, k),
            blocks,
        )


def top_ks() -> Iterator[Case]:
    for dtype, rows, best, us, _ in TOP_K:
        size = np.dtype(dtype).itemsize
        kind = "float" if size == 4 else "uint16_t"
        shape = (1, 1, 1, rows, 1024, 1, 1, 1, rows, 1280, best, 48)
        yield Case(
            f"top-k {np.dtype(dtype)} {rows}x1024, best {best}",
            "910b1",
            us,
            f"{_MANUAL}/a2a3/topk/topk_kernel.cpp",
            _template("Topk", kind, *shape),
            _sizes(size * best * rows, 4 * best * rows, size * 1280 * rows, 4096),
            48,
            rows == 4800,
        )


def mx_products() -> Iterator[Case]:
    for size, (us, _) in MX.items():
        shape = (size, size, size, size // 4, size, size // 8, 128, 128, 256, 1, 4, 4, 1)
        yield Case(
            f"MXFP8 matmul {size}",
            "950pr",
            us,
            f"{_MANUAL}/a5/matmul_mxfp8_performance/mxmatmul_performance_kernel.cpp",
            _template("MxMatmulPerformance", 32, *shape),
            _sizes(2 * size**2, size**2, size**2, size**2 // 32, size**2 // 32),
            32,
            size == 4096,
        )
    for (m, k, n), us in _MXFP4:
        part_m, part_n = (-(-size // (256 * parts)) * 256 for size, parts in ((m, 4), (n, 8)))
        shape = (m, k, n, part_m, k, part_n, 256, 256, 256, 1, 2, 2, 1)
        yield Case(
            f"MXFP4 matmul {m}x{k}x{n}",
            "950pr",
            us,
            f"{_MANUAL}/a5/matmul_mxfp4_performance/mxmatmul_performance_kernel.cpp",
            _template("MxMatmulPerformance", 32, *shape),
            _sizes(2 * m * n, m * k // 2, n * k // 2, m * k // 32, n * k // 32),
            32,
            (m, k, n) == (2048, 8192, 8192),
        )


def attentions() -> Iterator[Case]:
    few = [
        (q, k, us) for q, times in _ATTENTION.items() for k, us in zip(_KEYS, times, strict=True)
    ]
    for n, (rows, keys, us) in enumerate((*few, *((size, size, us) for size, us in ATTENTION))):
        blocks, tiles = rows // 128, keys // 256
        ring = min(blocks, 25) * 1024
        yield Case(
            f"flash attention {rows}x{keys}" + (", second table" if n >= len(few) else ""),
            "910b2",
            us,
            f"{_MANUAL}/common/flash_atten/fa_performance_kernel.cpp",
            _template("runTFA", rows, 128, keys, 128, 128, 256, 4, 8, "false", "false", 4),
            _sizes(
                *(64, rows * 128, keys * 128, keys * 128, ring * 256, ring, rows * tiles),
                *(rows * tiles, rows * 128, rows * 128 * tiles, ring * 256, ring * 128),
                *(blocks * 512, blocks * 3072),
            ),
            blocks,
        )


def jit() -> Iterator[Case]:
    """Flash attention of the demo of just-in-time compilation, its sizes as numbers."""
    for rows, hosts in _JIT.items():
        blocks, ring = rows // 128, rows * 8
        for keys, *times in zip(_KEYS, *hosts, strict=True):
            arrays = _sizes(
                *(64, rows * 128, keys * 128, keys * 128, ring * 256, ring, blocks * rows),
                *(blocks * rows, rows * 128, blocks * rows * 128, ring * 256, ring * 128),
            )
            for host, us in zip(("aarch64", "x86_64"), times, strict=True):
                yield Case(
                    f"flash attention by JIT {rows}x{keys}, {host}",
                    "910b2",
                    us,
                    "demos/torch_jit/flash_atten/fa_kernel.cpp",
                    _template("runTFA", 128, 128, 128, 256, 4, 8, "false", "false", 1),
                    (*arrays, None, None, rows, keys),
                    blocks,
                )


def replayed(checkout: Path, words: list[str]) -> Iterator[tuple[Case, float, str]]:
    """Each case, what the model says, and its line of the table."""
    launch, timing = ("",), None
    with tempfile.TemporaryDirectory() as folder:
        # what the project's own build writes: which cases its host program has
        (Path(folder) / "generated_cases.h").write_text("#define TFA_FOR_EACH_CASE(case)\n")
        needs = [folder, checkout / _MANUAL / "a2a3/flash_atten"]
        for case in cases():
            if words and not any(word in case.name for word in words):
                continue
            if timing is None or case.launch != launch:
                profile = "a5" if case.device.startswith("950") else "a2a3"
                is_attention = "flash" in case.name
                path = checkout / case.file
                source = cpp(path, profile=profile, include=needs if is_attention else [])
                kernel = source[case.entry]
                timing = kernel.time(*case.args, blocks=case.blocks, device=case.device)
                kernel.close()
                launch = case.launch
            cells = (
                *(case.name, case.device, f"{case.us:.1f}", f"{timing.us:.1f}"),
                *(f"{timing.us / case.us - 1:+.1%}", timing.bound),
                "fit" if case.fitted else "**test**",
            )
            line = f"| {' | '.join(cells)} |"
            print(line, flush=True)
            yield case, timing.us, line


def page(rows: list[tuple[Case, float, str]]) -> str:
    head = ("kernel", "chip", "measured us", "predicted us", "error", "predicted bound", "")
    errors = [abs(us / case.us - 1) for case, us, _ in rows if not case.fitted]
    within = [sum(error <= share for error in errors) for share in (0.10, 0.15)]
    told = (
        f"{len(rows)} rows, {len(errors)} of them tests: median error {median(errors):.1%},"
        f" {within[0]} within 10 %, {within[1]} within 15 %, the largest {max(errors):.0%}."
    )
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(line for *_, line in rows)]
    return "\n".join([_INTRO, told, "", *table, "", _REASONS])


if __name__ == "__main__":
    found = list(replayed(Path(sys.argv[1]), sys.argv[2:]))
    if not sys.argv[2:]:
        PAGE.write_text(page(found), encoding="utf-8")
