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
