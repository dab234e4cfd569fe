"""Sanitized runs against plain runs of the same kernels on the reference engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.measure import Rows, seconds, table
from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.observe import sanitize
from pto.run.launch.host import launch

GOAL = 4.0
_PROGRAMS = Path(__file__).parent.parent / "tests" / "observe" / "programs"
_STEPS = 200  # turns of the loop of a kernel, where it has one

_SOFTMAX_ROW = """
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @rows(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %rows = arith.constant {rows} : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bytes = arith.constant {bytes} : i64
    %in = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %bytes : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
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
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %out, %y, %bytes nburst(%one, %bytes, %bytes)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }}
}}
"""


def _longer(name: str, **constants: int) -> Module:
    """One of the test programs with other constants: more turns of its loop."""
    text = (_PROGRAMS / f"{name}.pto").read_text(encoding="utf-8")
    for constant, value in constants.items():
        text = re.sub(
            rf"%{constant} = arith.constant \d+", f"%{constant} = arith.constant {value}", text
        )
    return parse(text)


def _kernels() -> dict[str, tuple[Module, Callable[[], list[Any]]]]:
    def zeros(*counts: int) -> Callable[[], list[Any]]:
        return lambda: [np.zeros(n, np.float32) for n in counts]

    size = 64 * _STEPS
    rows = 16 * _STEPS
    text = _SOFTMAX_ROW.format(rows=_STEPS, bytes=256 * _STEPS)
    half = np.ones(256, np.float16)
    return {
        "softmax of rows, one scope": (parse(text), zeros(size, size)),
        "double buffer, a scope a step": (
            _longer("double_buffer", c4=_STEPS),
            zeros(size, size),
        ),
        "tiles, a barrier a step": (
            _longer("tiles", c2=_STEPS, c32=rows),
            zeros(64 * rows, 64 * rows),
        ),
        "a product, cube to vector": (
            parse_file(_PROGRAMS / "cube.pto"),
            lambda: [half, half, np.zeros(256, np.float32)],
        ),
    }


def run() -> Rows:
    rows: Rows = []
    ratios: list[float] = []
    for name, (module, args) in _kernels().items():
        given: dict[str, Any] = {"args": args(), "check": False, "engine": "reference"}
        work: dict[str, Callable[[], object]] = {
            "plain": partial(launch, module, **given),
            "sanitized": partial(sanitize, module, **given),
        }
        taken = seconds(work, rounds=5, calls=1)
        ratios.append(taken["sanitized"] / taken["plain"])
        rows.append((name, ratios[-1], f"x plain ({taken['plain'] * 1e3:.1f} ms)"))
    return [*rows, ("median", median(ratios), f"x, goal {GOAL:g}")]


if __name__ == "__main__":
    print(table(str(__doc__), run()))
