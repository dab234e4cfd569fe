"""How fast programs are read: lines per second, `pto check` as a whole, and xDSL beside us."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.target.profile import profile
from pto.verify import verify

_KERNEL = """
  func.func @k{n}(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %va = pto.make_tensor_view %a, shape = [%c16, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    %vb = pto.make_tensor_view %b, shape = [%c16, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<?x?xf32>
    %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c16, %c64]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>
    %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c16, %c64]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    %u = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    pto.tload ins(%pa : !pto.partition_tensor_view<16x64xf32>)
              outs(%t : !pto.tile_buf<vec, 16x64xf32>)
    pto.tadd ins(%t, %t : !pto.tile_buf<vec, 16x64xf32>,
                          !pto.tile_buf<vec, 16x64xf32>)
             outs(%u : !pto.tile_buf<vec, 16x64xf32>)
    pto.tstore ins(%u : !pto.tile_buf<vec, 16x64xf32>)
               outs(%pb : !pto.partition_tensor_view<16x64xf32>)
    return
  }}
"""
_HEAD = 'module attributes {pto.target_arch = "a5"} {'


def program(kernels: int) -> str:
    return _HEAD + "".join(_KERNEL.format(n=n) for n in range(kernels)) + "}\n"


def _median(action: Callable[[], object], rounds: int = 5) -> float:
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run() -> list[tuple[str, float, str]]:
    """Figures of this machine, all from one run."""
    text = program(380)  # about 10,000 lines
    lines = text.count("\n")
    module = parse(text)
    generic = print_module(module, generic=True)
    reading = _median(lambda: parse(text))
    checking = _median(lambda: verify(module, profile("a5")), 3)
    generic_reading = _median(lambda: parse(generic), 3)
    rows = [
        (f"parse {lines:,} lines", lines / reading, "lines/s"),
        ("parse, whole file", reading, "s"),
        ("verify, same file", checking, "s"),
        ("print, same file", _median(lambda: print_module(module), 3), "s"),
        ("pto check on a small file, process start included", _check_command(), "s"),
    ]
    rows += _million()
    xdsl = _xdsl(generic)
    if xdsl is not None:
        rows.append(("xDSL on the generic text / ours", xdsl / generic_reading, "x"))
    return rows


def _million() -> list[tuple[str, float, str]]:
    """A million lines in a process of its own: seconds of it, and its memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.pto"
        path.write_text(program(40_000))
        command = [sys.executable, "-m", "pto.cli.main", "check", str(path)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [
        ("pto check of a million lines (goal 15)", after.ru_utime - before.ru_utime, "s"),
        ("pto check of a million lines, memory (goal 1000)", after.ru_maxrss / 1024, "MB"),
    ]


def _check_command() -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.pto"
        path.write_text(program(1))
        command = [sys.executable, "-m", "pto.cli.main", "check", str(path)]
        # An installed package has its byte code; a checkout gets it on the first run.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(command, check=True, capture_output=True, env=env)
        return _median(lambda: subprocess.run(command, check=True, capture_output=True, env=env))


def _xdsl(generic: str) -> float | None:
    try:
        from xdsl.context import Context
        from xdsl.parser import Parser
    except ImportError:
        return None
    return _median(lambda: Parser(Context(allow_unregistered=True), generic).parse_module(), 1)


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<52} {value:>14,.3f} {unit}")
