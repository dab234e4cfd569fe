"""Kernels in Python: import, the first call in a new process, and what a later call adds.

Processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import pto
from bench.measure import Rows, installed
from pto.run.launch.engine import ENGINES

_ROUNDS = 7
_GOALS = {"import": 0.3, "first": 0.5, "later": 100.0}
_IMPORT = "import time; a = time.process_time(); import pto; print(time.process_time() - a)"
# From the start of Python to the result of a kernel of seven instructions on (100, 128) f32.
_FIRST = """
import time
a = time.process_time()
import numpy as np
b = time.process_time()
import pto
from examples.softmax import softmax_rows
x = np.ones((100, 128), np.float32)
y = np.zeros_like(x)
softmax_rows.run(x, y, blocks=7, engine=ENGINE)
c = time.process_time()
softmax_rows.run(x, y, blocks=7, engine=ENGINE)
print(c - a, b - a)
"""


@pto.kernel
def nothing(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """A kernel whose call is all overhead."""


def run() -> Rows:
    rows: Rows = [(_goal("import pto", "import", "s"), _process(_IMPORT)[0], "s")]
    for engine in ENGINES:
        total, numpy = _process(_FIRST.replace("ENGINE", repr(engine)))
        rows.append((_goal(f"first call of a small kernel, {engine}", "first", "s"), total, "s"))
        rows.append((f"  of that NumPy's own import, {engine}", numpy, "s"))
    x = np.zeros((16, 64), np.float32)
    y = np.zeros_like(x)
    for engine in ENGINES:
        taken = _later(lambda e=engine: nothing.run(x, y, engine=e))
        rows.append((_goal(f"later call, overhead, {engine}", "later", "us"), taken * 1e6, "us"))
    return rows


def _later(call: Callable[[], object], calls: int = 200) -> float:
    """Median seconds of one call, of rounds of many."""
    taken: list[float] = []
    for _ in range(_ROUNDS + 1):
        began = time.process_time()
        for _ in range(calls):
            call()
        taken.append((time.process_time() - began) / calls)
    return median(taken[1:])


def _goal(name: str, which: str, unit: str) -> str:
    return f"{name} (goal {_GOALS[which]:g} {unit})"


def _process(code: str) -> list[float]:
    """Medians of what a new process prints; the first one only fills the disk cache."""
    found: list[list[float]] = []
    for _ in range(_ROUNDS + 1):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=installed()
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        found.append([float(word) for word in done.stdout.split()])
    return [median(column) for column in zip(*found[1:], strict=True)]


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<64} {value:>10.3f} {unit}")
