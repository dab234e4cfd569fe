"""Flags, events and semaphores in whole small programs: who waits, who goes on, who never can.

What a program did is told by the numbers its agents store, in an order worked out by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch

ARCH = {"a5": "a5", "a2a3": "a3"}


def program(body: str, arch: str, params: str = "%out: !pto.ptr<i32>") -> str:
    return (
        f'module attributes {{pto.target_arch = "{ARCH[arch]}"}} {{\n'
        f"func.func @k({params}) attributes {{pto.kernel}} {{\n{body}\nreturn\n}}\n}}"
    )


def run(
    body: str, arch: str = "a5", *, blocks: int = 1, check: bool = True, engine: str = "reference"
) -> list[int]:
    out = np.zeros(8, np.int32)
    launch(parse(program(body, arch)), args=[out], blocks=blocks, check=check, engine=engine)
    return out.tolist()


def finding(body: str, arch: str = "a5") -> Diagnostic:
    """What the run itself finds: the verifier, which sees some of these, is not asked."""
    with pytest.raises(PtoError) as caught:
        run(body, arch, check=False)
    return caught.value.diagnostics[0]


def store(value: int, at: int) -> str:
    """Lines that store a number; names are made from it, so use each pair once."""
    name = f"{value}_{at}"
    return (
        f"%v{name} = arith.constant {value} : i32\n%i{name} = arith.constant {at} : index\n"
        f"pto.store_scalar %v{name}, %out[%i{name}] : !pto.ptr<i32>, i32\n"
    )


def copy(source: int, target: int, tag: str) -> str:
    """Lines that read one element and store it elsewhere, plus one."""
    return (
        f"%f{tag} = arith.constant {source} : index\n%t{tag} = arith.constant {target} : index\n"
        f"%x{tag} = pto.load_scalar %out[%f{tag}] : !pto.ptr<i32> -> i32\n"
        f"%o{tag} = arith.constant 1 : i32\n%y{tag} = arith.addi %x{tag}, %o{tag} : i32\n"
        f"pto.store_scalar %y{tag}, %out[%t{tag}] : !pto.ptr<i32>, i32\n"
    )


# ---- flags of one agent

SET = 'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID{}"]\n'
WAIT = 'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID{}"]\n'


def test_a_flag_that_is_set_lets_its_wait_pass() -> None:
    assert run(SET.format(0) + WAIT.format(0) + store(5, 0))[0] == 5


def test_flags_of_other_ids_and_pipes_are_others() -> None:
    found = finding(SET.format(0) + WAIT.format(1))
    assert found.code == "PTO-D111"
    assert "[MTE2, V, 1]" in found.message
    found = finding(
        'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]\n'
        'pto.wait_flag["PIPE_V", "PIPE_MTE2", "EVENT_ID0"]'
    )
    assert "[V, MTE2, 0]" in found.message


def test_a_wait_consumes_its_flag() -> None:
    assert finding(SET.format(0) + WAIT.format(0) * 2).code == "PTO-D111"
    assert run(SET.format(0) * 2 + WAIT.format(0) * 2 + store(1, 0))[0] == 1


def test_the_finding_stands_at_the_wait() -> None:
    found = finding(store(1, 0) + WAIT.format(3))
    assert found.loc is not None and found.loc.line == 6


def test_an_id_chosen_at_run_time_names_the_same_flag_as_a_written_one() -> None:
    lines = """
    %c2 = arith.constant 2 : index
    %ids = pto.declare_eventid_array -> !pto.eventid_array<4>
    pto.eventid_array_set %ids[%c2], %c2 : !pto.eventid_array<4>
    %id = pto.eventid_array_get %ids[%c2] : !pto.eventid_array<4>
    pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %id]
    """
    assert run(lines + WAIT.format(2) + store(7, 0))[0] == 7
    assert finding(lines + WAIT.format(3)).code == "PTO-D111"


@pytest.mark.parametrize("number", [-1, 8])
def test_an_id_that_no_profile_has_is_found_when_it_is_used(number: int) -> None:
    """8 event ids for a pair of pipes; a number the verifier cannot know."""
    text = program(
        "%id = arith.index_cast %n : i32 to index\npto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %id]",
        "a5",
        "%n: i32",
    )
    with pytest.raises(PtoError, match=f"event id {number} is not below 8") as caught:
        launch(parse(text), args=[number])
    assert caught.value.diagnostics[0].code == "PTO-D112"


def test_an_index_outside_an_array_of_ids_is_a_finding() -> None:
    text = program(
        "%i = arith.index_cast %n : i32 to index\n"
        "%ids = pto.declare_eventid_array -> !pto.eventid_array<2>\n"
        "%id = pto.eventid_array_get %ids[%i] : !pto.eventid_array<2>",
        "a5",
        "%n: i32",
    )
    with pytest.raises(PtoError, match="index 2 is outside the array of 2 event ids") as caught:
        launch(parse(text), args=[2])
    assert caught.value.diagnostics[0].code == "PTO-S133"


def test_events_between_kinds_of_operation() -> None:
    record = "pto.record_event[#pto.sync_op_type<TLOAD>, #pto.sync_op_type<TVEC>, <EVENT_ID1>]\n"
    wait = "pto.wait_event[#pto.sync_op_type<TLOAD>, #pto.sync_op_type<TVEC>, <EVENT_ID1>]\n"
    assert run(record + wait + store(4, 0))[0] == 4
    assert finding(wait).code == "PTO-D111"
    assert finding(record + wait + wait).code == "PTO-D111"


def test_a_flag_set_in_one_round_of_a_loop_is_waited_for_in_the_next() -> None:
    lines = (
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%c3 = arith.constant 3 : index\n"
        + SET.format(0)
        + "scf.for %i = %c0 to %c3 step %c1 {\n"
        + WAIT.format(0)
        + SET.format(0)
        + "}\n"
        + WAIT.format(0)
        + store(3, 0)
    )
    assert run(lines)[0] == 3


# ---- semaphores of a5: one sub-block each


def sections(cube: str, vector: str) -> str:
    return f"pto.section.cube {{\n{cube}}}\npto.section.vector {{\n{vector}}}"


def only(sub: int, lines: str) -> str:
    """Lines for one vector sub-block."""
    return (
        f"%side{sub} = pto.get_subblock_idx\n%this{sub} = arith.constant {sub} : i64\n"
        f"%mine{sub} = arith.cmpi eq, %side{sub}, %this{sub} : i64\n"
        f"scf.if %mine{sub} {{\n{lines}}}\n"
    )


def test_a5_the_cube_reaches_the_second_sub_block_with_16_more() -> None:
    cube = store(10, 0) + "pto.sync.set <PIPE_FIX>, 1\npto.sync.set <PIPE_FIX>, 17\n"
    vector = "pto.sync.wait <PIPE_V>, 1\n" + only(0, copy(0, 1, "a")) + only(1, copy(0, 2, "b"))
    assert run(sections(cube, vector))[:3] == [10, 11, 11]


def test_a5_a_signal_for_the_first_sub_block_leaves_the_second_waiting() -> None:
    found = finding(sections("pto.sync.set <PIPE_FIX>, 1\n", "pto.sync.wait <PIPE_V>, 1\n"))
    assert found.code == "PTO-D110"
    assert [note.message for note in found.notes] == [
        "block 0 vector 1 waits at 'pto.sync.wait' op for signal 1, which was never sent",
        "block 0 cube has finished",
        "block 0 vector 0 has finished",
    ]


def test_a5_the_cube_hears_each_sub_block_under_its_own_id() -> None:
    vector = only(0, store(20, 0)) + only(1, store(30, 1)) + "pto.sync.set <PIPE_MTE3>, 3\n"
    cube = (
        "pto.sync.wait <PIPE_FIX>, 3\n"
        + copy(0, 2, "a")
        + "pto.sync.wait <PIPE_FIX>, 19\n"
        + copy(1, 3, "b")
    )
    assert run(sections(cube, vector))[:4] == [20, 30, 21, 31]


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a5_the_second_sub_block_may_use_the_id_that_the_cube_does(engine: str) -> None:
    cube = (
        store(10, 0) + "pto.set_intra_block <PIPE_FIX>, 17\npto.wait_intra_block <PIPE_FIX>, 18\n"
    )
    told = copy(0, 1, "b") + "pto.set_intra_block <PIPE_MTE3>, 18\n"
    vector = only(1, "pto.wait_intra_block <PIPE_V>, 17\n" + told)
    assert run(sections(cube + copy(1, 2, "c"), vector), engine=engine)[:3] == [10, 11, 12]


def test_a5_the_first_sub_block_does_not_hear_the_second() -> None:
    cube = "pto.set_intra_block <PIPE_FIX>, 17\n"
    found = finding(sections(cube, only(0, "pto.wait_intra_block <PIPE_V>, 17\n")))
    assert found.code == "PTO-D110"


def test_a5_semaphores_by_operand_are_the_same_semaphores() -> None:
    ids = "%p = arith.constant 0 : i64\n%s = arith.constant {} : i64\n"
    cube = ids.format(20) + store(6, 0) + "pto.set_intra_block %p, %s : i64, i64\n"
    vector = only(1, "pto.sync.wait <PIPE_V>, 4\n" + copy(0, 1, "a"))
    assert run(sections(cube, vector))[:2] == [6, 7]


def test_a_signal_counts() -> None:
    cube = "pto.sync.set <PIPE_FIX>, 0\n" * 3
    vector = only(0, "pto.sync.wait <PIPE_V>, 0\n" * 3 + store(9, 0))
    assert run(sections(cube, vector))[0] == 9
    found = finding(sections(cube, only(0, "pto.sync.wait <PIPE_V>, 0\n" * 4)))
    assert found.code == "PTO-D110"


def test_sides_hand_a_value_to_and_fro_in_a_loop() -> None:
    """Three rounds: the cube adds one, then the vector side adds one."""
    loop = (
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%c3 = arith.constant 3 : index\nscf.for %i = %c0 to %c3 step %c1 {\n"
    )
    cube = loop + copy(0, 0, "a") + "pto.sync.set <PIPE_FIX>, 0\npto.sync.wait <PIPE_FIX>, 1\n}\n"
    body = (
        loop + "pto.sync.wait <PIPE_V>, 0\n" + copy(0, 0, "b") + "pto.sync.set <PIPE_MTE3>, 1\n}\n"
    )
    assert run(sections(cube, only(0, body)))[0] == 6


# ---- semaphores of a2a3: both sub-blocks at once


def test_a2a3_one_signal_of_the_cube_reaches_both_sub_blocks() -> None:
    cube = store(10, 0) + "pto.sync.set <PIPE_FIX>, 1 {ffts_mode = 2 : i32}\n"
    vector = "pto.sync.wait <PIPE_V>, 1\n" + only(0, copy(0, 1, "a")) + only(1, copy(0, 2, "b"))
    assert run(sections(cube, vector), "a2a3")[:3] == [10, 11, 11]


def test_a2a3_the_cube_hears_both_sub_blocks_as_one() -> None:
    vector = only(0, store(20, 0)) + only(1, store(30, 1)) + "pto.sync.set <PIPE_MTE3>, 3\n"
    cube = "pto.sync.wait <PIPE_FIX>, 3\n" + copy(0, 2, "a") + copy(1, 3, "b")
    assert run(sections(cube, vector), "a2a3")[:4] == [20, 30, 21, 31]


def test_a2a3_one_sub_block_alone_is_not_enough_for_the_cube() -> None:
    vector = only(0, "pto.sync.set <PIPE_MTE3>, 3\n")
    found = finding(sections("pto.sync.wait <PIPE_FIX>, 3\n", vector), "a2a3")
    assert found.code == "PTO-D110"
    assert "block 0 cube waits at 'pto.sync.wait' op for signal 3" in found.notes[0].message


def test_a2a3_names_of_the_micro_instructions() -> None:
    ids = "%p = arith.constant 0 : i64\n%s = arith.constant 2 : i64\n"
    cube = ids + store(6, 0) + "pto.set_cross_core %p, %s : i64, i64\n"
    vector = ids + "pto.wait_flag_dev %s : i64\n" + only(1, copy(0, 1, "a"))
    assert run(sections(cube, vector), "a2a3")[:2] == [6, 7]


def test_a2a3_a_sixteenth_signal_unheard_overflows_its_counter() -> None:
    cube = "pto.sync.set <PIPE_FIX>, 1\n"
    wait = "pto.sync.wait <PIPE_V>, 1\n"
    assert run(sections(cube * 15, wait * 15 + only(0, store(2, 0))), "a2a3")[0] == 2
    found = finding(sections(cube * 16, wait * 16), "a2a3")
    assert found.code == "PTO-D113"
    assert found.message == "signal 1 is sent more than 15 times without a wait"


def test_a2a3_all_blocks_meet() -> None:
    """Mode 0: what every block stored before the meeting, every block reads after it."""
    body = """
    pto.section.vector {
      %c1 = arith.constant 1 : i32
      %c4 = arith.constant 4 : index
      %c0 = arith.constant 0 : index
      %step = arith.constant 1 : index
      %n = arith.constant 3 : index
      %zero = arith.constant 0 : i32
      %b = pto.get_block_idx
      %at = arith.index_cast %b : i64 to index
      pto.store_scalar %c1, %out[%at] : !pto.ptr<i32>, i32
      pto.sync.set <PIPE_MTE3>, 5 {ffts_mode = 0 : i32}
      pto.sync.wait <PIPE_V>, 5
      %sum = scf.for %i = %c0 to %n step %step iter_args(%s = %zero) -> (i32) {
        %x = pto.load_scalar %out[%i] : !pto.ptr<i32> -> i32
        %t = arith.addi %s, %x : i32
        scf.yield %t : i32
      }
      %to = arith.addi %at, %c4 : index
      pto.store_scalar %sum, %out[%to] : !pto.ptr<i32>, i32
    }
    """
    assert run(body, "a2a3", blocks=3) == [1, 1, 1, 0, 3, 3, 3, 0]


# ---- nobody can go on


def test_two_sides_that_wait_for_each_other_are_named_with_their_places() -> None:
    cube = "pto.sync.wait <PIPE_FIX>, 1\npto.sync.set <PIPE_FIX>, 0\n"
    vector = only(0, "pto.sync.wait <PIPE_V>, 0\npto.sync.set <PIPE_MTE3>, 1\n")
    found = finding(sections(cube, vector))
    assert found.code == "PTO-D110"
    assert found.message == "deadlock: neither of two agents can proceed"
    said = [(note.message, note.loc.line if note.loc else 0) for note in found.notes]
    assert said == [
        ("block 0 cube waits at 'pto.sync.wait' op for signal 1, which was never sent", 4),
        ("block 0 vector 0 waits at 'pto.sync.wait' op for signal 0, which was never sent", 12),
        ("block 0 vector 1 has finished", 0),
    ]


def test_what_was_stored_before_a_deadlock_stays_and_nothing_else() -> None:
    out = np.full(4, -1, np.int32)
    body = sections(store(5, 0) + "pto.sync.wait <PIPE_FIX>, 1\n" + store(6, 1), store(7, 2))
    with pytest.raises(PtoError, match="the only agent left cannot proceed"):
        launch(parse(program(body, "a5")), args=[out])
    assert out.tolist() == [5, -1, 7, -1]
