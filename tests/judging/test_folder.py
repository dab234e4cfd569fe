"""Tasks as folders: tables of cases, goldens on torch, baselines of a chip."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.judging.folder import FolderTask, read_folder

GOLDEN = """
import torch


def add_scaled(x: list[torch.Tensor], index: torch.Tensor, bias=None, scale: float = 2.0):
    if bias is not None:
        x = [each + bias for each in x]
    return [each[index.long()] * scale for each in x]
"""
PROTO = """
operator:
  name: AddScaled
  precision_thresholds:
    float32: 0.001   # a comment
    int8: 1
  schema: add_scaled(Tensor[] x, Tensor index, Tensor? bias=None,
    float scale=2.0) -> Tensor[] y
  inputs:
  - name: x
"""
HEAD = "operator,case_id,input_shape,dtype,attrs,value_range,note"
LISTS = """"[[[16, 64], [16, 32]], [8], null]","[[""float16""], ""int32"", null]",{},\
"[[-1, 1], [0, 15], null]",a"""
BIAS = """"[[[1024, 64]], [1000], [64]]","[[""float32""], ""int32"", ""float32""]",\
"{""scale"": ""1e-1""}","[[-1, 1], [0, 1023], [0, 1]]",b"""
CASES = f"{HEAD}\nAddScaled,1,{LISTS}\nAddScaled,2,{BIAS}\n"
ROWS = {"level1": {"add": {"1": {"baseline_perf_us": 20.0, "t_hw_us": 2.0}}}}
CANDIDATE = """
import pto

@pto.kernel(profile="a5")
def rows(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]):
    for i in pto.range(0, x.shape[0], 16):
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64) * 2.0)

def double(x, y, scale):
    rows[1](x, y)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "level1" / "add"
    own.mkdir(parents=True)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "950pr.json").write_text(json.dumps(ROWS))
    texts = {"golden.py": GOLDEN, "proto.yaml": PROTO, "cases.csv": CASES}
    for name, text in texts.items():
        (own / name).write_text(text)
    return own


@pytest.fixture
def task(folder: Path) -> FolderTask:
    pytest.importorskip("torch")
    return read_folder(folder)


def test_without_torch_a_folder_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PtoError, match=r"PTO-U350.*torch, which is not installed"):
        read_folder(folder)


def test_numbers_that_are_written_as_text_are_numbers(folder: Path) -> None:
    pytest.importorskip("torch")
    text = (folder / "cases.csv").read_text()
    found: list[Any] = []
    for word in ("1e-1", "-2", "inf", "-inf", "tanh"):
        (folder / "cases.csv").write_text(text.replace("1e-1", word))
        found.append(read_folder(folder).cases[1].values["scale"])
    assert found == [0.1, -2.0, float("inf"), float("-inf"), "tanh"]


def test_lists_of_tensors_are_arrays_with_numbers(task: FolderTask) -> None:
    shapes = {n: (s, k.name) for n, (s, k) in task.shapes(task.cases[0]).items()}
    assert shapes == {
        "x_0": ((16, 64), "f16"),
        "x_1": ((16, 32), "f16"),
        "index": ((8,), "i32"),
        "y_0": ((8, 64), "f16"),
        "y_1": ((8, 32), "f16"),
    }
    assert [a.role for a in task.arguments(task.cases[0])] == ["in", "in", "in", "out", "out"]
    assert task.numbers(task.cases[0]) == {"scale": 2.0}
    assert task.numbers(task.cases[1]) == {"scale": 0.1}
    assert task.precision.means == {"f32": 0.001, "i8": 1.0}


def test_values_are_those_of_the_golden_in_float64(task: FolderTask) -> None:
    case = task.cases[1]
    inputs = task.inputs(case, np.random.default_rng(3))
    assert np.abs(inputs["x_0"]).max() <= 1
    assert 0 <= inputs["index"].min() <= inputs["index"].max() <= 1023
    wanted = (inputs["x_0"].astype(float) + inputs["bias"].astype(float))[inputs["index"]] * 0.1
    assert np.array_equal(task.expected(case, inputs)["y_0"], wanted)


def test_a_smaller_case_has_smaller_indices(task: FolderTask) -> None:
    small = task.scaled(task.cases[1], 1 << 12)
    shapes = task.shapes(small)
    assert shapes["x_0"][0] == (384, 64)  # 1024 is 2**10: 128 * (10 - 7)
    assert shapes["index"][0] == (256 + 1000 % 128,)
    assert task.inputs(small, np.random.default_rng(0))["index"].max() <= 383
    assert task.scaled(task.cases[0], 1 << 12) is task.cases[0]


def test_baselines_are_those_of_the_chip(task: FolderTask) -> None:
    anchored = task.on("950pr").cases
    assert anchored[0].anchors == {"baseline_us": 20.0, "bound_us": 2.0}
    assert anchored[1].anchors == {}
    assert task.on("910b1").cases[0].anchors == {}


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("proto.yaml", "schema", "scheme", "no schema"),
        ("proto.yaml", "add_scaled", "other", "no other"),
        ("cases.csv", "[8]", "[8", "case 1"),
    ],
)
def test_a_wrong_folder_is_a_finding(
    folder: Path, name: str, old: str, new: str, words: str
) -> None:
    pytest.importorskip("torch")
    path = folder / name
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(PtoError, match="PTO-U350") as caught:
        read_folder(folder)
    assert words in str(caught.value)


def test_a_candidate_for_a_folder(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (folder / "golden.py").write_text("def double(x, scale=2.0):\n    return x * scale\n")
    proto = "operator:\n  schema: double(Tensor x, float scale=2.0) -> Tensor y\n"
    (folder / "proto.yaml").write_text(proto)
    row = 'Double,1,"[[100, 64]]","[""float32""]",{},"[-1, 1]",a'
    (folder / "cases.csv").write_text(f"{HEAD}\n{row}\n")
    path = tmp_path / "double.py"
    path.write_text(CANDIDATE)
    found = pto.judge(folder, path, device="950pr")
    assert found, str(found)
    assert found.cases[0].baseline_us == 20.0
    assert found.score is not None
    path.write_text(CANDIDATE.replace("* 2.0", "* 2.5"))
    assert pto.judge(folder, path, device="950pr").to_json()["codes"] == ["PTO-J001"]
