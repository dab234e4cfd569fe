"""C++ kernels: processor time of a build, and instructions a second through sites seen before."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.measure import Rows
from pto.core.errors import PtoError
from pto.cxx import compiler
from pto.cxx.kernel import cpp

_KERNEL = """
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void k(__gm__ float* out, __gm__ float* in, int32_t turns)
{
    using V = Tile<TileType::Vec, float, 8, 64>;
    using G = GlobalTensor<float, Shape<1, 1, 1, 8, 64>, Stride<512, 512, 512, 64, 1>>;
    V x, y;
    TASSIGN(x, 0x0);
    TASSIGN(y, 0x1000);
    for (int32_t i = 0; i < turns; ++i) {
        G from(in + i % 16 * 512), to(out + i % 16 * 512);
        TLOAD(x, from);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADDS(y, x, 1.0f);
        TMULS(y, y, 2.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(to, y);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
}
"""
_INSTRUCTIONS, _TURNS, _FRESH = 10, 20_000, 5


def _cpu() -> float:
    """Processor seconds of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _built(folder: Path) -> float:
    """Seconds of a build, the header compiled before."""
    taken: list[float] = []
    for n in range(_FRESH):
        path = folder / f"k{n}.cpp"
        path.write_text(f"{_KERNEL}// {n} {time.time()}\n", encoding="utf-8")
        before = _cpu()
        compiler.Build([path], "a2a3", "vector").made()
        taken.append(_cpu() - before)
    return sorted(taken)[_FRESH // 2]


def _spent(path: Path, turns: int) -> float:
    """Seconds of a run, with all that its process does before."""
    x = np.ones((16, 8, 64), np.float32)
    before, kernel = _cpu(), cpp(path, sides=("vector",))["k"]
    kernel(np.zeros_like(x), x, turns)
    kernel.close()
    return _cpu() - before


def run() -> Rows:
    try:
        compiler.find()
    except PtoError:
        return [("C++ kernels: no compiler", 0.0, "")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.cpp")
        path.write_text(_KERNEL, encoding="utf-8")
        _spent(path, 1)  # the header and the kernel are compiled here
        fed = _TURNS * _INSTRUCTIONS / (_spent(path, _TURNS) - _spent(path, 1))
        return [
            ("a small kernel built, header ready", _built(Path(folder)), "s CPU"),
            ("instructions fed, seen before", fed / 1000, "thousand / s CPU"),
        ]
