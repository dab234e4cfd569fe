"""Blocks, threads, launches, queues and the price of being stoppable, on the fast engine.

Ratios are of what runs in the same round. On a machine that is busy only figures of one thread mean
anything: they are processor time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import pto
from bench import jit_kernels as kernels
from bench.jit_kernels import attention_alone
from bench.measure import Rows, seconds
from examples.flash_attention import DEPTH, ROWS, flash_attention
from pto import isa
from pto.run.jit.emit.emitter import Emitter

RNG = np.random.default_rng(0)


@pto.kernel(profile="a5")
def small(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 8
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i : i + 8, :])
    isa.tadd(t, t, t)
    isa.tstore(y[i : i + 8, :], t)


@pto.kernel(profile="a5")
def tiny(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx()
    t = pto.tile(1, 8, pto.f32)
    isa.tload(t, x[i : i + 1, :])
    isa.tstore(y[i : i + 1, :], t)


@pto.kernel(profile="a5")
def worth(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Scalar[pto.i64]) -> None:
    i = pto.block_idx() * 64
    t = pto.tile(64, 64, pto.f32)
    isa.tload(t, x[i : i + 64, :])
    for _ in pto.range(n):
        isa.texp(t, t)
        isa.tmuls(t, t, 0.1)
    isa.tstore(y[i : i + 64, :], t)


@pto.kernel(profile="a5")
def add(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 16
    a, b = pto.tile(16, 512, pto.f32), pto.tile(16, 512, pto.f32)
    isa.tload(a, x[i : i + 16, :])
    isa.tload(b, y[i : i + 16, :])
    isa.tadd(a, a, b)
    isa.tstore(z[i : i + 16, :], a)


WORTH = 1e-4  # seconds of a block that threads are to be worth for


def took(work: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    work()
    times: list[float] = []
    for _ in range(rounds):
        began = clock()
        work()
        times.append(clock() - began)
    return median(times)


def alone(work: Callable[[], object], rounds: int = 7) -> float:
    """Seconds of processor time with one thread."""
    os.environ["PTO_THREADS"] = "1"
    try:
        return took(work, rounds, time.process_time)
    finally:
        del os.environ["PTO_THREADS"]


def blocks() -> Rows:
    x = RNG.standard_normal((80_000, 64)).astype(np.float32)
    y = np.zeros_like(x)
    each = alone(lambda: small[10_000](x, y, engine="jit")) / 10_000
    many = np.ones((10_000_000, 8), np.float32)
    all_ = alone(lambda: tiny[10_000_000](many, many, engine="jit"), rounds=1)
    return [
        ("one of 10,000 blocks of 8x64", each * 1e6, "us (goal 2)"),
        ("10 million blocks of 1x8", all_, "s (goal 30)"),
    ]


def threads() -> Rows:
    x = RNG.standard_normal((200 * 64, 64)).astype(np.float32)
    y, times = np.zeros_like(x), {}
    few = alone(lambda: worth[200](x, y, 8, engine="jit")) / 200
    turns = max(1, round(8 * WORTH / few))
    for count in ("1", "2"):
        os.environ["PTO_THREADS"] = count
        times[count] = took(lambda: worth[200](x, y, turns, engine="jit"), 9, time.perf_counter)
    a, b = RNG.standard_normal((2, 195_312, 512)).astype(np.float32)
    c = np.zeros_like(a)
    plain = took(lambda: np.add(a, b, out=c), 5, time.perf_counter)
    adds = {}
    for count in ("1", "2"):
        os.environ["PTO_THREADS"] = count
        adds[count] = took(lambda: add[195_312 // 16](a, b, c, engine="jit"), 5, time.perf_counter)
    del os.environ["PTO_THREADS"]
    return [
        ("a block of 64x64 exponentials, one thread", times["1"] / 200 * 1e6, "us"),
        ("  two threads are faster by", times["1"] / times["2"], "x (goal 1.8)"),
        ("100 M f32 added, one thread", adds["1"] * 1e3, f"ms, {adds['1'] / plain:.2f} x NumPy"),
        ("100 M f32 added, two threads", adds["2"] * 1e3, f"ms, {adds['2'] / plain:.2f} x NumPy"),
    ]


def launches() -> Rows:
    x = np.zeros((8, 64), np.float32)
    module, y = small.module(x, x), np.zeros_like(x)
    size = [8]

    def other_shape() -> None:
        size[0] += 8
        a = np.zeros((size[0], 64), np.float32)
        small[1](a, a, engine="jit")

    def calls(work: Callable[[], object]) -> float:
        return alone(lambda: [work() for _ in range(300)]) / 300 * 1e6

    known = calls(lambda: pto.launch(module, args=[x, y], engine="jit"))
    return [
        ("pto.launch of a known module", known, "us (goal 30)"),
        ("a kernel called again", calls(lambda: small[1](x, y, engine="jit")), "us (goal 25)"),
        ("a kernel called with another shape", alone(other_shape) * 1e3, "ms (goal 15)"),
    ]


def queues() -> Rows:
    length = 2048
    q, k, v = RNG.standard_normal((3, length, DEPTH)).astype(np.float16)
    kt, room = np.ascontiguousarray(k.T), np.zeros(1, np.float32)
    a, b = np.zeros((2, length, DEPTH), np.float32)
    count = length // ROWS
    one = alone(lambda: attention_alone[count](q, kt, v, a, engine="jit"))
    both = alone(lambda: flash_attention[count](q, kt, v, b, room, False, engine="jit"))
    if not np.array_equal(a, b):
        raise RuntimeError("the two forms of attention differ")
    return [
        ("flash attention S2048 D64, one function", one * 1e3, "ms"),
        ("  through queues, cube and vectors", both * 1e3, f"ms, {both / one:.2f} x (goal 1.5)"),
    ]


LOOP = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 7 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (i32) {
      %k = arith.index_cast %i : index to i32
      %b = arith.xori %a, %k : i32
      scf.yield %b : i32
    }
    pto.store_scalar %r, %p[%c0] : !pto.ptr<i32>, i32
    return
  }
}
"""


def stoppable() -> Rows:
    """What it costs that every loop can be stopped: the same programs without a look at the clock.

    W1 to W3 are the workloads of `bench_jit`, the last one is a loop that does next to nothing.
    """
    turns = 640_000 // (kernels.ROWS * kernels.PER_ROW)
    x = RNG.standard_normal((64_000, 128)).astype(np.float32)
    a = RNG.standard_normal((512, 512)).astype(pto.bf16.numpy)
    soft, product = (x, np.empty_like(x)), (a, a.copy(), np.zeros((512, 512), np.float32))
    programs: list[tuple[str, pto.Module, tuple[Any, ...]]] = [
        ("W1", pto.parse(kernels.VECTOR_ADD), (np.zeros(1, np.float32), 61, turns)),
        ("W2", kernels.softmax_tiles.module(*soft), soft),
        ("W3", kernels.gemm.module(*product), product),
        ("tightest loop", pto.parse(LOOP), (np.zeros(1, np.int32), 20_000_000)),
    ]
    rows: Rows = []
    for name, module, args in programs:
        text = pto.print_module(module)
        ways = [partial(_go, pto.parse(text), args) for _ in range(2)]
        look_up, Emitter.look_up = Emitter.look_up, lambda self: None
        ways[0]()  # compiled without
        Emitter.look_up = look_up
        took = seconds({"deaf": ways[0], "stoppable": ways[1]}, rounds=31, calls=1)
        cost = (took["stoppable"] / took["deaf"] - 1) * 100
        rows.append((f"{name}, stoppable", took["stoppable"] * 1e3, f"ms, {cost:+.1f} %"))
    return rows


def _go(module: Any, args: tuple[Any, ...]) -> None:
    pto.launch(module, args=list(args), engine="jit", profile="a5")


def run() -> Rows:
    return [*blocks(), *threads(), *launches(), *queues(), *stoppable()]


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<46} {value:>12,.2f} {unit}")
