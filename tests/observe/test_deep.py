"""`pto check --deep`: inputs it generates, ways it tries, runs that do not come to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import main
from pto.core.errors import Diagnostic
from pto.ir.text.parser import parse
from pto.observe import deep

_PROGRAM = """
!view = !pto.tensor_view<16x64xf32>
!part = !pto.partition_tensor_view<{rows}x64xf32>
!tile = !pto.tile_buf<vec, {rows}x64xf32>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %n: index, %yes: i1) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %rows = arith.constant {rows} : index
    %add = arith.constant {add} : index
    %at = arith.addi %n, %add : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%rows, %c64] : !view -> !part
    %t = pto.alloc_tile addr = %zero : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    scf.if %yes {{
      {inside}
    }}
    pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%t : !tile) outs(%p : !part)
    return
  }}
}}
"""
_LOAD = "pto.tload ins(%p : !part) outs(%t : !tile)"


def _checked(path: Path, capsys: Any, **parts: Any) -> tuple[int, str, str]:
    path.write_text(_PROGRAM.format(**{"add": 0, "inside": "", "rows": 1, **parts}))
    code = main(["check", "--deep", str(path)])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("rows", [1, 16])
def test_numbers_stay_inside_what_the_program_bounds(rows: int, tmp_path: Path, capsys: Any):
    """16 is no row of 16; where all rows are taken at once, only 0 is."""
    code, out, told = _checked(tmp_path / "k.pto", capsys, rows=rows)
    assert code == 0, out
    assert "2 of 2 runs" in told


def test_conditions_are_tried_both_ways(tmp_path: Path, capsys: Any) -> None:
    """Nobody waits for the load that the condition adds."""
    code, out, _ = _checked(tmp_path / "k.pto", capsys, inside=_LOAD)
    assert code == 1
    assert "PTO-R001" in out


def test_a_run_that_does_not_come_to_its_end_is_no_clean_result(tmp_path: Path, capsys: Any):
    code, out, told = _checked(tmp_path / "k.pto", capsys, rows=16, add=1)
    assert code == 1
    assert "PTO-U233" in out
    assert "n=16" in out
    assert "PTO-M006" in out
    assert "0 of 1 runs" in told


# ---- ways that only some inputs take

_WAYS = """
!view = !pto.tensor_view<64x64xf32>
!part = !pto.partition_tensor_view<?x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32, valid=?x?>
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @kernel(%x: !pto.ptr<f32>, %flag: !pto.ptr<i32>, %n: i32, %m: i32) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i16 = arith.constant 16 : i32
    %i100 = arith.constant 100 : i32
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c64, %c64], strides = [%c64, %c1] : !view
    {rows}
    %at = {at}
    %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%rows, %c64] : !view -> !part
    %t = pto.alloc_tile addr = %zero valid_row = %rows valid_col = %c64 : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    {body}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%t : !tile) outs(%p : !part)
    return
  }}
}}
"""
_SET = "pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]"
_WAIT = "pto.wait_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]"
_ADD = "pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)"
_AFTER = f"{_ADD}\n pto.barrier #pto.pipe<PIPE_V>"
_MEET = "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>"
_BLOCK = "%b = pto.get_block_idx\n %k = arith.index_cast %b : i64 to index\n"
_CHAIN = (
    "scf.for %i = %i0 to %n step %i1 : i32 {\n %later = arith.cmpi sgt, %i, %i0 : i32\n"
    f" scf.if %later {{\n {_WAIT}\n }}\n {_SET}\n }}\n"
)
_PAIRS = {
    # the wait stands in a loop that may not run: PTOAS#533
    "no iteration": (
        "PTO-R001",
        f"{_SET}\n scf.for %i = %i1 to %n step %i1 : i32 {{\n {_WAIT}\n {_AFTER}\n {_SET}\n }}\n"
        f" {_ADD}\n {_WAIT}",
        f"{_SET}\n scf.for %i = %i1 to %n step %i1 : i32 {{\n {_WAIT}\n {_AFTER}\n {_SET}\n }}\n"
        f" {_WAIT}\n {_ADD}",
    ),
    # each iteration but the first takes the flag of the one before; the last flag is left set
    "one iteration": (
        "PTO-D205",
        f"{_CHAIN} %more = arith.cmpi sgt, %n, %i1 : i32\n scf.if %more {{\n {_WAIT}\n }}",
        f"{_CHAIN} %more = arith.cmpi sgt, %n, %i0 : i32\n scf.if %more {{\n {_WAIT}\n }}",
    ),
    "a branch by a number": (
        "PTO-D205",
        f"%more = arith.cmpi sgt, %n, %i0 : i32\n scf.if %more {{\n {_SET}\n }}\n {_WAIT}\n {_ADD}",
        f"%more = arith.cmpi sgt, %n, %i0 : i32\n scf.if %more {{\n {_SET}\n {_WAIT}\n {_ADD}\n }}",
    ),
    "a branch by two numbers": (
        "PTO-D205",
        f"%more = arith.cmpi sle, %n, %m : i32\n scf.if %more {{\n {_SET}\n }}\n {_WAIT}\n {_ADD}",
        f"%more = arith.cmpi sle, %n, %m : i32\n scf.if %more {{\n {_SET}\n {_WAIT}\n {_ADD}\n }}",
    ),
    "a branch by data": (
        "PTO-D205",
        "%a = pto.load_scalar %flag[%c0] : !pto.ptr<i32> -> i32\n"
        f"%more = arith.cmpi eq, %a, %i0 : i32\n scf.if %more {{\n {_SET}\n }}\n {_WAIT}\n {_ADD}",
        "%a = pto.load_scalar %flag[%c0] : !pto.ptr<i32> -> i32\n"
        f"%more = arith.cmpi eq, %a, %i0 : i32\n scf.if %more {{\n {_SET}\n {_WAIT}\n {_ADD}\n }}",
    ),
    # cores that do not come to a meeting
    "a condition on the block": (
        "PTO-D110",
        f"{_BLOCK} %early = arith.cmpi slt, %k, %c3 : index\n scf.if %early {{\n {_MEET}\n }}",
        f"{_BLOCK} %early = arith.cmpi slt, %k, %c3 : index\n scf.if %early {{\n }}\n {_MEET}",
    ),
}
_ROWS = "%rows = arith.addi %c16, %c0 : index"


def _found(body: str, rows: str = _ROWS) -> tuple[Diagnostic, ...]:
    at = "arith.addi %c0, %c0 : index"
    if "%k" in body:  # each block has rows of its own
        block, body = body.split("\n", 2)[:2], body.split("\n", 2)[2]
        at = "arith.muli %k, %c16 : index\n"
        rows = "\n".join((rows, *block))
    text = _WAYS.format(body=body, rows=rows, at=at)
    (looked,) = deep.deep(parse(text), profile=None, device=None)
    assert looked.stopped is None
    return looked.verdict.findings


@pytest.mark.parametrize("name", _PAIRS)
def test_a_way_that_only_some_inputs_take_is_tried(name: str) -> None:
    code, wrong, right = _PAIRS[name]
    found = [d for d in _found(wrong) if d.severity == "error"]
    assert code in {d.code for d in found}
    assert any("inputs: " in note.message for d in found for note in d.notes)
    assert [d for d in _found(right) if d.severity == "error"] == []


_DIFFERENCE = (
    "%less = arith.subi %i16, %n : i32\n {clamp}\n %rows = arith.index_cast {value} : i32 to index"
)
_CLAMPED = _DIFFERENCE.format(clamp="%most = arith.maxsi %less, %i0 : i32", value="%most")
_RAW = _DIFFERENCE.format(clamp="", value="%less")


def test_a_valid_region_below_zero_is_found() -> None:
    """On hardware the transfer hangs: PTOAS#544."""
    (found,) = _found(f"{_SET}\n {_WAIT}\n {_ADD}", _RAW)
    assert (found.code, found.severity) == ("PTO-V001", "warning")
    assert "= -1 where n=17" in found.message


@pytest.mark.parametrize(
    "rows",
    [
        _CLAMPED,
        "%less = arith.subi %n, %m : i32\n %rows = arith.index_cast %less : i32 to index",
        "%rows = arith.index_cast %n : i32 to index",
    ],
    ids=["clamped", "the host relates two arguments", "the host gives the number"],
)
def test_other_valid_regions_are_accepted(rows: str) -> None:
    """An empty one too: the flag is needless only while nothing is loaded."""
    assert _found(f"{_SET}\n {_WAIT}\n {_ADD}", rows) == ()


def test_a_fence_is_needless_only_if_it_is_so_in_every_run() -> None:
    """Without an iteration the barrier has nothing to order."""
    loop = f"scf.for %i = %i0 to %n step %i1 : i32 {{\n {_AFTER}\n }}"
    assert _found(f"{_SET}\n {_WAIT}\n {loop}") == ()
    twice = f"{_SET}\n {_WAIT}\n pto.barrier #pto.pipe<PIPE_V>\n {loop}"
    assert [d.code for d in _found(twice)] == ["PTO-R015"]


def test_undefined_data_of_an_empty_loop_is_no_finding() -> None:
    """A kernel that is asked for no work at all computes nothing."""
    first = f"%first = arith.cmpi eq, %i, %i0 : i32\n scf.if %first {{\n {_SET}\n {_WAIT}\n }}"
    expand = "pto.texpands ins(%one : f32) outs(%u : !tile)"
    body = (
        "%far = arith.constant 8192 : i64\n"
        " %u = pto.alloc_tile addr = %far valid_row = %rows valid_col = %c64 : !tile\n"
        f" scf.for %i = %i0 to %n step %i1 : i32 {{\n {first}\n {expand}\n"
        " pto.barrier #pto.pipe<PIPE_V>\n }\n pto.barrier #pto.pipe<PIPE_ALL>\n"
        " pto.tstore ins(%u : !tile) outs(%p : !part)"
    )
    assert [d.code for d in _found(body) if d.code.startswith("PTO-V")] == []


_SEVERAL = """
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func private @elsewhere(%x: !pto.ptr<f32>)
  func.func @called(%x: !pto.ptr<f32>) {{
    return
  }}
  func.func @good(%x: !pto.ptr<f32>) {{
    func.call @called(%x) : (!pto.ptr<f32>) -> ()
    pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    pto.wait_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    return
  }}
  func.func @other(%x: !pto.ptr<f32>) {{
    pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID0>]
    {wait}
    return
  }}
}}
"""


@pytest.mark.parametrize(("wait", "codes"), [(_WAIT, set[str]()), ("", {"PTO-D202"})])
def test_every_kernel_of_a_module_is_looked_at(wait: str, codes: set[str]) -> None:
    """Those that no other function calls, without a mark."""
    looked = list(deep.deep(parse(_SEVERAL.format(wait=wait)), profile=None, device=None))
    assert len(looked) == 2
    found = [d for each in looked for d in each.verdict.findings if d.severity == "error"]
    assert {d.code for d in found} == codes


def test_watched_runs_beside_the_first_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop runs 16 times in the first trial: others are left out where work is dear."""
    body = f"{_SET}\n {_WAIT}\n scf.for %i = %i0 to %n step %i1 : i32 {{\n {_AFTER}\n }}"
    module = parse(_WAYS.format(body=body, rows=_ROWS, at="arith.addi %c0, %c0 : index"))

    def runs() -> int:
        return next(deep.deep(module, profile=None, device=None)).runs

    assert runs() == 3  # sixteen iterations, none, one
    monkeypatch.setattr(deep, "_WORK", 5)
    assert runs() == 2  # two transfers, a flag and its wait, a barrier: no iteration is cheap


@pytest.mark.parametrize(("rows", "stopped"), [(4, "PTO-U233"), (48, None)])
def test_a_meeting_of_all_cores_is_tried_with_as_many_blocks_as_the_device_has(
    rows: int, stopped: str | None
) -> None:
    """910B1 has 48 vector cores; an array of four parts has nothing for the fifth block."""
    text = _WAYS.format(
        body=f"{_MEET}\n {_SET}\n {_WAIT}\n {_ADD}",
        rows=f"{_ROWS}\n {_BLOCK}",
        at="arith.muli %k, %c16 : index",
    )
    for old, new in (
        ("64x64xf32", f"{16 * rows}x64xf32"),
        ("shape = [%c64,", "shape = [%high,"),
        ("%c0 =", f"%high = arith.constant {16 * rows} : index\n %c0 ="),
    ):
        text = text.replace(old, new)
    (looked,) = deep.deep(parse(text), profile=None, device="910b1")
    assert (looked.stopped.code if looked.stopped else None) == stopped
    assert looked.stopped is None or "48 blocks" in looked.stopped.message
    assert [d for d in looked.verdict.findings if d.severity == "error"] == []


_RANKS = """
!signal = !pto.tensor_view<1xi32>
!word = !pto.partition_tensor_view<1xi32>
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @ring(%here: !pto.ptr<i32>, %ranks: i32) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %less = arith.constant -1 : i32
    %v = pto.make_tensor_view %here, shape = [%c1], strides = [%c1] : !signal
    %p = pto.partition_view %v, offsets = [%c0], sizes = [%c1] : !signal -> !word
    scf.for %i = {first} to %ranks step %one : i32 {{
      pto.comm.twait(%p, %one : !word, i32) {{cmp = #pto<wait_cmp ge>}}
    }}
    return
  }}
}}
"""


@pytest.mark.parametrize(("first", "stopped"), [("%one", None), ("%less", "PTO-U233")])
def test_a_wait_for_another_rank_is_no_deadlock(first: str, stopped: str | None) -> None:
    """One rank runs: with one rank the ring waits for nobody; a kernel that always waits is not
    looked at to its end."""
    (looked,) = deep.deep(parse(_RANKS.format(first=first)), profile=None, device=None)
    assert looked.verdict.findings == ()
    assert (looked.stopped.code if looked.stopped else None) == stopped


def test_an_array_larger_than_all_memory_is_a_finding(tmp_path: Path, capsys: Any):
    path = tmp_path / "huge.pto"
    path.write_text(
        """
!view = !pto.tensor_view<4611686018427387904x64xf32>
!part = !pto.partition_tensor_view<16x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @kernel(%x: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %h = arith.constant 4611686018427387904 : index
    %v = pto.make_tensor_view %x, shape = [%h, %c64], strides = [%c64, %c1] : !view
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %t = pto.alloc_tile : !tile
    pto.tload ins(%p : !part) outs(%t : !tile)
    pto.tstore ins(%t : !tile) outs(%p : !part)
    return
  }
}
"""
    )
    assert main(["check", "--deep", str(path)]) == 1
    assert "PTO-U008" in capsys.readouterr().out


def test_only_a_legal_program_is_proved(tmp_path: Path, capsys: Any):
    path = tmp_path / "nested.pto"
    path.write_text(
        """
module attributes {pto.target_arch = "a5"} {
  func.func @outer() attributes {pto.entry} {
    func.func @inner() {
      return
    }
    return
  }
}
"""
    )
    assert main(["prove", str(path)]) == 1
    shown = capsys.readouterr()
    assert "PTO-S108" in shown.err and "proved" not in shown.out
