"""A cold addition of two tiles passes few files of the package, from its text to bits.

A file counts if a function of it is executed after the import of its module. The ceiling may only
fall.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILING = 103  # 94 before expressions and nests, rules against headers and settings of projects
PROGRAM = """
!view = !pto.tensor_view<16x64xf32>
!part = !pto.partition_tensor_view<16x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @add(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %va = pto.make_tensor_view %a, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %vb = pto.make_tensor_view %b, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %vc = pto.make_tensor_view %c, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %pc = pto.partition_view %vc, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %x = pto.alloc_tile : !tile
    %y = pto.alloc_tile : !tile
    %sum = pto.alloc_tile : !tile
    pto.tload ins(%pa : !part) outs(%x : !tile)
    pto.tload ins(%pb : !part) outs(%y : !tile)
    pto.tadd ins(%x, %y : !tile, !tile) outs(%sum : !tile)
    pto.tstore ins(%sum : !tile) outs(%pc : !part)
    return
  }
}
"""
# Prints the files; modules that are imported meanwhile run in the thread that imports them.
TRACER = """
import sys, threading
root, here, files = sys.argv[1], threading.local(), set()

def seen(frame, event, arg):
    code = frame.f_code
    if code.co_name == "<module>":
        here.imports = getattr(here, "imports", 0) + {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and code.co_filename.startswith(root) and not getattr(here, "imports", 0):
        files.add(code.co_filename[len(root):])

threading.setprofile(seen)
sys.setprofile(seen)
from pto.cli.main import main
status = main(sys.argv[2:])
sys.setprofile(None)
print(status, *sorted(files), sep="\\n", file=sys.stderr)
"""


def test_a_cold_addition_passes_few_files(tmp_path: Path):
    program = tmp_path / "add.pto"
    program.write_text(PROGRAM)
    arrays = [word for n in "abc" for word in ("--arg", f"{n}=ones:16x64")]
    words = [f"{ROOT / 'pto'}{os.sep}", "run", str(program), *arrays, "--engine", "jit"]
    out = subprocess.run(
        [sys.executable, "-c", TRACER, *words],
        env={**os.environ, "PTO_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    status, *files = out.stderr.splitlines()
    assert status == "0" and "1,024 of 1,024 elements changed, now 2.0" in out.stdout, out
    assert {"ir/text/parser.py", "plan/memory.py", "run/jit/llvm/native.py"} <= set(files)
    assert len(files) <= CEILING, files
