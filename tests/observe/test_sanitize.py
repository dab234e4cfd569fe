"""What a report says, what is legal although it looks wrong, and the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.cli.main import main
from pto.ir.copied import same
from pto.ir.text.parser import parse
from pto.observe import Sanitizer, Verdict, sanitize
from pto.run.launch.host import launch
from pto.target.profile import profile

PROGRAMS = Path(__file__).parent / "programs"
_TYPES = """
!p = !pto.ptr<f32, ub>
!g = !pto.ptr<f32, gm>
!v = !pto.vreg<64xf32>
!m = !pto.mask<b32>
"""
_HEAD = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !g, %y: !g) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c40 = arith.constant 40 : index
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !p
    %b = pto.castptr %bytes : i64 -> !p
"""
LOAD = (
    "pto.mte_gm_ub %x, %a, %z, %bytes nburst(%n, %bytes, %bytes) : !g, !p, i64, i64, i64, i64, i64"
)
STORE = "pto.mte_ub_gm %a, %y, %bytes nburst(%n, %bytes, %bytes) : !p, !g, i64, i64, i64, i64"


def flag(word: str, src: str, dst: str, number: int = 0) -> str:
    return f'pto.{word}_flag["PIPE_{src}", "PIPE_{dst}", "EVENT_ID{number}"]'


def verdict_on(*lines: str, blocks: int = 1) -> Verdict:
    text = _TYPES + _HEAD + "\n".join(lines) + "\nreturn\n}\n}\n"
    args = [np.arange(128, dtype=np.float32), np.zeros(128, np.float32)]
    return sanitize(parse(text), args=args, blocks=blocks, check=False)


def codes(verdict: Verdict) -> list[str]:
    return [d.code for d in verdict.findings]


def test_a_verdict_is_true_without_errors_and_clean_without_warnings() -> None:
    ordered = (flag("set", "MTE2", "MTE3"), flag("wait", "MTE2", "MTE3"))
    again = (flag("set", "MTE2", "MTE3", 1), flag("wait", "MTE2", "MTE3", 1))
    right = verdict_on(LOAD, *ordered, STORE)
    redundant = verdict_on(LOAD, *ordered, *again, STORE)
    racy = verdict_on(LOAD, flag("set", "MTE2", "V"), flag("wait", "MTE2", "V"), STORE)
    assert (bool(right), right.is_clean, len(right)) == (True, True, 0)
    assert (bool(redundant), redundant.is_clean) == (True, False)
    assert {d.severity for d in redundant} == {"warning"}
    assert not racy and not racy.is_clean
    assert "no findings" in str(right) and "PTO-R001" in str(racy)


def test_a_wait_may_stand_before_its_set_while_the_set_is_on_its_way() -> None:
    verdict = verdict_on(flag("wait", "MTE2", "MTE3"), STORE, LOAD, flag("set", "MTE2", "MTE3"))
    assert "PTO-D201" not in codes(verdict)
    assert not any(code.startswith("PTO-R") for code in codes(verdict))


def test_a_scalar_unit_that_waits_issues_nothing_behind_its_wait() -> None:
    verdict = verdict_on(flag("wait", "MTE2", "S"), LOAD, flag("set", "MTE2", "S"))
    (found,) = verdict.findings
    assert found.code == "PTO-D200"
    assert "its set is not issued" in found.notes[0].message


def test_a_full_queue_holds_the_set_that_would_empty_it() -> None:
    depth = profile("a5").sync.queue_depth
    few, many = (
        verdict_on(
            flag("wait", "V", "MTE2"),
            *[LOAD + "\npto.barrier #pto.pipe<PIPE_MTE2>"] * count,
            flag("set", "V", "MTE2"),
        )
        for count in (depth // 2 - 1, depth)
    )
    assert not any(code.startswith("PTO-D") for code in codes(few))
    assert codes(many) == ["PTO-D200"]


def test_order_goes_through_a_third_pipe() -> None:
    verdict = verdict_on(
        LOAD,
        flag("set", "MTE2", "V"),
        flag("wait", "MTE2", "V"),
        flag("set", "V", "MTE3"),
        flag("wait", "V", "MTE3"),
        STORE,
    )
    assert codes(verdict) == []


def test_a_barrier_of_all_pipes_orders_everything() -> None:
    assert codes(verdict_on(LOAD, "pto.barrier #pto.pipe<PIPE_ALL>", STORE)) == []
    assert codes(verdict_on(LOAD, "pto.barrier #pto.pipe<PIPE_V>", STORE)) == [
        "PTO-R001",
        "PTO-R015",
    ]


def test_two_transfers_that_touch_other_bytes_need_no_order() -> None:
    other = STORE.replace("%a", "%b")
    assert "PTO-R001" not in codes(verdict_on(LOAD, other))


def test_sums_of_many_blocks_by_atomic_stores_are_no_race() -> None:
    head = [LOAD, flag("set", "MTE2", "MTE3"), flag("wait", "MTE2", "MTE3")]
    assert codes(verdict_on(*head, STORE, blocks=3)) == ["PTO-R023"]
    assert codes(verdict_on(*head, "pto.set_atomic_s32", STORE, blocks=3)) == []


def test_a_report_names_both_accesses_the_missing_order_and_how_many_are_alike() -> None:
    verdict = verdict_on(
        "scf.for %i = %c0 to %c40 step %c1 {",
        LOAD,
        flag("set", "MTE2", "V"),
        flag("wait", "MTE2", "V"),
        STORE,
        "}",
    )
    found = next(d for d in verdict.findings if d.code == "PTO-R001")
    assert found.message == (
        "read-after-write race on UB[0x0000..0x0100): MTE3 may read before MTE2 has written"
    )
    assert [note.message for note in found.notes] == [
        "write: mte_gm_ub #1 on MTE2, block 0 vector, i=0",
        "read: mte_ub_gm #4 on MTE3, block 0 vector, i=0",
        "order: MTE3 has never waited for MTE2",
        "target: a5; 40 alike, i=0..39",
    ]


def test_how_far_a_pipe_has_waited_is_told_with_the_line_of_the_wait() -> None:
    verdict = verdict_on(
        LOAD,
        flag("set", "MTE2", "MTE3"),
        LOAD.replace("%a", "%b"),
        flag("wait", "MTE2", "MTE3"),
        STORE.replace("%a", "%b"),
    )
    (found,) = verdict.findings
    order = next(n.message for n in found.notes if n.message.startswith("order"))
    assert re.fullmatch(
        r"order: MTE3 has waited for MTE2 only up to #1 \(wait_flag\[MTE2, MTE3, 0\], line \d+\)",
        order,
    )


def test_an_observer_can_be_given_to_a_launch() -> None:
    text = _TYPES + _HEAD + LOAD + "\n" + STORE + "\nreturn\n}\n}\n"
    watcher = Sanitizer(profile("a5"))
    out = np.zeros(128, np.float32)
    launch(parse(text), args=[np.ones(128, np.float32), out], check=False, observer=watcher)
    assert [d.code for d in watcher.findings()] == ["PTO-R001"]
    assert out[:64].tolist() == [1.0] * 64


def test_a_masked_load_of_a_tail_is_no_use_of_undefined_data() -> None:
    """64 lanes are loaded, 40 have data, 40 are summed: the rest never matters."""
    assert codes(_tail("%some")) == []
    assert codes(_tail("%all")) == ["PTO-V210"]


def _tail(mask: str) -> Verdict:
    return verdict_on(
        "%k = arith.constant 160 : i64",
        "%l = arith.constant 40 : i32",
        LOAD.replace("%bytes", "%k"),
        flag("set", "MTE2", "V"),
        flag("wait", "MTE2", "V"),
        "pto.vecscope {",
        '%all = pto.pset_b32 "PAT_ALL" : !m',
        "%some, %rest = pto.plt_b32 %l : i32 -> !m, i32",
        "%v = pto.vlds %a[%c0] : !p -> !v",
        f"%w = pto.vcadd %v, {mask} : !v, !m -> !v",
        "pto.vsts %w, %b[%c0], %all : !v, !p, !m",
        "}",
        flag("set", "V", "MTE3"),
        flag("wait", "V", "MTE3"),
        STORE.replace("%a", "%b"),
    )


# ---- fixes


def helps(verdict: Verdict) -> list[str | None]:
    return [d.help and re.sub(r"line \d+", "line", d.help) for d in verdict.findings]


def test_a_fix_is_offered_where_it_was_tried_and_worked() -> None:
    assert helps(verdict_on(LOAD, STORE)) == [
        "set_flag(MTE2, MTE3, 0) after line, wait_flag before line (re-run: 0 races)"
    ]


def test_a_fix_takes_an_id_that_is_free() -> None:
    verdict = verdict_on(flag("set", "MTE2", "MTE3"), flag("wait", "MTE2", "MTE3"), LOAD, STORE)
    assert codes(verdict) == ["PTO-R001", "PTO-R014"]
    help = helps(verdict)[0]
    assert help is not None
    assert help.startswith("set_flag(MTE2, MTE3, 1)")


def test_a_buffer_that_a_loop_reuses_gets_a_flag_back_primed_and_drained() -> None:
    verdict = verdict_on(
        "scf.for %i = %c0 to %c40 step %c1 {",
        LOAD,
        flag("set", "MTE2", "MTE3"),
        flag("wait", "MTE2", "MTE3"),
        STORE,
        "}",
    )
    help = {d.code: d.help for d in verdict.findings}["PTO-R002"] or ""
    assert help.startswith(
        "set_flag(MTE3, MTE2, 0) after line 21, wait_flag before line 18, primed"
    )
    assert help.endswith("(re-run: 0 races)")


def test_looking_for_a_fix_leaves_the_program_as_it_was() -> None:
    text = _TYPES + _HEAD + LOAD + "\n" + STORE + "\nreturn\n}\n}\n"
    module = parse(text)
    args = [np.ones(128, np.float32), np.zeros(128, np.float32)]
    for _ in range(2):
        assert codes(sanitize(module, args=args, check=False)) == ["PTO-R001"]
    assert same(module.op, parse(text).op)


# ---- commands


def run_sanitized(path: Path, *more: str) -> int:
    args = ["--arg", "x=range:256xf32", "--arg", "y=zeros:256xf32"]
    return main(["run", str(path), *args, "--sanitize", *more])


def test_run_says_what_it_assumed_and_ends_well(capsys: Any) -> None:
    assert run_sanitized(PROGRAMS / "double_buffer.pto") == 0
    shown = capsys.readouterr().out
    assert "sanitizer: no findings; the program orders its pipes itself" in shown
    assert "256 of 256 elements changed" in shown


def test_run_fails_on_a_race_and_shows_both_lines(capsys: Any) -> None:
    assert run_sanitized(PROGRAMS / "bad" / "compute_then_store.pto") == 1
    shown = capsys.readouterr().out
    assert "error[PTO-R001]" in shown
    assert "pto.mte_ub_gm %b" in shown
    assert "pto.vsts %w" in shown


def test_findings_come_as_json_and_sarif(capsys: Any) -> None:
    path = PROGRAMS / "bad" / "compute_then_store.pto"
    assert run_sanitized(path, "--format", "json") == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["loc"]["line"]) == ("PTO-R001", 26)
    assert run_sanitized(path, "--format", "sarif") == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["results"][0]["ruleId"] == "PTO-R001"


def test_check_deep_needs_nothing_but_the_program(capsys: Any) -> None:
    assert main(["check", str(PROGRAMS / "bad" / "compute_then_store.pto")]) == 0
    capsys.readouterr()
    assert main(["check", "--deep", str(PROGRAMS / "bad" / "compute_then_store.pto")]) == 1
    assert "PTO-R001" in capsys.readouterr().out
    assert main(["check", "--deep", str(PROGRAMS / "tiles.pto")]) == 0


# ---- where all cores meet

_EXCHANGE = """
!tile = !pto.tile_buf<vec, 1x64xf32>
!all = !pto.tensor_view<?x?xf32>
!view = !pto.partition_tensor_view<1x64xf32>
module attributes {pto.target_arch = "a2a3"} {
  func.func @exchange(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i64
    %a = pto.alloc_tile addr = %zero : !tile
    %from = pto.make_tensor_view %x, shape = [%c2, %c64], strides = [%c64, %c1] : !all
    %to = pto.make_tensor_view %y, shape = [%c2, %c64], strides = [%c64, %c1] : !all
    %block = pto.get_block_idx
    %mine = arith.index_cast %block : i64 to index
    %other = arith.subi %c1, %mine : index
    %own = pto.partition_view %from, offsets = [%mine, %c0], sizes = [%c1, %c64]
      : !all -> !view
    %far = pto.partition_view %from, offsets = [%other, %c0], sizes = [%c1, %c64]
      : !all -> !view
    %out = pto.partition_view %to, offsets = [%mine, %c0], sizes = [%c1, %c64]
      : !all -> !view
    %one = arith.constant 1.0 : f32
    pto.texpands ins(%one : f32) outs(%a : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%a : !tile) outs(%own : !view)
    pto.barrier #pto.pipe<PIPE_ALL>
    MEETING
    pto.tload ins(%far : !view) outs(%a : !tile)
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.tstore ins(%a : !tile) outs(%out : !view)
    return
  }
}
"""


def exchanged(meeting: str) -> Verdict:
    args = [np.zeros(128, np.float32), np.zeros(128, np.float32)]
    text = _EXCHANGE.replace("MEETING", meeting)
    verdict = sanitize(parse(text), args=args, blocks=2, check=False)
    assert args[1].tolist() == ([1.0] * 128 if meeting else args[1].tolist())
    return verdict


def test_blocks_that_meet_between_a_write_and_a_read_are_in_order() -> None:
    assert codes(exchanged("pto.syncall()")) == []


def test_blocks_that_do_not_meet_are_not() -> None:
    assert set(codes(exchanged(""))) & {"PTO-R021", "PTO-R022"}


_TILES_IN_TURN = """
!view = !pto.tensor_view<{rows}x128xf32>
!part = !pto.partition_tensor_view<{rows}x128xf32>
!tile = !pto.tile_buf<vec, {rows}x128xf32>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cn = arith.constant {rows} : index
    %c128 = arith.constant 128 : index
    %v = pto.make_tensor_view %x, shape = [%cn, %c128], strides = [%c128, %c1] : !view
    %w = pto.make_tensor_view %y, shape = [%cn, %c128], strides = [%c128, %c1] : !view
    %in = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%cn, %c128] : !view -> !part
    %out = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%cn, %c128] : !view -> !part
{turns}
    return
  }}
}}
"""
_ONE_TURN = """    %t{n} = pto.alloc_tile : !tile
    pto.tload ins(%in : !part) outs(%t{n} : !tile)
    pto.set_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_MTE3>, #pto.event<EVENT_ID0>]
    pto.wait_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_MTE3>, #pto.event<EVENT_ID0>]
    pto.tstore ins(%t{n} : !tile) outs(%out : !part)
    pto.barrier #pto.pipe<PIPE_MTE3>"""


@pytest.mark.parametrize(
    ("rows", "codes"),
    [(64, set[str]()), (256, {"PTO-R002", "PTO-R006", "PTO-M129"})],
    ids=["room", "no room"],
)
def test_a_program_is_not_blamed_for_the_reuse_of_the_planner(rows: int, codes: set[str]) -> None:
    """Three tiles in turn, each with its own flag: apart they are in order. Three of 128 KB do not
    fit side by side; the third load then overwrites what another load and a store are still at."""
    turns = "\n".join(_ONE_TURN.format(n=n) for n in range(3))
    module = parse(_TILES_IN_TURN.format(rows=rows, turns=turns))
    args = [np.zeros((rows, 128), np.float32), np.zeros((rows, 128), np.float32)]
    assert {d.code for d in sanitize(module, args=args).findings} == codes


_MEETING = """
module attributes {{pto.target_arch = "a2a3", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%count: !pto.ptr<i32>, %used: i32) attributes {{pto.aicore}} {{
    {meeting}
    return
  }}
}}
"""
_HARD = "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>"
_SOFT = (
    "pto.syncall(%count, %used : !pto.ptr<i32>, i32) mode = #pto.sync_all_mode<soft>,"
    " core_type = #pto.sync_core_type<aiv_only>"
)


@pytest.mark.parametrize(
    ("meeting", "blocks", "device", "codes"),
    [
        (_HARD, 24, "910b1", ["PTO-D212"]),  # 910B1: 24 cubes, 48 vector cores
        (_HARD, 96, "910b1", ["PTO-D212"]),
        (_HARD, 48, "910b1", []),
        (_HARD, 24, None, []),
        (_SOFT, 24, "910b1", []),
    ],
    ids=["fewer", "more", "all", "no device", "soft"],
)
def test_a_meeting_of_all_cores_needs_a_block_for_each(
    meeting: str, blocks: int, device: str | None, codes: list[str]
) -> None:
    """Cores without a block never come: pypto#1935."""
    module, args = parse(_MEETING.format(meeting=meeting)), [np.zeros(16, np.int32), blocks]
    found = sanitize(module, args=args, blocks=blocks, device=device).findings
    assert [d.code for d in found] == codes


@pytest.mark.parametrize("second", ["%a, %a", "%b, %b"])
def test_an_operation_in_place_does_not_hide_an_earlier_read(second: str) -> None:
    """The vector pipe of a2a3 keeps no order with itself: what is written may still be read."""
    tile = "!pto.tile_buf<vec, 8x64xf32>"
    text = f"""
    module attributes {{pto.target_arch = "a2a3"}} {{ func.func @k() {{
      %one = arith.constant 1.0 : f32
      %at0 = arith.constant 0 : i64
      %at1 = arith.constant 2048 : i64
      %at2 = arith.constant 4096 : i64
      %a = pto.alloc_tile addr = %at0 : {tile}
      %b = pto.alloc_tile addr = %at1 : {tile}
      %c = pto.alloc_tile addr = %at2 : {tile}
      pto.texpands ins(%one : f32) outs(%a : {tile})
      pto.texpands ins(%one : f32) outs(%b : {tile})
      pto.barrier #pto.pipe<PIPE_V>
      pto.tadds ins(%a, %one : {tile}, f32) outs(%c : {tile})
      pto.tadd ins({second} : {tile}, {tile}) outs(%a : {tile})
      return }} }}"""
    assert codes(sanitize(parse(text), args=[])) == ["PTO-R005"]
