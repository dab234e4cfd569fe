"""Event ids and buffer ids in use, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.plan.events import BUFFER, Occupancy, occupancy
from pto.target.profile import profile

_HEAD = """module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
func.func @k(%n: index, %id: index) attributes {pto.aicore} {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
"""  # the next line is line 5


def flag(word: str, src: str, dst: str, number: int) -> str:
    return f'pto.{word}_flag["PIPE_{src}", "PIPE_{dst}", "EVENT_ID{number}"]'


def text(*lines: str) -> str:
    return _HEAD + "\n".join(lines) + "\nreturn\n}\n}\n"


def found(*lines: str) -> Occupancy:
    (function,) = parse(text(*lines)).functions()
    return occupancy(function, profile("a5"))


def rows(events: Occupancy) -> list[tuple[str, int | None, list[tuple[int, int]]]]:
    return [(each.what, each.id, events.lines(each)) for each in events.used]


NESTED = (
    flag("set", "MTE2", "V", 0),
    flag("set", "MTE2", "V", 1),
    flag("wait", "MTE2", "V", 0),
    flag("set", "MTE2", "V", 0),
    flag("wait", "MTE2", "V", 1),
    flag("wait", "MTE2", "V", 0),
)


def test_a_flag_is_in_use_from_its_set_to_its_wait() -> None:
    events = found(*NESTED)
    assert rows(events) == [("MTE2 -> V", 0, [(5, 7), (8, 10)]), ("MTE2 -> V", 1, [(6, 9)])]
    assert events.most("MTE2 -> V") == (2, 6)


def test_a_flag_that_a_loop_hands_on_is_in_use_in_all_of_it_but_between_wait_and_set() -> None:
    """Primed in line 5, taken in 7, set again in 9, taken at the end in 11."""
    first, last = flag("set", "V", "MTE2", 3), flag("wait", "V", "MTE2", 3)
    loop = ["scf.for %i = %c0 to %n step %c1 {", last, "pto.barrier <PIPE_V>", first, "}"]
    assert rows(found(first, *loop, last)) == [("V -> MTE2", 3, [(5, 7), (9, 11)])]
    # without a set before the loop: from its beginning on, and to its end
    assert rows(found(*loop)) == [("V -> MTE2", 3, [(5, 6), (8, 8)])]


def test_an_id_that_a_run_decides_is_not_counted() -> None:
    events = found(
        "pto.set_flag_dyn[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_MTE3>, %id]",
        "pto.wait_flag_dyn[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_MTE3>, %id]",
    )
    assert rows(events) == [("V -> MTE3", None, [(5, 6)])] and events.most("V -> MTE3")[0] == 0


def test_buffer_ids_are_in_use_from_acquire_to_release() -> None:
    events = found(
        'pto.get_buf "PIPE_MTE2", 4, 0',
        'pto.rls_buf "PIPE_MTE2", 4, 0',
        'pto.get_buf "PIPE_V", 4, 0',
        'pto.rls_buf "PIPE_V", 4, 0',
    )
    assert rows(events) == [(BUFFER, 4, [(5, 6), (7, 8)])]
    assert list(events.used[0].by) == ["MTE2", "V"]


ROWMAX = """!tile = !pto.tile_buf<vec, 16x64xf32>
!one = !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
module attributes {pto.target_arch = "a2a3", pto.kernel_kind = #pto.kernel_kind<vector>} {
func.func @k(%src: !tile, %tmp: !tile, %dst: !one) {
pto.trowmax ins(%src, %tmp : !tile, !tile) outs(%dst : !one)
return
}
}
"""


def test_ids_of_an_instruction_itself_are_in_use_there() -> None:
    """trowmax of a2a3 sets flags of id 0 between V and S by itself: decisions_isa.md."""
    (function,) = parse(ROWMAX).functions()
    events = occupancy(function, profile("a2a3"))
    assert {(each.id, *each.by) for each in events.used} == {(0, "trowmax")}
    assert {each.what for each in events.used} == {"V -> S", "S -> V"}
    assert all(events.lines(each) == [(5, 5)] for each in events.used)


def test_pto_plan_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    path.write_text(text(*NESTED))
    assert main(["plan", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "  MTE2 -> V     2 of 8 ids, 2 at once at line 6\n" in shown
    assert "    id 0       lines 5-7, 8-10\n" in shown
    assert main(["plan", str(path), "--format", "json"]) == 0
    (function,) = json.loads(capsys.readouterr().out)["functions"]
    assert {"between": "MTE2 -> V", "id": 1, "lines": [[6, 9]], "by": []} in function["ids"]
