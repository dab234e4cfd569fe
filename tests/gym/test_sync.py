"""`pto suite gym --sync`: programs that leave flags to a compiler get them before they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.core.selection import select
from pto.gym.cases import find_programs
from pto.gym.runner import Options, Runner
from pto.gym.scripts import Scripts
from pto.ir.graph import Module
from pto.observe.sanitize import launch_sanitized
from pto.suite.result import Result
from tests.gym.test_mutate import KERNEL as WITH_FLAGS

pytestmark = pytest.mark.usefixtures("cxx")

TILE = "!pto.tile_buf<vec, 1x16xf16>"
VIEW = "!pto.tensor_view<1x16xf16>"
PART = "!pto.partition_tensor_view<1x16xf16>"
KERNEL = f"""\
module attributes {{pto.target_arch = "a5"}} {{
  func.func @scale_kernel(%x: !pto.ptr<f16>, %y: !pto.ptr<f16>, %factor: f16, %n: i32)
      attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %vx = pto.make_tensor_view %x, shape = [%c1, %c16], strides = [%c16, %c1] : {VIEW}
    %vy = pto.make_tensor_view %y, shape = [%c1, %c16], strides = [%c16, %c1] : {VIEW}
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c1, %c16] : {VIEW} -> {PART}
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c1, %c16] : {VIEW} -> {PART}
    %t = pto.alloc_tile : {TILE}
    %block = pto.get_block_idx
    %zero = arith.constant 0 : i64
    %is_first = arith.cmpi eq, %block, %zero : i64
    scf.if %is_first {{
    pto.tload ins(%px : {PART}) outs(%t : {TILE})
    pto.tmuls ins(%t, %factor : {TILE}, f16) outs(%t : {TILE})
    pto.tstore ins(%t : {TILE}) outs(%py : {PART})
    }}
    return
  }}
}}
"""


@pytest.mark.parametrize(("sync", "expected"), [(True, 2), (False, 0)])
def test_flags_are_there_when_a_program_is_run_and_watched(
    checkout: Path, scripts: Scripts, tmp_path: Path, sync: bool, expected: int
) -> None:
    results, waits = _run(checkout, scripts, tmp_path, KERNEL, sync)
    assert [r.status for r in results] == ["passed"]
    assert waits == [expected]


def test_a_compiler_inserts_flags_wherever_tiles_lie(
    checkout: Path, scripts: Scripts, tmp_path: Path
) -> None:
    placed = KERNEL.replace("pto.alloc_tile", "pto.alloc_tile addr = %zero")
    placed = placed.replace("%t =", "%zero = arith.constant 0 : i64\n    %t =")
    last = placed.rindex("%zero = arith")
    results, _ = _run(checkout, scripts, tmp_path, placed[:last] + placed[last + 32 :], False)
    assert [r.status for r in results] == ["passed"]


def test_a_program_with_flags_of_its_own_keeps_them(
    checkout: Path, scripts: Scripts, tmp_path: Path
) -> None:
    results, waits = _run(checkout, scripts, tmp_path, WITH_FLAGS, True)
    assert [r.status for r in results] == ["passed"]
    assert waits == [2]


def _run(
    checkout: Path, scripts: Scripts, work: Path, text: str, sync: bool
) -> tuple[list[Result], list[int]]:
    (checkout / "examples/pto/micro-op/scaling/scale/kernel.pto").write_text(text)
    waits: list[int] = []

    def launch(module: Module, **options: object) -> object:
        waits.append(sum(op.name == "pto.wait_flag" for op in module.walk()))
        return launch_sanitized(module, **options)

    (program,) = [p for p in find_programs(checkout, select("")) if p.name.endswith("/scale")]
    folder = work / "work"
    folder.mkdir()
    runner = Runner(scripts, launch, Options(sync=sync))
    return list(runner.run(program, select(""), folder)), waits
