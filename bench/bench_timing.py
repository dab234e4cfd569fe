"""Timing: how long the model takes, in processor time of a new process, and its memory.

Goals: GEMM 7680 in 5 s and 500 MB; a small kernel in 0.3 s more than its run; nothing in minutes.
"""

from __future__ import annotations

import subprocess
import sys

from bench.measure import Rows, installed

# A name of the published rows, or the small example of the README.
_PUBLISHED = """
import resource, time
from examples.timing.published import published
row = next(r for r in published() if r.name == NAME)
a = time.process_time()
row.time()
print(time.process_time() - a, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_SMALL = """
import resource, time
from examples.softmax import softmax_rows
a = time.process_time()
softmax_rows.time((100, 128), (100, 128), blocks=7)
print(time.process_time() - a, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_LOOP = """
import resource, time
import pto
from pto import isa

@pto.kernel(profile="a2a3")
def copies(x: pto.Global[pto.f32], n: int) -> None:
    t = pto.tile(1, 64, pto.f32, address=0)
    for _ in pto.range(0, n):
        isa.tload(t, x)
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)
        isa.tadds(t, t, 1.0)
        isa.set_flag("V", "MTE2", 0)
        isa.wait_flag("V", "MTE2", 0)

a = time.process_time()
copies.time((1, 64), 1_000_000)
print(time.process_time() - a, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_CODE = {"softmax": _SMALL, "a loop of a million": _LOOP}
_NAMES = ("GEMM 3072", "GEMM 7680", "vector add, case 1", "flash attention 32768x32768")


def run() -> Rows:
    rows: Rows = []
    for name in (*_CODE, *_NAMES):
        code = _CODE.get(name, f"NAME = {name!r}\n{_PUBLISHED}")
        said = subprocess.run(
            [sys.executable, "-c", code],
            env=installed(),
            capture_output=True,
            text=True,
            check=True,
        )
        seconds, memory = map(float, said.stdout.split())
        rows += [(name, seconds, "s"), (f"{name}, memory", memory, "MB")]
    return rows
