"""`pto suite models` on a miniature checkout: rules, data, goldens, engines, ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pto.cli.main import main

RULES = """\
CASE_INT_SCALAR_DEFAULTS = {"scale": {"v3": 2}}
SAMPLE_CASE_INT_SCALAR_DEFAULTS = {"tiny": {"scale": {"v3": 3}}}
SAMPLE_CASE_OUTPUT_PARAMS = {}
CASE_COMPARE_PREFIX_COUNTS = {}
def _pointer_count_minimums_for_case(sample, case):
    return {"v1": 40} if case == "scale" else {}
def _integer_scalar_default_value(case, name, kind, sample):
    return 1
def _default_eps_for_cpp_type(kind):
    return {"half": 1e-2, "float": 1e-4}[kind]
def _default_bf16_max_ulp_for_cpp_type(kind):
    return 1
"""
GOLDEN = """\
import re
import numpy as np
text = open("main.cpp").read()
count = {n: int(c) for n, c in re.findall(r"elemCount_(v\\d) = (\\d+);", text)}
assert "sizeof(float)" in text and open("outputs.txt").read().split() == ["v2"]
times = int(re.search(r"int32_t v3 = (\\d+);", text)[1])
x = np.arange(count["v1"], dtype=np.float32)
x.tofile("v1.bin")
np.zeros(count["v2"], np.float32).tofile("v2.bin")
golden = np.zeros(count["v2"], np.float32)
golden[:32] = x[:32] * times * FACTOR
golden.tofile("golden_v2.bin")
"""
TILE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=1, cols=32, v_row=1, v_col=32, blayout=row_major,"
    " slayout=none_box, fractal=512, pad=0>"
)
VIEW = "!pto.partition_tensor_view<1x32xf32>"
SCALE = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @scale(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: i32)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %at = arith.constant 0 : i64
    %k = arith.sitofp %n : i32 to f32
    %xv = pto.make_tensor_view %x, shape = [%c1, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<?x?xf32>
    %yv = pto.make_tensor_view %y, shape = [%c1, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<?x?xf32>
    %a = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c32]
      : !pto.tensor_view<?x?xf32> -> {VIEW}
    %b = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c32]
      : !pto.tensor_view<?x?xf32> -> {VIEW}
    %t = pto.alloc_tile addr = %at : {TILE}
    pto.tload ins(%a : {VIEW}) outs(%t : {TILE})
    pto.tmuls ins(%t, %k : {TILE}, f32) outs(%t : {TILE})
    pto.tstore ins(%t : {TILE}) outs(%b : {VIEW})
    return
  }}
}}
"""
PUSH = """
module attributes {pto.target_arch = "a5"} {
  func.func @push(%x: !pto.ptr<i32>, %rank: i32, %table: !pto.ptr<i64>)
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %r = arith.index_cast %rank : i32 to index
    %peer = arith.subi %c1, %r : index
    %d = func.call @distance(%table, %peer) : (!pto.ptr<i64>, index) -> index
    %p = pto.addptr %x, %d : !pto.ptr<i32> -> !pto.ptr<i32>
    %v = pto.make_tensor_view %p, shape = [%c1, %c1], strides = [%c1, %c1]
      : !pto.tensor_view<?x?xi32>
    %s = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c1]
      : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<1x1xi32>
    pto.comm.tnotify(%s, %one : !pto.partition_tensor_view<1x1xi32>, i32)
      {notifyOp = #pto<notify_op atomic_add>}
    return
  }
  func.func private @distance(%table: !pto.ptr<i64>, %peer: index) -> index {
    %two = arith.constant 2 : index
    %four = arith.constant 4 : index
    %size = arith.constant 4 : i64
    %rank = pto.load_scalar %table[%two] : !pto.ptr<i64> -> i64
    %r = arith.index_cast %rank : i64 to index
    %at = arith.addi %four, %r : index
    %to = arith.addi %four, %peer : index
    %here = pto.load_scalar %table[%at] : !pto.ptr<i64> -> i64
    %there = pto.load_scalar %table[%to] : !pto.ptr<i64> -> i64
    %bytes = arith.subi %there, %here : i64
    %n = arith.divsi %bytes, %size : i64
    %i = arith.index_cast %n : i64 to index
    return %i : index
  }
}
"""
DISTANCE = PUSH[PUSH.index("  func.func private") :]
ROW = VIEW
WORD = "!pto.partition_tensor_view<1x1xi32>"
# Each of two ranks writes its row of both arrays, tells the other, and adds up what it was told of.
MEET = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @meet(%x: !pto.ptr<f32>, %s: !pto.ptr<i32>, %y: !pto.ptr<f32>, %rank: i32,
      %xs: !pto.ptr<i64>, %ss: !pto.ptr<i64>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1 : i32
    %at = arith.constant 0 : i64
    %bt = arith.constant 128 : i64
    %r = arith.index_cast %rank : i32 to index
    %f = arith.sitofp %rank : i32 to f32
    %t = pto.alloc_tile addr = %at : {TILE}
    %u = pto.alloc_tile addr = %bt : {TILE}
    pto.texpands ins(%f : f32) outs(%t : {TILE})
    scf.for %peer = %c0 to %c2 step %c1 {{
      %d = func.call @distance(%xs, %peer) : (!pto.ptr<i64>, index) -> index
      %p = pto.addptr %x, %d : !pto.ptr<f32> -> !pto.ptr<f32>
      %v = pto.make_tensor_view %p, shape = [%c2, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<?x?xf32>
      %w = pto.partition_view %v, offsets = [%r, %c0], sizes = [%c1, %c32]
        : !pto.tensor_view<?x?xf32> -> {ROW}
      pto.tstore ins(%t : {TILE}) outs(%w : {ROW})
      %other = arith.cmpi ne, %peer, %r : index
      scf.if %other {{
        %e = func.call @distance(%ss, %peer) : (!pto.ptr<i64>, index) -> index
        %q = pto.addptr %s, %e : !pto.ptr<i32> -> !pto.ptr<i32>
        %sv = pto.make_tensor_view %q, shape = [%c2, %c1], strides = [%c1, %c1]
          : !pto.tensor_view<?x?xi32>
        %sw = pto.partition_view %sv, offsets = [%r, %c0], sizes = [%c1, %c1]
          : !pto.tensor_view<?x?xi32> -> {WORD}
        pto.barrier <PIPE_ALL>
        pto.comm.tnotify(%sw, %one : {WORD}, i32) {{notifyOp = #pto<notify_op atomic_add>}}
      }}
    }}
    %ov = pto.make_tensor_view %s, shape = [%c2, %c1], strides = [%c1, %c1]
      : !pto.tensor_view<?x?xi32>
    %xv = pto.make_tensor_view %x, shape = [%c2, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<?x?xf32>
    %yv = pto.make_tensor_view %y, shape = [%c1, %c32], strides = [%c32, %c1]
      : !pto.tensor_view<?x?xf32>
    %yw = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c32]
      : !pto.tensor_view<?x?xf32> -> {ROW}
    scf.for %from = %c0 to %c2 step %c1 {{
      %other = arith.cmpi ne, %from, %r : index
      scf.if %other {{
        %ow = pto.partition_view %ov, offsets = [%from, %c0], sizes = [%c1, %c1]
          : !pto.tensor_view<?x?xi32> -> {WORD}
        pto.comm.twait(%ow, %one : {WORD}, i32) {{cmp = #pto<wait_cmp ge>}}
      }}
      %xw = pto.partition_view %xv, offsets = [%from, %c0], sizes = [%c1, %c32]
        : !pto.tensor_view<?x?xf32> -> {ROW}
      pto.tload ins(%xw : {ROW}) outs(%u : {TILE})
      pto.tadd ins(%t, %u : {TILE}, {TILE}) outs(%t : {TILE})
    }}
    pto.tstore ins(%t : {TILE}) outs(%yw : {ROW})
    return
  }}
{DISTANCE}"""
# Upstream sets nothing for these: a divisor that an array holds, a view that needs more than 128
# columns, and a maximum of two columns and eight, which only the manual's edition knows.
DIVIDE = """
module attributes {pto.target_arch = "a5"} {
  func.func @divide(%x: !pto.ptr<i32>, %y: !pto.ptr<i32>)
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c0 = arith.constant 0 : index
    %n = arith.constant 7 : i32
    %d = pto.load_scalar %x[%c0] : !pto.ptr<i32> -> i32
    %q = arith.remsi %n, %d : i32
    pto.store_scalar %q, %y[%c0] : !pto.ptr<i32>, i32
    return
  }
}
"""
WIDE = (
    SCALE.replace("@scale", "@wide")
    .replace("%n: i32", "%n: i32, %cols: index")
    .replace("%x, shape = [%c1, %c32]", "%x, shape = [%c1, %cols]")
    .replace("%xv, offsets = [%c0, %c0]", "%xv, offsets = [%c0, %far]")
    .replace("%at =", "%far = arith.constant 224 : index\n    %at =")
)
PART = TILE.replace("cols=32, v_row=1, v_col=32", "cols=8, v_row=?, v_col=?")
REGIONS = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @regions() attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %one = arith.constant 1.0 : f32
    %at = arith.constant 0 : i64
    %bt = arith.constant 32 : i64
    %a = pto.alloc_tile addr = %at valid_row = %c1 valid_col = %c8 : {PART}
    %b = pto.alloc_tile addr = %bt valid_row = %c1 valid_col = %c2 : {PART}
    pto.texpands ins(%one : f32) outs(%a : {PART})
    pto.texpands ins(%one : f32) outs(%b : {PART})
    pto.tmax ins(%a, %b : {PART}, {PART}) outs(%a : {PART})
    return
  }}
}}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    model = tmp_path / "test" / "samples" / "Tiny"
    (model / "kernels" / "aiv").mkdir(parents=True)
    scripts = tmp_path / "test" / "npu_validation" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "generate_testcase.py").write_text(RULES)
    (model / "kernels" / "scale.pto").write_text(SCALE)
    (model / "scale_golden.py").write_text(GOLDEN.replace("FACTOR", "1"))
    (model / "kernels" / "aiv" / "plain.pto").write_text(SCALE)
    (model / "kernels" / "aiv" / "push.pto").write_text(PUSH)
    return tmp_path


def results(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict]:
    main(["suite", "models", str(path), "-j", "1", "--json", *words])
    found = json.loads(capsys.readouterr().out)
    return {case["name"].rpartition("/")[2]: case for case in found["cases"]}


def test_goldens_judge_where_there_are_some_and_engines_agree(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    found = results(checkout, capsys)
    assert {n: (c["status"], c["outcome"]) for n, c in found.items()} == {
        "scale": ("passed", "golden"),
        "plain": ("passed", "engines"),
        "push": ("passed", "engines"),
    }


def test_a_golden_that_says_otherwise_fails_the_kernel(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    script = checkout / "test" / "samples" / "Tiny" / "scale_golden.py"
    script.write_text(GOLDEN.replace("FACTOR", "2"))
    found = results(checkout, capsys, "-k", "scale")["scale"]
    assert (found["status"], found["outcome"]) == ("failed", "compare")
    assert found["difference"]["differing"] == 31  # 0 is 0 however often
    assert found["difference"]["got"] == "3.0"


def test_a_broken_script_is_told_and_the_others_run(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    (checkout / "test" / "samples" / "Tiny" / "scale_golden.py").write_text("raise ValueError(7)")
    found = results(checkout, capsys, "-k", "scale or plain")
    assert found["scale"]["status"] == "not run"
    assert found["scale"]["findings"][0]["code"] == "PTO-U065"
    assert found["plain"]["status"] == "passed"


def test_sanitized_kernels_have_their_flags_inserted(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    found = results(checkout, capsys, "--sanitize")
    assert {c["status"] for c in found.values()} == {"passed"}


def test_what_upstream_leaves_open_is_tried_until_it_fits(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    kernels = checkout / "test" / "samples" / "Tiny" / "kernels"
    for name, text in {"divide": DIVIDE, "wide": WIDE, "regions": REGIONS}.items():
        (kernels / f"{name}.pto").write_text(text)
    found = results(checkout, capsys, "-k", "divide or wide or regions")
    assert {c["status"] for c in found.values()} == {"passed"}
    assert ["a5 manual" in found[n]["target"] for n in ("divide", "wide", "regions")] == [0, 0, 1]


def test_a_kernel_that_never_fits_says_what_the_first_try_did(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    kernels = checkout / "test" / "samples" / "Tiny" / "kernels"
    zero = DIVIDE.replace("arith.remsi %n, %d", "arith.remsi %n, %z")
    zero = zero.replace("%n = ", "%z = arith.constant 0 : i32\n    %n = ")
    (kernels / "zero.pto").write_text(zero)
    found = results(checkout, capsys, "-k", "zero")["zero"]
    assert (found["status"], found["findings"][0]["code"]) == ("failed", "PTO-S132")


def test_ranks_know_who_they_are_and_what_the_others_told_them(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    kernels = checkout / "test" / "samples" / "Tiny" / "kernels"
    (kernels / "meet.pto").write_text(MEET)
    waits = MEET.replace("pto.comm.twait(%ow, %one : ", "pto.comm.twait(%ow, %none : ")
    waits = waits.replace("%one = ", "%none = arith.constant 0 : i32\n    %one = ")
    (kernels / "hasty.pto").write_text(waits)  # waits for what is there from the start
    found = results(checkout, capsys, "-k", "meet or hasty", "--sanitize")
    assert (found["meet"]["status"], found["meet"]["findings"]) == ("passed", [])
    assert {f["code"] for f in found["hasty"]["findings"]} == {"PTO-R034", "PTO-R035"}


def test_a_folder_without_models_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["suite", "models", str(tmp_path)]) == 2
    assert "PTO-U060" in capsys.readouterr().err
