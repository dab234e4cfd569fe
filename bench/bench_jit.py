"""The fast engine against C -O3: three workloads, what starting costs.

`sweep.png` shows how cost grows. Single instructions: `bench_rows.py`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import pto
from bench import jit_kernels as kernels
from bench.measure import Rows, installed, seconds
from pto import isa
from pto.ir.text.parser import parse
from pto.plan.calls import entry_functions
from pto.run.launch.call import Launch
from pto.run.launch.host import launch
from pto.run.launch.prepared import PreparedKernel
from pto.target.profile import choose

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(0)


# ---- three workloads against C


def by_hand() -> Any:
    """The C workloads, or None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    source = Path(__file__).parent / "c" / "workloads.c"
    folder = Path(tempfile.mkdtemp())
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-lm"]
    subprocess.run([*command, "-o", str(folder / "w.so")], check=True)
    return ctypes.CDLL(str(folder / "w.so"))


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def aligned(shape: tuple[int, ...], kind: Any) -> Any:
    """An array that begins at a cache line, so that luck does not decide."""
    nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = np.zeros(nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + nbytes].view(kind).reshape(shape)


def prepared(text: str) -> Callable[..., None]:
    """A program made ready once: what a launch costs after that is its run."""
    module = parse(text)
    profile = choose(profile_name="a5").profile
    ready = PreparedKernel(module, entry_functions(module, None), profile, engine="jit")

    def call(*args: Any) -> None:
        Launch.of(ready, pto.Device(profile), args, 1).now()

    return call


def workloads() -> Rows:
    hand = by_hand()
    turns = 640_000 // (kernels.ROWS * kernels.PER_ROW)
    add, gm = prepared(kernels.VECTOR_ADD), np.zeros(1, np.float32)
    ub = aligned((3 * kernels.ROWS * 64,), np.float32)
    x, y = aligned((64_000, 128), np.float32), aligned((64_000, 128), np.float32)
    x[...] = RNG.standard_normal(x.shape)
    a, b = aligned((512, 512), BF16), aligned((512, 512), BF16)
    a[...], b[...] = (RNG.standard_normal((512, 512)).astype(BF16) for _ in "ab")
    c, scratch = aligned((512, 512), np.float32), aligned((2, 512, 512), np.float32)
    ours: dict[str, Callable[[], object]] = {
        "W1 640,000 vector instructions": lambda: add(gm, 61, turns),
        "W2 softmax of 1,000 tiles": lambda: kernels.softmax_tiles.run(x, y, engine="jit"),
        "W3 512^3 bf16": lambda: kernels.gemm.run(a, b, c, engine="jit"),
    }
    theirs: dict[str, Callable[[], object]] = {}
    if hand is not None:
        long = ctypes.c_long
        theirs = {
            "W1": lambda: hand.w1(pointer(ub), long(kernels.ROWS), long(turns), long(61)),
            "W2": lambda: hand.w2(pointer(x), pointer(y), long(1_000)),
            "W3": lambda: hand.w3(*map(pointer, (a, b, c, scratch)), long(512)),
        }
    idle: dict[str, Callable[[], object]] = {"launch of nothing": lambda: add(gm, 61, 0)}
    took = seconds({**ours, **theirs, **idle}, rounds=21, calls=2)
    launch_ = took["launch of nothing"]
    rows: Rows = [("a launch without work, taken off below", launch_ * 1e3, "ms")]
    for name in ours:
        other, own = took.get(name.split()[0]), took[name] - launch_
        ratio = "" if other is None else f"ms, {own / other:5.2f} x C -O3 (goal 1.1)"
        rows.append((name, own * 1e3, ratio or "ms (no C compiler here)"))
    return rows


# ---- compilation and start


def many_instructions(count: int) -> str:
    """A kernel of so many tile instructions, of a few kinds."""
    kinds = ("tadd", "tsub", "tmul", "tmax", "tmin")

    @pto.kernel(profile="a5")
    def long(x: pto.Global[pto.f32]) -> None:
        a, b, c = (pto.tile(64, 64, pto.f32) for _ in range(3))
        isa.tload(a, x[:, :])
        isa.tload(b, x[:, :])
        for n in range(count - 3):
            getattr(isa, kinds[n % len(kinds)])(
                (a, b, c)[n % 3], (b, c, a)[n % 3], (c, a, b)[n % 3]
            )
        isa.tstore(x[:, :], c)

    return str(pto.print_module(long.module(np.zeros((64, 64), np.float32))))


def starting() -> Rows:
    from pto.run.jit.llvm import native

    native.target()
    module = parse(many_instructions(450))
    x = np.zeros((64, 64), np.float32)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["PTO_CACHE_DIR"] = empty
        start = time.perf_counter()
        launch(module, args=[x], engine="jit", check=False)
        cold = time.perf_counter() - start
        program = Path(empty) / "small.pto"
        program.write_text(many_instructions(8))
        command = [sys.executable, "-m", "pto.cli.main", "run", str(program), "--arg", "x=rand"]
        taken: list[float] = []
        for _ in range(6):
            start = time.perf_counter()
            done = subprocess.run(
                [*command, "--engine", "jit"], capture_output=True, check=False, env=installed()
            )
            taken.append(time.perf_counter() - start)
            if done.returncode:
                raise RuntimeError(done.stderr.decode())
        del os.environ["PTO_CACHE_DIR"]
    return [
        ("compile and run 450 tile instructions, cold", cold, "s (goal 0.5)"),
        ("`pto run` of a small program, warm cache", min(taken[1:]), "s (goal 0.5)"),
    ]


def long_kernels() -> Rows:
    """A transform written out: tracing and the first run, with an empty cache, in a new process."""
    rows: Rows = []
    for points in (32, 64):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [sys.executable, "-c", _LONG.format(points=points)],
                capture_output=True,
                check=True,
                env={**installed(), "PTO_CACHE_DIR": empty},
            )
        lines, trace, first = map(float, done.stdout.split())
        goal = ", goal 1.5 for both" if points == 64 else ""
        rows.append((f"trace a kernel of {lines:,.0f} lines", trace, "s"))
        rows.append((f"first run of {lines:,.0f} lines, cold", first, f"s{goal}"))
    return rows


_LONG = """
import time
import numpy as np
from bench.long_kernels import fourier
small, kernel = fourier(4), fourier({points})
rng = np.random.default_rng(0)
def arrays(n):
    return [*rng.standard_normal((2, n, 64)).astype(np.float32), *np.zeros((2, n, 64), np.float32)]
small(*arrays(4))  # imports, LLVM
args = arrays({points})
start = time.perf_counter()
kernel.module(*args)
traced = time.perf_counter()
kernel(*args)
done = time.perf_counter()
wanted = np.fft.fft(args[0] + 1j * args[1], axis=0)
assert np.allclose(args[2] + 1j * args[3], wanted, atol=1e-4)
print(kernel.ir.count("\\n"), traced - start, done - traced)
"""


# ---- how cost grows


def sweep(to: Path) -> Rows:
    """Blocks x length of the loop x size of the tile, one factor at a time; a picture of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    rows: Rows = []
    for axis, (name, points) in zip(axes, _sweeps().items(), strict=True):
        amounts = [amount for amount, _ in points]
        times = [took for _, took in points]
        axis.loglog(amounts, times, "o-", base=2)
        axis.loglog(amounts, [times[-1] * n / amounts[-1] for n in amounts], ":", base=2)
        axis.set(title=name, xlabel=name, ylabel="ms")
        power = np.polyfit(np.log(amounts), np.log(times), 1)[0]
        rows.append((f"cost grows with {name} to the power", float(power), "(linear: 1)"))
    figure.savefig(to, dpi=110)
    return rows


def _sweeps() -> dict[str, list[tuple[int, float]]]:
    add = {size: kernels.binary("tadd", size) for size in (16, 32, 64, 128)}

    def took(size: int, turns: int) -> float:
        x = np.zeros((size, size), np.float32)
        work = {"": lambda: add[size].run(x, turns, engine="jit")}
        return seconds(work, rounds=5, calls=1)[""] * 1e3

    rows = np.zeros((64 * 512, 128), np.float32)

    def blocks(count: int) -> float:
        part = rows[: 64 * count]
        work = {"": lambda: _softmax_block[count](part, part.copy(), engine="jit")}
        return seconds(work, rounds=7, calls=1)[""] * 1e3

    return {
        "blocks": [(n, blocks(n)) for n in (32, 64, 128, 256, 512)],
        "turns of the loop": [(n, took(64, n)) for n in (1_000, 4_000, 16_000, 64_000)],
        "elements of a tile": [(n * n, took(n, 8_000)) for n in add],
    }


@pto.kernel(profile="a5")
def _softmax_block(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 64
    t = pto.tile(64, 128, pto.f32)
    isa.tload(t, x[i : i + 64, :])
    isa.texp(t, t)
    isa.tstore(y[i : i + 64, :], t)


def run() -> Rows:
    return [*workloads(), *starting(), *long_kernels(), *sweep(Path("sweep.png"))]


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<46} {value:>12,.2f} {unit}")
