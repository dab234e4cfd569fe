"""`pto run --step`: stops before an operation, shows where and what, goes on as it is told."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.cli.main import main
from pto.cli.step import describe
from pto.core.errors import PtoError
from pto.ir.graph import Value
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type
from pto.run.launch.host import launch
from pto.run.watch.step import Move, Quit, Stepper, Stop
from tests.machine import Bench

TILE = "!pto.tile_buf<vec, 2x8xf32, valid=?x8>"
VIEW = "!pto.tensor_view<2x8xf32>"
PART = "!pto.partition_tensor_view<?x8xf32>"
WINDOW = f"offsets = [%c0, %c0], sizes = [%n, %c8] : {VIEW} -> {PART}"
PROGRAM = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @twice(%a: !pto.ptr<f32>, %n: index) attributes {{pto.kernel}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %v = pto.make_tensor_view %a, shape = [%c2, %c8], strides = [%c8, %c1] : {VIEW}
    %p = pto.partition_view %v, {WINDOW}
    %t = pto.alloc_tile valid_row = %n : {TILE}
    pto.tload ins(%p : {PART}) outs(%t : {TILE})
    scf.for %i = %c0 to %c2 step %c1 {{
      pto.tadd ins(%t, %t : {TILE}, {TILE}) outs(%t : {TILE})
    }}
    pto.tstore ins(%t : {TILE}) outs(%p : {PART})
    return
  }}
}}
"""
LOAD, ADD, STORE = 10, 12, 14  # lines


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("twice.pto").write_text(PROGRAM)
    return "twice.pto"


def step(monkeypatch: pytest.MonkeyPatch, program: str, commands: str, *words: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(commands))
    return main(["run", program, "--arg", "a=range", "--arg", "n=1", "--step", *words])


def stops(text: str) -> list[int]:
    """The lines of the program that a session stopped at."""
    return [int(line.split(":")[1]) for line in text.split("\n") if line.startswith("  --> ")]


def test_it_stops_before_the_first_instruction_and_at_every_next(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(monkeypatch, program, "n\nnext\n\nn\nn\n") == 0
    shown = capsys.readouterr().out
    assert stops(shown) == [LOAD, ADD, ADD, STORE]
    assert "block 0, 0 instructions done" in shown
    assert "block 0, 3 instructions done" in shown
    assert "8 of 16 elements changed" not in shown  # 0 stays 0
    assert "7 of 16 elements changed, now 4.0 to 28.0" in shown


def test_a_line_stops_each_time_it_is_reached(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(monkeypatch, program, "c\nc\n", str(ADD)) == 0
    assert stops(capsys.readouterr().out) == [ADD, ADD]


def test_a_number_counts_instructions(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(monkeypatch, program, "c\n", "+4") == 0
    assert stops(capsys.readouterr().out) == [STORE]


def test_the_source_line_has_a_caret_and_values_outside_the_valid_region_have_brackets(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step(monkeypatch, program, "", str(ADD))
    lines = capsys.readouterr().out.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith("12 |"))
    assert lines[at].startswith("12 |       pto.tadd ins(%t")
    assert lines[at + 1] == "   |       ^^^^^^^^"
    assert lines[at + 2] == "  %t tile vec 2x8xf32 ND at ub 0x0, valid 1x8"
    assert lines[at + 3].split() == [f"c{n}" for n in range(8)]
    assert lines[at + 4].split() == ["r0", *map(str, range(8))]
    assert lines[at + 5].split() == ["r1", *["[0]"] * 8]


def test_the_end_of_the_input_continues(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(monkeypatch, program, "") == 0
    shown = capsys.readouterr().out
    assert stops(shown) == [LOAD]
    assert "now 4.0 to 28.0" in shown
    assert step(monkeypatch, program, "", str(ADD)) == 0
    assert stops(capsys.readouterr().out) == [ADD]


def test_quit_leaves_without_doing_more(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step(monkeypatch, program, "n\nq\n") == 0
    shown = capsys.readouterr().out
    assert shown.endswith("left after 1 instructions\n")
    assert "changed" not in shown


def test_any_value_of_the_function_can_be_printed(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step(monkeypatch, program, "p n\np %a\np i\np nope\nwhat\n", str(LOAD))
    shown = capsys.readouterr().out
    assert "  %n index = 1\n" in shown
    assert "  %a pointer to f32, gm 0x0, 64 bytes from there\n" in shown
    assert "  %i index has no value yet\n" in shown
    assert "there is no %nope in this function\n" in shown
    assert "n next, c continue" in shown


@pytest.mark.parametrize(("where", "part"), [("2", "line 3"), ("999", ""), ("here", "--step 12")])
def test_a_place_that_does_not_exist_is_a_finding(
    where: str,
    part: str,
    program: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert step(monkeypatch, program, "", where) == 2
    shown = capsys.readouterr().err
    assert "PTO-U040" in shown and part in shown


def test_a_large_tile_is_shown_at_the_edge_of_its_valid_region() -> None:
    bench = Bench("a5")
    tile = bench.tile(
        "t", "vec, 20x32xi32, valid=?x?", np.arange(640).reshape(20, 32), valid=(9, 8)
    )
    pieces = describe(Value(parse_type(bench.types["t"]), "t"), tile)
    lines = "".join(text for _, text in pieces).split("\n")
    assert lines[1].split() == ["c0", "c1", "c2", "c3", "c4", "..", "c7", "c8", "..", "c31"]
    assert lines[2].split() == ["r0", "0", "1", "2", "3", "4", "..", "7", "[8]", "..", "[31]"]
    names = [line.split()[0] for line in lines[2:] if line]
    assert names == ["r0", "r1", "r2", "r3", "r4", "..", "r8", "r9", "..", "r19"]
    assert lines[9].split()[1] == "[288]"  # row 9, the first that is not valid


# ---- the same from Python


def test_python_sees_the_operands_and_decides() -> None:
    seen: list[tuple[str, Any]] = []

    def tell(stop: Stop) -> Move:
        _, tile = stop.operands[0]
        _, rows = stop.value("n")
        seen.append((stop.op.name, rows))
        if stop.op.name == "pto.tadd":
            assert tile.read_valid().tolist() == [[1.0] * 8]
            return "quit"
        return "next"

    a = np.ones(16, np.float32)
    with pytest.raises(Quit):
        launch(parse(PROGRAM), args=[a, 1], stepper=Stepper(tell))
    assert seen == [("pto.tload", 1), ("pto.tadd", 1)]
    assert a.tolist() == [1.0] * 16


def test_stepping_changes_no_result() -> None:
    plain, stepped = (np.arange(16, dtype=np.float32) for _ in range(2))
    launch(parse(PROGRAM), args=[plain, 2])
    stepper = Stepper(lambda stop: "next")
    launch(parse(PROGRAM), args=[stepped, 2], stepper=stepper)
    assert stepped.tobytes() == plain.tobytes()
    assert stepped.tolist() == [4.0 * i for i in range(16)]
    assert stepper.done == 4


WAITS = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%out: !pto.ptr<i32>) attributes {pto.kernel} {
    pto.section.cube {
      pto.sync.wait <PIPE_FIX>, 1
    }
    pto.section.vector {
      %x = arith.constant 5 : i32
      %c0 = arith.constant 0 : index
      pto.store_scalar %x, %out[%c0] : !pto.ptr<i32>, i32
      pto.sync.set <PIPE_MTE3>, 1
    }
    return
  }
}
"""


def test_an_agent_that_waits_is_asked_once() -> None:
    seen: list[tuple[str, str]] = []

    def tell(stop: Stop) -> Move:
        seen.append((stop.core.name, stop.op.name))
        return "next"

    out = np.zeros(1, np.int32)
    launch(parse(WAITS), args=[out], stepper=Stepper(tell))
    assert out[0] == 5
    assert seen.count(("block 0 cube", "pto.sync.wait")) == 1
    assert seen.count(("block 0 vector 1", "pto.store_scalar")) == 1
    assert len(seen) == 5


def test_an_error_while_stepping_is_the_same_error() -> None:
    with pytest.raises(PtoError, match="does not fit its size 2"):
        launch(
            parse(PROGRAM), args=[np.ones(16, np.float32), 3], stepper=Stepper(lambda stop: "next")
        )
