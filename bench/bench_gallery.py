"""Kernels of the gallery: their time by that of the same written out by instructions.

Processor time with one thread, the least of rounds that take turns: other work on the machine does
not count.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench import gallery_written_out as written_out
from bench.measure import Rows
from pto.run.launch.engine import ENGINES


def _normal(*shape: int, kind: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(kind)


def cases() -> dict[str, tuple[str, tuple[int, ...], list[Any]]]:
    """The file, the grid and the arguments of each kernel; whole tiles."""
    m, n = 512, 512
    x, y, row = _normal(m, n), np.zeros((m, n), np.float32), _normal(n)
    numbers = np.random.default_rng(1).integers(0, m, m, np.int32)
    half, single = _normal(2, 256, 64, kind=np.float16), np.zeros((2, 256, 64), np.float32)
    turned = np.ascontiguousarray(half.transpose(0, 2, 1))
    a, b = _normal(2, 256, 256, kind=np.float16), _normal(2, 256, 256, kind=np.float16)
    bytes_ = np.random.default_rng(2).integers(-128, 128, (256, 256), np.int8)
    best, where = np.zeros((64, 16), np.float32), np.zeros((64, 16), np.int32)
    gemm = [bytes_, bytes_, np.zeros(256, np.int32), _normal(256), np.zeros((256, 256), np.float16)]
    return {
        "gelu_tanh": ("gelu", (32, 2), [x, y]),
        "gelu_erf": ("gelu", (32, 2), [x, y]),
        "rmsnorm": ("norms", (32,), [x, row, y]),
        "layernorm": ("norms", (32,), [x, row, row, y]),
        "column_mean": ("column_mean", (4,), [x, np.zeros(n, np.float32)]),
        "cumsum_axis0": ("cumulative_sum", (2,), [x, y]),
        "cumsum_axis1": ("cumulative_sum", (8,), [x, y]),
        "batched_gemm": ("batched_gemm", (4, 2, 2), [a, b, np.zeros(a.shape, np.float32)]),
        "gemm_int8": ("gemm_int8", (8, 4), gemm),
        "attention": (
            "attention",
            (8, 2),
            [half, turned, half, single, np.zeros((16, 32, 32), np.float16)],
        ),
        "top_k": ("top_k", (64,), [x[:64], best, where]),
        "gather": ("gather_scatter", (32,), [x, numbers, y]),
        "scatter_add": ("gather_scatter", (32,), [y, numbers, x]),
        "depthwise_convolution": (
            "depthwise_convolution",
            (8, 4),
            [_normal(128, 516), _normal(5, 128), np.zeros((128, 512), np.float32)],
        ),
        "transpose": ("transpose", (8, 8), [x, y]),
        "leaky_relu": ("leaky_relu", (32, 2), [x, y]),
    }


def _least(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    found = dict.fromkeys(work, float("inf"))
    for call in work.values():
        call()  # compiles
    for _ in range(rounds):
        for name, call in work.items():
            began = time.process_time()
            call()
            found[name] = min(found[name], time.process_time() - began)
    return found


def run() -> Rows:
    rows: Rows = []
    for name, (file, grid, args) in cases().items():
        forms = {
            "expression": getattr(importlib.import_module(f"examples.gallery.{file}"), name),
            "instructions": getattr(written_out, name),
        }
        for engine in sorted(ENGINES):
            work = {
                form: partial(kernel[grid], *args, engine=engine) for form, kernel in forms.items()
            }
            os.environ["PTO_THREADS"] = "1"  # processor time adds up over threads
            taken = _least(work, 20 if engine == "jit" else 4)
            del os.environ["PTO_THREADS"]
            ratio = taken["expression"] / taken["instructions"]
            rows.append((f"{name}, {engine}, {taken['expression'] * 1e3:.2f} ms", ratio, "x"))
    return rows
