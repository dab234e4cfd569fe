"""Signals between the agents of a core, in compiled code: the same counts, waits and mistakes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError

# The vectors count turns in global memory, each after a signal of the cube, and tell it.
PROGRAM = """
module attributes {{pto.target_arch = "{arch}"}} {{
  func.func @cube(%x: !pto.ptr<i32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {sends} : index
    scf.for %i = %c0 to %n step %c1 {{
      {send}
      {hear}
    }}
    return
  }}
  func.func @vector(%x: !pto.ptr<i32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {turns} : index
    %sub = pto.get_subblock_idx
    %at = arith.index_cast %sub : i64 to index
    %one = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 {{
      pto.sync.wait #pto.pipe<PIPE_MTE2>, 3
      %v = pto.load_scalar %x[%at] : !pto.ptr<i32> -> i32
      %w = arith.addi %v, %one : i32
      pto.store_scalar %w, %x[%at] : !pto.ptr<i32>, i32
      pto.sync.set #pto.pipe<PIPE_MTE3>, 4
    }}
    return
  }}
}}
"""


def program(arch: str, sends: int, turns: int, *, answers: bool = True) -> str:
    offsets = (0, 16) if arch == "a5" else (0,)
    send = "\n".join(f"pto.sync.set #pto.pipe<PIPE_FIX>, {3 + n}" for n in offsets)
    hear = "\n".join(f"pto.sync.wait #pto.pipe<PIPE_FIX>, {4 + n}" for n in offsets)
    hear = hear if answers else ""
    return PROGRAM.format(arch=arch, sends=sends, turns=turns, send=send, hear=hear)


def run(engine: str, text: str, blocks: int = 1) -> tuple[str, list[int], object]:
    x = np.zeros(2, np.int32)
    try:
        report = pto.launch(pto.parse(text), args=[x], engine=engine, blocks=blocks)
    except PtoError as error:
        return str(error.diagnostics), x.tolist(), None
    return "", x.tolist(), report


@pytest.mark.parametrize(("arch", "turns"), [*product(("a5", "a3"), (1, 30))])
def test_agents_take_turns(arch: str, turns: int) -> None:
    said, counts, report = run("jit", program(arch, turns, turns))
    assert (said, counts) == ("", [turns, turns])
    assert not report.left_out  # type: ignore[attr-defined]
    assert run("reference", program(arch, turns, turns))[1] == counts


@pytest.mark.parametrize("arch", ["a5", "a3"])
def test_a_cube_hears_both_vectors_in_every_block(arch: str) -> None:
    """More turns than a counter can count: one that only one vector took down would run over."""
    for engine in ("jit", "reference"):
        assert run(engine, program(arch, 20, 20), blocks=3)[:2] == ("", [60, 60])


@pytest.mark.parametrize("arch", ["a5", "a3"])
def test_who_waits_for_ever_is_told_alike(arch: str) -> None:
    ours, theirs = (run(engine, program(arch, 2, 3))[:2] for engine in ("jit", "reference"))
    assert ours == theirs
    assert "deadlock" in ours[0]


def test_counters_of_four_bits_run_over() -> None:
    text = program("a3", 16, 0, answers=False)
    ours, theirs = (run(engine, text)[:2] for engine in ("jit", "reference"))
    assert ours == theirs
    assert "PTO-D113" in ours[0]


# Each agent counts rounds in a word of its own, and sees in each that all have come so far.
MEETING = """
module attributes {{pto.target_arch = "{arch}"}} {{
  {functions}
}}
"""
AGENT = """
  func.func @{side}(%x: !pto.ptr<i32>, %used: i32) attributes {{pto.kernel_kind = #pto.kernel_kind<{side}>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %n = arith.constant 3 : index
    %one = arith.constant 1 : i32
    %b = pto.get_block_idx
    %block = arith.index_cast %b : i64 to index
    %s = pto.get_subblock_idx
    %sub = arith.index_cast %s : i64 to index
    %first = arith.muli %block, %c4 : index
    %mine = arith.addi %first, %sub : index
    %at = arith.addi %mine, %{skip} : index
    scf.for %i = %c0 to %n step %c1 {{
      %v = pto.load_scalar %x[%c0] : !pto.ptr<i32> -> i32
      %w = arith.addi %v, %one : i32
      pto.store_scalar %w, %x[%c0] : !pto.ptr<i32>, i32
      {meet}
      %seen = pto.load_scalar %x[%c0] : !pto.ptr<i32> -> i32
      %next = arith.addi %at, %c4 : index
      pto.store_scalar %seen, %x[%next] : !pto.ptr<i32>, i32
      {meet}
    }}
    return
  }}
"""  # noqa: E501
MEETINGS = {
    "hard": "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<{}>",
    "soft": "pto.syncall(%x, %used : !pto.ptr<i32>, i32) mode = #pto.sync_all_mode<soft>,"
    " core_type = #pto.sync_core_type<{}>",
}


@pytest.mark.parametrize("mode", MEETINGS)
@pytest.mark.parametrize(
    ("kind", "sides", "agents"),
    [("mix", ("cube", "vector"), 3), ("aiv_only", ("vector",), 1), ("aic_only", ("cube",), 1)],
)
@pytest.mark.usefixtures("python_is_silent")
def test_all_cores_meet_without_python(
    kind: str, sides: tuple[str, ...], agents: int, mode: str
) -> None:
    meet = MEETINGS[mode].format(kind)
    skips = {"cube": "n", "vector": "c0"}  # the cube's words come behind those of both vectors
    parts = [AGENT.format(side=side, skip=skips[side], meet=meet) for side in sides]
    text = MEETING.format(arch="a5", functions="\n".join(parts))
    for engine in ("reference", "jit"):
        x = np.zeros(64, np.int32)
        report = pto.launch(pto.parse(text), args=[x, 3 * agents], engine=engine, blocks=3)
        assert not report.left_out
        places = {"mix": [0, 1, 3], "aiv_only": [0], "aic_only": [3]}
        assert (x[4:16].reshape(3, 4)[:, places[kind]] == 9 * agents).all(), x


def test_of_all_cores_only_those_that_are_used_meet() -> None:
    part = AGENT.format(side="vector", skip="c0", meet=MEETINGS["soft"].format("aiv_only"))
    text = MEETING.format(arch="a5", functions=part)
    found: list[list[int]] = []
    for engine in ("reference", "jit"):
        x = np.zeros(64, np.int32)
        pto.launch(pto.parse(text), args=[x, 2], engine=engine, blocks=3)
        found.append(x.tolist())
    assert found[0] == found[1]
    assert found[0][4] == found[0][8] >= 6  # two meet, and the third counts when it likes


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_core_that_never_comes_is_missed(engine: str) -> None:
    part = AGENT.format(side="vector", skip="c0", meet=MEETINGS["soft"].format("aiv_only"))
    text = MEETING.format(arch="a5", functions=part)
    with pytest.raises(PtoError) as caught:
        pto.launch(pto.parse(text), args=[np.zeros(64, np.int32), 4], engine=engine, blocks=3)
    assert "waits at 'pto.syncall' op for 1 of 4 cores to reach it" in str(caught.value.diagnostics)
