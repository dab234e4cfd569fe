"""What a report says of compiled code: fused groups, forwarded copies, host fallbacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.run.jit.both import same

# A row for each block; `step` elements lie between the rows of the destination's view.
COPY = """
module attributes {{pto.target_arch = "a5"}} {{
  func.func @copy(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %step: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %va = pto.make_tensor_view %a, shape = [%c2, %c64], strides = [%c64, %c1]
        : !pto.tensor_view<?x?xf32>
    %vb = pto.make_tensor_view %b, shape = [%c2, %c64], strides = [%step, %c1]
        : !pto.tensor_view<?x?xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 2x64xf32>
    pto.tload ins(%va : !pto.tensor_view<?x?xf32>) outs(%t : !pto.tile_buf<vec, 2x64xf32>)
    {between}
    pto.tstore ins(%t : !pto.tile_buf<vec, 2x64xf32>) outs(%vb : !pto.tensor_view<?x?xf32>)
    return
  }}
}}
"""
STORE = "the view has an unusual layout, leaves its memory, or its elements overlap"
GROUP = "views of a fused group overlap, or are not plain"


def _copy(between: str = "") -> Any:
    return parse(COPY.format(between=between))


def _run(module: Any, step: int, blocks: int = 1) -> Any:
    """On both engines; the report of the jit."""
    a = np.arange(128, dtype=np.float32)
    ours, theirs = np.zeros(128, np.float32), np.zeros(128, np.float32)
    launch(module, args=[a, theirs, step], blocks=blocks, engine="reference")
    report = launch(module, args=[a, ours, step], blocks=blocks, engine="jit")
    same(ours, theirs)
    assert ours[63] != 0
    return report


def test_a_group_has_the_names_of_its_instructions() -> None:
    report = _run(_copy(), 64)
    assert report.fused == (("pto.tload", "pto.tstore"),)
    assert report.fallbacks == {}
    assert report.left_out == {}


def test_a_guard_that_fails_counts_each_instruction_and_block() -> None:
    module = _copy()
    for _ in range(3):  # the first one is a launch, others are calls like it
        report = _run(module, 32, blocks=5)  # rows overlap
        assert report.fallbacks == {("pto.tload", GROUP): 5, ("pto.tstore", GROUP): 5}
        assert _run(module, 64, blocks=5).fallbacks == {}
    assert report.left_out == {}


def test_threads_count_what_each_of_them_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "2")
    assert _run(_copy(), 32, blocks=999).fallbacks[("pto.tstore", GROUP)] == 999


def test_an_instruction_by_itself_has_its_own_condition() -> None:
    other = """
    %s = pto.alloc_tile : !pto.tile_buf<vec, 2x64xf32>
    pto.tprint ins(%s : !pto.tile_buf<vec, 2x64xf32>)"""
    report = _run(_copy(other), 32)
    assert report.fused == ()
    assert report.fallbacks == {("pto.tstore", STORE): 1, **dict.fromkeys(report.left_out, 1)}
    assert [name for name, _ in report.left_out] == ["pto.tprint"]


SMALL = """
module attributes {pto.target_arch = "a5"} {
  func.func @small(%p: !pto.ptr<f8E4M3FN>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %s = arith.constant 1.5 : f8E4M3FN
    %v = pto.make_tensor_view %p, shape = [%c8, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<?x?xf8E4M3FN>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 8x32xf8E4M3FN>
    pto.texpands ins(%s : f8E4M3FN) outs(%t : !pto.tile_buf<vec, 8x32xf8E4M3FN>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 8x32xf8E4M3FN>)
        outs(%v : !pto.tensor_view<?x?xf8E4M3FN>)
    return
  }
}
"""


def test_fills_with_a_float_of_eight_bits_have_no_lowering() -> None:
    """Without checks: no profile takes texpands of them."""
    out = np.zeros((8, 32), ml_dtypes.float8_e4m3fn)
    report = launch(parse(SMALL), args=[out], engine="jit", check=False)
    assert (out.astype(np.float32) == 1.5).all()
    assert {name for name, _ in report.fallbacks} == {"pto.texpands"}
    assert dict(report.fallbacks) == dict(report.left_out)


CHILD = """
import json, sys
import numpy as np
from pto.ir.text.parser import parse_file
from pto.run.launch.host import launch
from pto.run.jit.llvm import native

linked = native.object_of
native.object_of = lambda *given: print("compiled") or linked(*given)
a, b = (np.zeros(128, np.float32) for _ in range(2))
report = launch(parse_file(sys.argv[1]), args=[a, b, 64], engine="jit")
print(json.dumps(report.fused))
"""


def test_code_from_the_cache_has_the_same_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "copy.pto").write_text(COPY.format(between=""))
    said = [
        subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path / "copy.pto")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    groups = json.dumps([["pto.tload", "pto.tstore"]])
    assert said == [["compiled", groups], [groups]]


def test_the_command_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.pto").write_text(COPY.format(between=""))
    given = ["--arg", "a=rand:128xf32", "--arg", "b=zeros:128xf32", "--arg", "step=32"]
    command = ["run", str(tmp_path / "copy.pto"), *given, "--engine", "jit"]
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compiled"]["fused"] == [["pto.tload", "pto.tstore"]]
    counted = {(f["instruction"], f["count"]) for f in found["compiled"]["fallbacks"]}
    assert counted == {("pto.tload", 1), ("pto.tstore", 1)}
    assert found["changed"] == {"a": 0, "b": 96}
    assert main([*command, "--verbose"]) == 0
    assert f"1 x pto.tstore: {GROUP}" in capsys.readouterr().out
