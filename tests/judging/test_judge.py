"""The parts of `pto judge`: tasks, precision, messages of candidates, orders, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.core.dtypes import DType, dtype
from pto.core.errors import PtoError
from pto.judging.candidate import Candidate
from pto.judging.correct import CaseRun
from pto.judging.judgement import Judgement
from pto.judging.orders import check_deterministic
from pto.judging.precision import Precision
from pto.judging.programs import ArrayPart, read_calls, read_findings
from pto.judging.speed import hap
from pto.judging.task import Case, FileTask, read_file

HERE = Path(__file__).parent
SOFTMAX = HERE / "tasks" / "softmax.py"
TASK = """
arguments = {"x": "f32[m, n]", "y": "out f32[m, 2 * n]"}
cases = [{"m": 64, "n": 48}, {"m": 4096, "n": 48}]


def reference(x):
    return [[0.0] * 96] * len(x)
"""
# The flag between the addition and the store is missing.
RACY = """
!view = !pto.tensor_view<8x8xf32>
!part = !pto.partition_tensor_view<8x8xf32>
!tile = !pto.tile_buf<vec, 8x8xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @racy(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %one = arith.constant 1.0 : f32
    %vx = pto.make_tensor_view %x, shape = [%c8, %c8], strides = [%c8, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%c8, %c8], strides = [%c8, %c1] : !view
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c8, %c8] : !view -> !part
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c8, %c8] : !view -> !part
    %a = arith.constant 0 : i64
    %t = pto.alloc_tile addr = %a : !tile
    pto.tload ins(%px : !part) outs(%t : !tile)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)
    pto.tstore ins(%t : !tile) outs(%py : !part)
    return
  }
}
"""
SQUARE = FileTask(
    name="square",
    every=read_file(SOFTMAX).every,
    cases=(Case("one", {"m": 8, "n": 8}),),
    reference=lambda x: x + 1,
    precision=Precision(),
)


def written(folder: Path, text: str) -> Path:
    path = folder / "double_task.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("arguments", "argument", "no `arguments`; it has `argument`"),
        ("out f32[m, 2 * n]", "f32[m, n]", "an output"),
        ("f32[m, n]", "[m, n]", "argument x is"),
        ("2 * n", "2 * k", "there is no k"),
    ],
)
def test_a_wrong_task_is_a_finding(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(PtoError, match="PTO-U350") as caught:
        read_file(written(tmp_path, TASK.replace(old, new)))
    assert words in str(caught.value)


def test_a_reference_with_another_shape_is_a_finding(tmp_path: Path) -> None:
    task = read_file(written(tmp_path, TASK.replace("96", "95")))
    inputs = task.inputs(task.cases[0], np.random.default_rng(0))
    with pytest.raises(PtoError, match=r"PTO-U350.*\(64, 95\), not \(64, 96\)"):
        task.expected(task.cases[0], inputs)


def test_sizes_that_differ_between_cases_are_drawn_in_their_common_step(tmp_path: Path) -> None:
    task = read_file(written(tmp_path, TASK))
    drawn = [case.values for seed in range(20) for case in task.hidden(np.random.default_rng(seed))]
    assert {case["n"] for case in drawn} == {48}
    sizes = {case["m"] for case in drawn}
    assert len(sizes) > 1
    assert all(64 <= m <= 4096 and m % 64 == 0 for m in sizes)


def test_a_large_case_is_scaled_down_in_its_steps(tmp_path: Path) -> None:
    task = read_file(written(tmp_path, TASK))
    small = task.scaled(task.cases[1], 50_000)
    assert small.values == {"m": 256, "n": 48}
    assert small.full == task.cases[1]
    assert task.scaled(task.cases[0], 50_000) == task.cases[0]


F16, F32 = dtype("f16"), dtype("f32")


@pytest.mark.parametrize(
    ("kind", "got", "wanted", "is_right"),
    [
        (F32, [1.0, 2.0], [1.0, 2.0], True),
        (F32, [1.0, 2.0 * (1 + 2**-14)], [1.0, 2.0], True),
        (F32, [1.0, 2.0 * (1 + 2**-11)], [1.0, 2.0], False),  # the mean is 2**-12
        (F16, [1.0] * 99 + [1.0078125], [1.0] * 100, True),
        (F16, [1.0] * 99 + [1.015625], [1.0] * 100, False),  # more than 10 * 2**-10
        (F32, [np.nan], [np.nan], True),
        (F32, [0.0], [np.nan], False),
        (F32, [np.inf], [-np.inf], False),
        (F32, [1e-8, 1e-8, 1.0], [0.0, 0.0, 1.0], True),  # two small values may be off
        (F32, [1e-8] * 3 + [1.0], [0.0] * 3 + [1.0], False),
    ],
)
def test_relative_errors_by_type(
    kind: DType, got: list[float], wanted: list[float], is_right: bool
) -> None:
    items = np.asarray(got, kind.numpy)
    assert Precision().compare(kind, items, np.asarray(wanted)).is_right is is_right


def test_a_score_is_a_half_at_the_baseline_and_one_at_the_bound() -> None:
    assert hap(30.0, 30.0, 10.0) == 0.5
    assert hap(10.0, 30.0, 10.0) == 1.0
    assert hap(50.0, 30.0, 10.0) == pytest.approx(1 / 3)
    assert hap(0.0, 30.0, 10.0) is None


@pytest.mark.parametrize(
    "message",
    [None, [], {}, {"programs": {}, "cases": [{"launches": 7, "scratch": []}]}, {"cases": "x"}],
)
def test_a_message_that_is_no_list_of_launches(message: object) -> None:
    with pytest.raises(PtoError, match="PTO-J013"):
        read_calls(message)


@pytest.mark.parametrize("message", [[], {}, [7], [{"code": "PTO-U281"}]])
def test_findings_that_are_none(message: object) -> None:
    with pytest.raises(PtoError, match="PTO-J013"):
        read_findings(message)


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(4, (4, 4), (16, 4)), (0, (4, 4), (64, 4)), (-4, (1,), (4,)), (0, (4,), (-4,))],
)
def test_a_part_outside_of_its_array(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    arrays = {"x": np.zeros((4, 4), np.float32)}
    with pytest.raises(PtoError, match="PTO-J013"):
        ArrayPart("x", offset, shape, strides, "f32").of(arrays)


def test_a_program_with_a_race_is_not_deterministic() -> None:
    case = SQUARE.cases[0]
    arrays = {n: (s, k.name) for n, (s, k) in SQUARE.shapes(case).items()}
    calls = Candidate("racy.pto", "pto", RACY).calls(arrays, case.values)
    run = CaseRun(SQUARE, case, calls, np.random.default_rng(0), "950pr")
    found = Judgement("square", "racy.pto", "950pr")
    assert not check_deterministic(found, run)
    assert [d.code for d in found.findings] == ["PTO-J007"]


def test_text_says_how_it_is_called() -> None:
    case = replace(SQUARE.cases[0], values={"m": 40, "n": 8})
    arrays = {n: (s, k.name) for n, (s, k) in SQUARE.shapes(case).items()}
    how = "// pto judge: blocks=cdiv(m, 16)\n"
    (launch,) = Candidate("racy.pto", "pto", how + RACY).calls(arrays, case.values).launches
    assert launch.blocks == 3
    with pytest.raises(PtoError, match=r"PTO-U351.*there is no rows"):
        Candidate("racy.pto", "pto", how.replace("m", "rows") + RACY).calls(arrays, case.values)


KERNEL = """
import pto

@pto.kernel(profile="a5")
def softmax(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]):
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.softmax(pto.load(x[i:, :], 16, 128)))
"""


def test_the_command_and_the_function_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    found = pto.judge(SOFTMAX, path, blocks="cdiv(m, 16)", seed=3)
    assert found, str(found)
    assert found.score is not None and 0 < found.score < 1
    words = ["judge", str(SOFTMAX), str(path), "--blocks", "cdiv(m, 16)", "--seed", "3"]
    assert main([*words, "--format", "lines"]) == 0
    shown = json.loads(capsys.readouterr().out)
    wanted = json.loads(json.dumps(found.to_json()))
    assert {**shown, "seconds": 0} == {**wanted, "seconds": 0}


def test_a_task_that_cannot_be_read_is_a_finding_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    assert main(["judge", str(path), str(path)]) == 2
    assert "PTO-U350" in capsys.readouterr().err
