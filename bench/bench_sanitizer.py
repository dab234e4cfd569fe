"""Sanitized runs against plain runs of the same kernels on the reference engine, in processor time;
and the memory of long and of large ones, each in a process of its own.

Goals: below 4 times the plain run; a million instructions, or 128 MB of 48 blocks, in 1000 MB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import pto
from bench.measure import Rows, installed, table
from pto import isa
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.observe import sanitize
from pto.run.launch.host import launch
from pto.run.watch.events import InstructionEvent, Observer

GOAL = 4.0
_PROGRAMS = Path(__file__).parent.parent / "tests" / "observe" / "programs"
_STEPS = 200  # turns of the loop of a kernel
_ROWS = 200  # of the softmax: what UB holds, twice
_MANY = 1_000_000
_ROUNDS = 5

_SOFTMAX_ROW = """
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @rows(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %rows = arith.constant {rows} : index
    %turns = arith.constant {turns} : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant {bytes} : i64
    %in = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %bytes : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    scf.for %turn = %c0 to %turns step %c1 {{
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : !m
      scf.for %i = %c0 to %rows step %c1 {{
        %at = arith.muli %i, %c64 : index
        %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> !v
        %m = pto.vcmax %v, %all : !v, !m -> !v
        %b = pto.vdup %m, %all {{position = "LOWEST"}} : !v, !m -> !v
        %d = pto.vsub %v, %b, %all : !v, !v, !m -> !v
        %e = pto.vexp %d, %all : !v, !m -> !v
        %s = pto.vcadd %e, %all : !v, !m -> !v
        %t = pto.vdup %s, %all {{position = "LOWEST"}} : !v, !m -> !v
        %r = pto.vdiv %e, %t, %all : !v, !v, !m -> !v
        pto.vsts %r, %out[%at], %all : !v, !pto.ptr<f32, ub>, !m
      }}
    }}
    }}
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %out, %y, %bytes nburst(%one, %bytes, %bytes)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }}
}}
"""


def _edited(name: str, *edits: tuple[str, str]) -> Module:
    """One of the test programs, with more turns of its loop."""
    text = (_PROGRAMS / f"{name}.pto").read_text(encoding="utf-8")
    for old, new in edits:
        if old not in text:
            raise LookupError(old)
        text = text.replace(old, new)
    return parse(text)


def _zeros(count: int) -> list[Any]:
    return [np.zeros(count, np.float32), np.zeros(count, np.float32)]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program, by the turns of its loop, and what it is given."""

    make: Callable[[int], Module]
    args: Callable[[int], list[Any]]
    silent: int = 0  # instructions of a turn that only registers see


def _softmax(turns: int) -> Module:
    return parse(_SOFTMAX_ROW.format(rows=_ROWS, bytes=256 * _ROWS, turns=turns))


def _double_buffer(turns: int) -> Module:
    return _edited("double_buffer", ("%c4 = arith.constant 4", f"%c4 = arith.constant {turns}"))


def _tiles(turns: int, rows: int) -> Module:
    return _edited(
        "tiles",
        ("16x64", f"{rows}x64"),
        ("%c2 = arith.constant 2", f"%c2 = arith.constant {turns}"),
        ("%c16 = arith.constant 16", f"%c16 = arith.constant {rows}"),
        ("%c32 = arith.constant 32", f"%c32 = arith.constant {rows * turns}"),
    )


def _cube(turns: int) -> Module:
    """The product again and again; the vector side says when UB is free."""
    loop = "scf.for %turn = %from to %to step %step {"
    all_ = "pto.barrier #pto.pipe<PIPE_ALL>"
    index = [("from", 0), ("to", turns), ("step", 1)]
    numbers = "".join(f"%{n} = arith.constant {v} : index\n" for n, v in index)
    hear, send = "pto.sync.wait <PIPE_MTE3>, 1", "pto.sync.set <PIPE_FIX>, 1"
    free, freed = "pto.sync.set <PIPE_MTE3>, 2", "pto.sync.wait <PIPE_FIX>, 2"
    ub = "pto.mte_l0c_ub"
    end = "i64, i64, i64, i64\n      }\n    }\n    return"
    return _edited(
        "cube",
        ("    %no = ", f"{numbers}    %no = "),
        ("pto.section.cube {", f"pto.section.cube {{ {loop}"),
        (ub, f"{freed}\n{ub}"),
        (send, f"{send}\n{all_} }}\n{freed}"),
        (hear, f"{free}\n{loop}\n{hear}"),
        (end, end.replace("\n", f"\n{free}\n{all_} }}\n", 1)),
    )


def _product(_: int) -> list[Any]:
    return [np.ones(256, np.float16), np.ones(256, np.float16), np.zeros(256, np.float32)]


KERNELS = {
    "softmax of rows, one scope": Kernel(_softmax, lambda _: _zeros(64 * _ROWS), 7 * _ROWS),
    "double buffer, a scope a step": Kernel(_double_buffer, lambda n: _zeros(64 * n)),
    "tiles, a barrier a step": Kernel(partial(_tiles, rows=16), lambda n: _zeros(1024 * n)),
    "rows, a barrier a step": Kernel(partial(_tiles, rows=1), lambda n: _zeros(64 * n)),
    "products, cube to vector": Kernel(_cube, _product),
}
_LONG = [name for name in KERNELS if not name.startswith("tiles")]  # their arrays alone are 600 MB
_TIMED = [name for name in KERNELS if not name.startswith("rows")]


# ---- time


def _cost(kernel: Kernel, turns: int) -> tuple[float, float]:
    """Seconds of a plain run, and how many times as long a watched one takes."""
    module = kernel.make(turns)
    given: dict[str, Any] = {"args": kernel.args(turns), "check": False, "engine": "reference"}
    work: list[Callable[..., object]] = [launch, sanitize]
    taken: list[list[float]] = [[], []]
    for _ in range(_ROUNDS + 1):
        for run_it, times in zip(work, taken, strict=True):
            began = time.process_time()
            run_it(module, **given)
            times.append(time.process_time() - began)
    plain, watched = (median(times[1:]) for times in taken)  # the first fills caches
    return plain, watched / plain


# ---- memory


class _Count(Observer):
    events = 0

    def event(self, event: InstructionEvent) -> None:
        self.events += 1


def _turns(kernel: Kernel) -> int:
    """How many make a million instructions."""
    counts: list[int] = []
    for turns in (2, 4):
        counter = _Count()
        launch(kernel.make(turns), args=kernel.args(turns), check=False, observer=counter)
        counts.append(counter.events)
    return -(-_MANY // ((counts[1] - counts[0]) // 2 + kernel.silent))


@pto.kernel(profile="a5")
def in_place(x: pto.Global[pto.f32], same: pto.Global[pto.f32]) -> None:
    """Every block adds what all of them read to its part of a large array."""
    block, blocks = isa.get_block_idx(), isa.get_block_num()
    t, u = pto.tile(64, 256, pto.f32), pto.tile(64, 256, pto.f32)
    isa.tload(u, same)
    for row in pto.range(block * 64, x.shape[0], blocks * 64):
        for col in pto.range(0, x.shape[1], 256):
            isa.tload(t, x[row : row + 64, col : col + 256])
            isa.tadd(t, t, u)
            isa.tstore(x[row : row + 64, col : col + 256], t)


def watched(name: str) -> None:
    """One long or large run; prints its seconds and its memory."""
    if name in KERNELS:
        kernel = KERNELS[name]
        turns = _turns(kernel)
        module, given, blocks = kernel.make(turns), kernel.args(turns), 1
    else:
        given, blocks = (
            [np.zeros((1 << 15, 1 << 10), np.float32), np.ones((64, 256), np.float32)],
            48,
        )
        module = in_place.module(*given)
    began = time.process_time()
    found = sanitize(module, args=given, blocks=blocks, check=False, engine="reference")
    errors = [d for d in found.findings if d.severity == "error"]
    if errors:
        raise SystemExit(f"{name}: {errors[0].code}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - began, most)


def _apart(name: str) -> tuple[float, float]:
    code = f"from bench.bench_sanitizer import watched; watched({name!r})"
    said = subprocess.run(
        [sys.executable, "-c", code], env=installed(), capture_output=True, text=True, check=True
    )
    taken, most = map(float, said.stdout.split())
    return taken, most


def run() -> Rows:
    rows: Rows = []
    ratios: list[float] = []
    for name in _TIMED:
        plain, ratio = _cost(KERNELS[name], 1 if name.startswith("softmax") else _STEPS)
        ratios.append(ratio)
        rows.append((name, ratio, f"x plain ({plain * 1e3:.1f} ms)"))
    rows.append(("median", median(ratios), f"x, goal {GOAL:g}"))
    for name in (*_LONG, "128 MB, 48 blocks"):
        taken, most = _apart(name)
        what = f"{name}, a million" if name in KERNELS else name
        rows.append((what, most, f"MB, goal 1000 ({taken:.1f} s)"))
    return rows


if __name__ == "__main__":
    print(table(str(__doc__), run()))
