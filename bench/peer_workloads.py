"""What `bench_peers.py` measures: each workload as kernels of ours, and as others have it."""

from __future__ import annotations

import ctypes
import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import ml_dtypes
import numpy as np

import pto
from bench import jit_kernels as kernels
from bench.bench_jit import aligned, by_hand, many_instructions, pointer
from bench.bench_peers import Work, least
from bench.bench_rows import SIZE
from examples import flash_attention as flash
from examples.gallery.top_k import top_k
from pto.core.dtypes import dtype

RNG = np.random.default_rng(0)
BF16 = ml_dtypes.bfloat16
torch: Any = import_module("torch") if find_spec("torch") else None
HAND = by_hand()


def _normal(*shape: int, kind: Any = np.float32) -> Any:
    found = aligned(shape, kind)
    found[...] = RNG.standard_normal(shape)
    return found


def _tensor(array: Any) -> Any:
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def products(kind: Any, size: int = 1024) -> Work:
    """size^3 in tiles as large as the buffers of the cube are."""
    into, deep = (
        (np.int32, 256) if kind is np.int8 else (np.float32, 256 // np.dtype(kind).itemsize)
    )
    a, b = _normal(size, size, kind=kind), _normal(size, size, kind=kind)
    if kind is np.int8:
        a[...], b[...] = RNG.integers(-128, 128, (2, size, size))
    c = aligned((size, size), into)
    make = kernels.product_of_kept if kind is np.int8 else kernels.tiled_product
    ours = make(dtype(np.dtype(kind)), dtype(np.dtype(into)), 256, deep)
    wide, plain = (a.astype(np.float32), b.astype(np.float32)), np.empty((size, size), np.float32)
    work: Work = {
        "pto": lambda: ours.run(a, b, c, engine="jit"),
        "NumPy": lambda: np.matmul(*wide, out=plain),
    }
    if torch is not None:
        x, y = _tensor(a), _tensor(b)
        work["torch"] = (lambda: torch._int_mm(x, y)) if kind is np.int8 else (lambda: x @ y)
    return work


def softmax() -> Work:
    x, y = _normal(64_000, 128), aligned((64_000, 128), np.float32)

    def plain() -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    work: Work = {"pto": lambda: kernels.softmax_tiles.run(x, y, engine="jit"), "NumPy": plain}
    if HAND is not None:
        work["C -O3"] = lambda: HAND.w2(pointer(x), pointer(y), ctypes.c_long(1_000))
    if torch is not None:
        tensor, out = _tensor(x), torch.empty(x.shape)
        work["torch"] = lambda: torch.softmax(tensor, dim=1, out=out)
    return work


def layernorm() -> Work:
    x, y, w, b = (
        _normal(4096, 1024),
        aligned((4096, 1024), np.float32),
        _normal(1024),
        _normal(1024),
    )

    def plain() -> Any:
        t = x - x.mean(axis=1, keepdims=True)
        return t / np.sqrt((t * t).mean(axis=1, keepdims=True) + 1e-5) * w + b

    work: Work = {
        "pto": lambda: kernels.layernorm.run(x, w, b, y, engine="jit"),
        "NumPy": plain,
    }
    if torch is not None:
        given = [_tensor(v) for v in (x, w, b)]
        norm = torch.nn.functional.layer_norm
        work["torch"] = lambda: norm(given[0], (1024,), given[1], given[2])
    return work


def attention() -> Work:
    length, depth = 2048, flash.DEPTH
    q, k, v = (_normal(length, depth, kind=np.float16) for _ in "qkv")
    kt, o = np.ascontiguousarray(k.T), aligned((length, depth), np.float32)
    wide = [m.astype(np.float32) for m in (q, k, v)]

    def plain() -> Any:
        s = wide[0] @ wide[1].T * np.float32(depth**-0.5)
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return e @ wide[2] / e.sum(axis=1, keepdims=True)

    rows, chunk, tiles = 128, 128, 2  # as many as the buffers of cube and vector hold
    ours = kernels.attention(rows, chunk, tiles, once=True)
    count = length // (rows * tiles)
    work: Work = {
        "pto": lambda: ours[count](q, kt, v, o, engine="jit"),
        "NumPy": plain,
    }
    if torch is not None:
        given = [_tensor(m)[None, None] for m in wide]
        work["torch"] = lambda: torch.nn.functional.scaled_dot_product_attention(*given)
    return work


def convolution() -> Work:
    """64 channels of 56 x 56, and as many filters."""
    channels, size, c0 = 64, 56, kernels.C0
    x, w = (_normal(channels, *rest, kind=np.float16) for rest in ((size, size), (channels, 3, 3)))
    groups = channels // c0
    lines = x.reshape(groups, c0, size, size).transpose(0, 2, 3, 1)
    taps = w.reshape(channels, groups, c0, 3, 3).transpose(1, 3, 4, 2, 0)
    given = [np.ascontiguousarray(lines).reshape(-1, size * c0)]
    given.append(np.ascontiguousarray(taps).reshape(-1, channels))
    y, wide = aligned((size * size, channels), np.float32), given[1].astype(np.float32)
    padded = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1)))

    def plain() -> Any:
        seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        seen = seen.reshape(groups, c0, size, size, 3, 3).transpose(2, 3, 0, 4, 5, 1)
        return seen.reshape(size * size, -1) @ wide

    work: Work = {"pto": lambda: kernels.convolution[1](*given, y, engine="jit"), "NumPy": plain}
    if torch is not None:
        image, filters = (_tensor(a.astype(np.float32)) for a in (x, w))
        work["torch"] = lambda: torch.nn.functional.conv2d(image[None], filters, padding=1)
    return work


def best_of_rows() -> Work:
    x, k = _normal(512, 512), 16
    values, columns = np.zeros((512, k), np.float32), np.zeros((512, k), np.int32)

    def plain() -> Any:
        at = np.argpartition(-x, k, axis=1)[:, :k]
        found = np.take_along_axis(x, at, axis=1)
        order = np.argsort(-found, axis=1)
        return np.take_along_axis(found, order, axis=1), np.take_along_axis(at, order, axis=1)

    work: Work = {
        "pto": lambda: top_k[512](x, values, columns, engine="jit"),
        "NumPy": plain,
    }
    if torch is not None:
        tensor = _tensor(x)
        work["torch"] = lambda: torch.topk(tensor, k, dim=1)
    return work


def tiles(op: str, plain: Any, name: str, turns: int = 4_000) -> Work:
    """So many instructions on tiles of SIZE x SIZE, in a loop of the program."""
    x = aligned((SIZE, SIZE), np.float32)
    x[...] = RNG.uniform(0.5, 2, x.shape)
    y = np.empty_like(x)
    ours = kernels.unary(op) if name == "unary" else kernels.binary(op)
    work: Work = {
        "pto": lambda: ours.run(x, turns, engine="jit"),
        "NumPy": lambda: [plain(x, y) for _ in range(turns)],
    }
    if torch is not None:
        tensor, out = _tensor(x), _tensor(y)
        call = getattr(torch, op[1:])
        given = (tensor,) if name == "unary" else (tensor, tensor)
        work["torch"] = lambda: [call(*given, out=out) for _ in range(turns)]
    return work


def compiled() -> Work:
    """A program of 450 instructions that no cache knows."""
    text, x = many_instructions(450), np.zeros((64, 64), np.float32)

    def fresh() -> None:
        module = pto.parse(text.replace("@long", f"@long{uuid4().hex}"))
        pto.launch(module, args=[x], engine="jit", check=False)

    return {"pto": fresh}


def workloads() -> dict[str, Work]:
    return {
        "4,000 `TADD` of 64x64 f32": tiles("tadd", lambda x, y: np.add(x, x, out=y), "binary"),
        "4,000 `TEXP` of 64x64 f32": tiles("texp", lambda x, y: np.exp(x, out=y), "unary"),
        "softmax of 64,000 rows of 128, f32": softmax(),
        "layer norm of 4,096 rows of 1,024, f32": layernorm(),
        "attention, 2,048 tokens, depth 64": attention(),
        "3x3 convolution, 64 channels of 56x56": convolution(),
        "the 16 greatest of 512 rows of 512": best_of_rows(),
        "1024x1024x1024, f32": products(np.float32),
        "1024x1024x1024, bf16 (NumPy: f32)": products(BF16),
        "1024x1024x1024, int8 (NumPy: f32)": products(np.int8),
        "450 tile instructions, parsed, compiled and run": compiled(),
    }


if __name__ == "__main__":
    if torch is not None:
        torch.set_num_threads(1)
    print(json.dumps({name: least(work) for name, work in workloads().items()}))
