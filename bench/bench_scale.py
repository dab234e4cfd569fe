"""Natural kernels with 1, 2, 4, 8, 16 threads, beside torch with as many if it is installed.

`python -m bench.bench_scale [PLOT.png]` prints the table line by line, in two to three minutes, and
draws the speed-up. Times are wall times, the least of several calls. Nothing is measured with more
threads than processors.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pto
from bench.measure import Rows
from examples.gallery.attention import attention
from examples.gallery.batched_gemm import batched_gemm
from examples.gallery.gelu import gelu_tanh
from examples.gallery.norms import layernorm
from pto.core.processors import usable
from pto.run.jit.runtime import threads as threads_module

Work = Callable[[], object]
F = pto.Global[pto.f32]
_ROUNDS = 7
_THREADS = (1, 2, 4, 8, 16)
_Line = tuple[str, dict[int, float], dict[int, float]]  # name, ms by number of threads; of torch


@pto.kernel(profile="a5")
def softmax(x: F, y: F) -> None:
    i = pto.block_idx() * 16
    t = pto.load(x[i:, :], 16, 128)
    e = pto.exp(t - t.max(axis=1))
    pto.store(y[i:, :], e / e.sum(axis=1))


@pto.kernel(profile="a5")
def add(x: F, y: F, z: F) -> None:
    i = pto.block_idx() * 8192
    pto.store(z[i:], pto.load(x[i:], 8192) + pto.load(y[i:], 8192))


@pto.kernel(profile="a5")
def gemm(x: F, y: F, z: F) -> None:
    i, j = pto.block_idx(0) * 128, pto.block_idx(1) * 128
    acc = pto.zeros(128, 128, pto.f32, role="acc")
    for k in pto.range(0, x.shape[1], 64):
        acc = pto.dot(pto.load(x[i:, k:], 128, 64), pto.load(y[k:, j:], 64, 128), acc=acc)
    pto.store(z[i:, j:], acc)


@pto.kernel(profile="a5")
def copy(x: F, y: F) -> None:
    i = pto.block_idx() * 8
    pto.store(y[i:, :], pto.load(x[i:, :], 8, 64))


def _normal(*shape: int, kind: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape, np.float32).astype(kind)


def cases() -> dict[str, tuple[Work, Callable[[Any], Work]]]:
    """Each kernel, and what torch does instead."""
    rows, wide = _normal(256_000, 128), _normal(16_384, 512)
    long, more, total = _normal(50_000_000), _normal(50_000_000), np.empty(50_000_000, np.float32)
    large, square = _normal(16_384, 1024), _normal(2048, 2048)
    row = _normal(512)
    half = _normal(16, 1024, 64, kind=np.float16)
    turned = np.ascontiguousarray(half.transpose(0, 2, 1))
    heads, room = np.empty(half.shape, np.float32), np.zeros((512, 32, 32), np.float16)
    batch = _normal(32, 256, 256, kind=np.float16)
    products = np.empty(batch.shape, np.float32)
    outs = {id(a): np.empty_like(a) for a in (rows, wide, large, square)}

    def attend(torch: Any) -> Work:
        q = torch.from_numpy(half)
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    def multiply(torch: Any) -> Work:
        b = torch.from_numpy(batch)
        return lambda: torch.bmm(b, b)

    def called(torch: Any, name: str, *arrays: Any) -> Work:
        given = [torch.from_numpy(a) for a in arrays]
        return lambda: getattr(torch, name)(*given)

    def normed(torch: Any) -> Work:
        x, w = torch.from_numpy(wide), torch.from_numpy(row)
        return lambda: torch.nn.functional.layer_norm(x, (512,), w, w)

    def gelu(torch: Any) -> Work:
        x = torch.from_numpy(large)
        return lambda: torch.nn.functional.gelu(x, approximate="tanh")

    return {
        "softmax 256,000 x 128": (
            lambda: softmax[16_000](rows, outs[id(rows)]),
            lambda torch: _softmax(torch, rows),
        ),
        "attention, 16 heads x 1,024": (
            lambda: attention[32, 16](half, turned, half, heads, room),
            attend,
        ),
        "batched GEMM, 32 x 256^3, f16": (
            lambda: batched_gemm[4, 2, 32](batch, batch, products),
            multiply,
        ),
        "add of 50 M": (
            lambda: add[6104](long, more, total),
            lambda torch: called(torch, "add", long, more),
        ),
        "layer norm 16,384 x 512": (
            lambda: layernorm[1024](wide, row, row, outs[id(wide)]),
            normed,
        ),
        "GEMM f32 2,048^3": (
            lambda: gemm[16, 16](square, square, outs[id(square)]),
            lambda torch: called(torch, "matmul", square, square),
        ),
        "GELU of 16 M": (lambda: gelu_tanh[1024, 4](large, outs[id(large)]), gelu),
    }


def _softmax(torch: Any, rows: Any) -> Work:
    x = torch.from_numpy(rows)
    return lambda: torch.softmax(x, 1)


def _least(work: Work) -> float:
    work()
    found = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - began)
    return 1e3 * found


def _start() -> Work:
    """A launch that does next to nothing: what it costs to start and end threads."""
    x = _normal(128, 64)
    y = np.empty_like(x)
    return lambda: copy[16](x, y)


def lines() -> Iterator[_Line]:
    """Measure each kernel, and torch after it."""
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    before = os.environ.get("PTO_THREADS")
    for name, (kernel, peer) in cases().items():
        other, ours, theirs = None if torch is None else peer(torch), {}, {}
        for threads in _THREADS:
            if threads > usable():
                break
            os.environ["PTO_THREADS"] = str(threads)
            ours[threads] = _least(kernel)
            if torch is not None and other is not None:
                torch.set_num_threads(threads)
                theirs[threads] = _least(other)
        yield name, ours, theirs
    name, shortest = "a launch of 16 tiles of 2 KB", threads_module._LAUNCH
    threads_module._LAUNCH, work, ours = 0.0, _start(), {}  # else such a launch uses one thread
    for threads in _THREADS:
        os.environ["PTO_THREADS"] = str(threads)
        ours[threads] = min(_least(work) for _ in range(50))
    yield name, ours, {}
    threads_module._LAUNCH = shortest
    os.environ.pop("PTO_THREADS")
    if before is not None:
        os.environ["PTO_THREADS"] = before


def _row(line: _Line) -> str:
    name, *times = line
    cells = [f"{taken[n]:.3g}" if n in taken else "" for taken in times for n in _THREADS]
    most = max(times[0])
    return f"| {name} | {' | '.join(cells)} | {times[0][1] / times[0][most]:.1f} |"


def draw(measured: list[_Line], path: str) -> None:
    """Draw the speed-up of each kernel over the number of threads."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=120)
    axes = figure.subplots()
    axes.plot(_THREADS, _THREADS, color="0.8", linestyle="--", label="ideal")
    for name, ours, _ in measured:
        axes.plot(list(ours), [ours[1] / taken for taken in ours.values()], "o-", label=name)
    axes.set(xlabel="threads", ylabel="times as fast as one thread", xticks=_THREADS)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def run() -> Rows:
    return [
        (f"{name}, {n} threads{whose}", ms, "ms")
        for name, ours, theirs in lines()
        for whose, taken in (("", ours), (", torch", theirs))
        for n, ms in taken.items()
    ]


def main(path: str | None) -> None:
    numbers = " | ".join(map(str, _THREADS))
    print(f"| ms with so many threads | {numbers} | torch: {numbers} | times as fast |")
    print("| --- |" + " --- |" * (2 * len(_THREADS) + 1))
    measured = list[_Line]()
    for line in lines():
        print(_row(line), flush=True)
        measured.append(line)
    if path is not None:
        draw(measured[:-1], path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
