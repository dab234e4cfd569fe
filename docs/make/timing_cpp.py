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
from typing import NamedTuple

from pto.cxx.kernel import cpp

PAGE = Path(__file__).parents[1] / "timing_cpp.md"
_INTRO = """\
# Times of C++ kernels, measured and predicted

Kernels of [pto-isa](https://github.com/PTO-ISA/pto-isa) (`kernels/manual`) as they are, with the
times that their READMEs give beside what `pto.cpp(...)[...].time(...)` says.
`python -m docs.make.timing_cpp CHECKOUT` writes this page; [timing.md](timing.md) has the rows of
our own kernels. Costs were fitted to rows marked *fit*: those that timing.md marks too, and one for
how long products and extracts of fp4 take.
"""
_REASONS = """\
Flash attention on few cores: the table gives 1,024 and 2,048 keys as much time as 4,096 or more,
and eight blocks up to twice the time of one. The other table of the same README has 21.0 us for
1024x1024 where this one has 63.7 (the model: 18.9), which suggests another state of the kernel, or
another way to measure. They stay here as they are. It does not name the chip: taken as a 910B2.
MXFP4, the smallest: what a launch and cold memory take is from the tables of other kernels.
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


class Case(NamedTuple):
    """A launch of a C++ kernel, and how long it was measured to take."""

    name: str
    device: str
    us: float
    file: str
    entry: str
    sizes: tuple[int, ...]  # of the arrays, in elements
    blocks: int
    fitted: bool = False


def cases() -> Iterator[Case]:
    for size, us in ((1536, 38.8), (3072, 206.7)):
        shape = (size, size, size, size // 4, size, size // 6, 128, 64, 256, 1, 4, 4, 1)
        yield Case(
            f"GEMM {size}",
            "910b1",
            us,
            "a2a3/gemm_performance/gemm_performance_kernel.cpp",
            f"GemmPerformance<half, 24, {', '.join(map(str, shape))}>",
            (4 * size**2, 2 * size**2, 2 * size**2),
            24,
        )
    for rows, us in ((4800, 324.106), (2304, 161.375)):
        yield Case(
            f"top-k float32 {rows}x1024, best 1000",
            "910b1",
            us,
            "a2a3/topk/topk_kernel.cpp",
            f"Topk<float, 1, 1, 1, {rows}, 1024, 1, 1, 1, {rows}, 1280, 1000, 48>",
            (4000 * rows, 4000 * rows, 5120 * rows, 4096),
            48,
            rows == 4800,
        )
    for size, us in ((2048, 38.3), (4096, 187.9)):
        shape = (size, size, size, size // 4, size, size // 8, 128, 128, 256, 1, 4, 4, 1)
        yield Case(
            f"MXFP8 matmul {size}",
            "950pr",
            us,
            "a5/matmul_mxfp8_performance/mxmatmul_performance_kernel.cpp",
            f"MxMatmulPerformance<32, {', '.join(map(str, shape))}>",
            (2 * size**2, size**2, size**2, size**2 // 32, size**2 // 32),
            32,
            size == 4096,
        )
    for (m, k, n), us in _MXFP4:
        part_m, part_n = (-(-size // (256 * parts)) * 256 for size, parts in ((m, 4), (n, 8)))
        sizes = (m, k, n, part_m, k, part_n, 256, 256, 256, 1, 2, 2, 1)
        yield Case(
            f"MXFP4 matmul {m}x{k}x{n}",
            "950pr",
            us,
            "a5/matmul_mxfp4_performance/mxmatmul_performance_kernel.cpp",
            f"MxMatmulPerformance<32, {', '.join(map(str, sizes))}>",
            (2 * m * n, m * k // 2, n * k // 2, m * k // 32, n * k // 32),
            32,
            (m, k, n) == (2048, 8192, 8192),
        )
    for rows, times in _ATTENTION.items():
        for keys, us in zip(_KEYS, times, strict=True):
            blocks, tiles, ring = rows // 128, keys // 256, rows * 8
            yield Case(
                f"flash attention {rows}x{keys}",
                "910b2",
                us,
                "common/flash_atten/fa_performance_kernel.cpp",
                f"runTFA<{rows}, 128, {keys}, 128, 128, 256, 4, 8, false, false, 4>",
                (
                    *(64, rows * 128, keys * 128, keys * 128, ring * 256, ring, rows * tiles),
                    *(rows * tiles, rows * 128, rows * 128 * tiles, ring * 256, ring * 128),
                    *(blocks * 512, blocks * 3072),
                ),
                blocks,
            )


def replayed(checkout: Path, words: list[str]) -> Iterator[tuple[Case, float, str]]:
    """Each case, what the model says, and its line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        # what the project's own build writes: which cases its host program has
        (Path(folder) / "generated_cases.h").write_text("#define TFA_FOR_EACH_CASE(case)\n")
        for case in cases():
            if words and not any(word in case.name for word in words):
                continue
            profile = "a5" if case.device.startswith("950") else "a2a3"
            path = checkout / "kernels/manual" / case.file
            needs = [folder] if "generated_cases.h" in path.read_text(encoding="utf-8") else []
            source = cpp(path, profile=profile, include=needs)
            given = [(size,) for size in case.sizes]
            kernel = source[case.entry]
            found = kernel.time(*given, blocks=case.blocks, device=case.device)
            kernel.close()
            cells = (
                *(case.name, case.device, f"{case.us:.1f}", f"{found.us:.1f}"),
                *(f"{found.us / case.us - 1:+.1%}", found.bound),
                "fit" if case.fitted else "**test**",
            )
            line = f"| {' | '.join(cells)} |"
            print(line, flush=True)
            yield case, found.us, line


def page(rows: list[tuple[Case, float, str]]) -> str:
    head = ("kernel", "chip", "measured us", "predicted us", "error", "predicted bound", "")
    errors = [abs(us / case.us - 1) for case, us, _ in rows if not case.fitted]
    within = sum(error <= 0.15 for error in errors)
    told = (
        f"{len(rows)} rows, {len(errors)} of them tests: median error {median(errors):.1%},"
        f" {within} within 15 %, the largest {max(errors):.0%}."
    )
    table = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(line for *_, line in rows)]
    return "\n".join([_INTRO, told, "", *table, "", _REASONS])


if __name__ == "__main__":
    found = list(replayed(Path(sys.argv[1]), sys.argv[2:]))
    if not sys.argv[2:]:
        PAGE.write_text(page(found), encoding="utf-8")
