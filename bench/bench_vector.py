"""Vector instructions per second of the reference engine; with PTO_GYM set, the micro-op suite too.

PTO_GYM=path/to/PTO-Gym python -m bench.bench_vector
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import numpy as np

from pto.ir.text.parser import parse
from pto.run.launch.host import launch

_ROWS, _LANES = 512, 64
_KERNEL = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @add(%a: !pto.ptr<f32, gm>, %n: i32, %turns: index) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %end = arith.constant 32768 : index
    %zero = arith.constant 0 : i64
    %ub = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    pto.vecscope {
      scf.for %t = %c0 to %turns step %c1 {
        scf.for %i = %c0 to %end step %c64 {
          %m, %left = pto.plt_b32 %n : i32 -> !pto.mask<b32>, i32
          %x = pto.vlds %ub[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
          %y = pto.vlds %ub[%i] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
          %z = pto.vadd %x, %y, %m
            : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
          pto.vsts %z, %ub[%i], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
        }
      }
    }
    return
  }
}
"""
_PER_ROW = 5  # plt, vlds, vlds, vadd, vsts


def run() -> list[tuple[str, float, str]]:
    module = parse(_KERNEL)
    turns = 20
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        launch(module, args=[np.zeros(1, np.float32), 64, turns], check=False)
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    count = turns * _ROWS * _PER_ROW
    rows = [
        ("vector instructions, reference engine", count / seconds, "per s"),
        ("one vector instruction", seconds / count * 1e6, "us"),
    ]
    gym = os.environ.get("PTO_GYM")
    if gym:
        start = time.perf_counter()
        command = [sys.executable, "-m", "pto.cli.main", "gym", f"{gym}/examples/pto", "-j", "2"]
        subprocess.run(command, check=False, capture_output=True)
        rows.append(("PTO-Gym examples/pto on 2 processes", time.perf_counter() - start, "s"))
    return rows


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<52} {value:>14,.3f} {unit}")
