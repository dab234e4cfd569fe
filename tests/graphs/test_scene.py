"""Scene tests: how their files are read. Only their inputs and goldens need torch."""

import json
from pathlib import Path

import pytest

from pto.cli.main import main
from pto.core.errors import PtoError
from pto.graphs import scene

TEXT = """
import tests.st.shared
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, scene_test

@scene_test(level=2, runtime="host_build_graph")
class TestSum(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "o.cpp", "signature": [D.IN]}, "incores": []}
    CASES = [
        {"name": "Small", "platforms": ["a2a3sim", "a2a3"], "params": {"batch": 2, "fast": True}},
        {"name": "Large", "platforms": ["a5"], "params": {"batch": 64, "rows": 512}},
    ]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src" / "common" / "task_interface").mkdir(parents=True)
    folder = tmp_path / "tests" / "st" / "sum"
    folder.mkdir(parents=True)
    (tmp_path / "tests" / "st" / "shared.py").write_text("N = 1\n")
    (folder / "test_sum.py").write_text(TEXT)
    return tmp_path


def file_of(checkout: Path) -> Path:
    return checkout / "tests" / "st" / "sum" / "test_sum.py"


def test_a_case_is_a_scene_of_each_profile_it_names(checkout: Path):
    found = list(scene.find(file_of(checkout)))
    assert [(s.name, s.profile, s.runtime) for s in found] == [
        ("sum/TestSum/Small", "a2a3", "host_build_graph"),
        ("sum/TestSum/Large", "a5", "host_build_graph"),
    ]
    assert [s.profile for s in scene.find(file_of(checkout), "a5")] == ["a5"]


def test_a_limit_changes_larger_parameters_alone_and_shows_in_the_name(checkout: Path):
    small, large = (
        s.limited({"batch": 4, "fast": 0, "cols": 1}) for s in scene.find(file_of(checkout))
    )
    assert (small.name, small.case["params"]) == ("sum/TestSum/Small", {"batch": 2, "fast": True})
    assert large.name == "sum/TestSum/Large[batch=4]"
    assert large.case["params"] == {"batch": 4, "rows": 512}


@pytest.mark.parametrize("text", ["batch", "=4", "batch=-1", "batch=four"])
def test_a_limit_is_a_name_and_a_number(
    checkout: Path, text: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["graph", "run", str(checkout), "--at-most", text]) == 2
    assert f"--at-most {text}" in capsys.readouterr().err


def test_a_file_that_cannot_be_imported_is_a_finding(checkout: Path):
    file_of(checkout).write_text("import no_such\nCALLABLE = 1\n")
    with pytest.raises(PtoError, match="needs the module no_such") as error:
        list(scene.find(file_of(checkout)))
    assert error.value.code == "PTO-U322"


@pytest.mark.parametrize("level", [2, 3])
def test_a_case_that_is_too_large_is_left_out_before_its_kernels_are_compiled(
    checkout: Path, level: int, capsys: pytest.CaptureFixture[str]
):
    """Its sources do not exist: compiling them would be an error."""
    pytest.importorskip("torch", reason="needs torch")
    text = (
        TEXT.replace("level=2", f"level={level}")
        + """
    def generate_args(self, params):
        import torch
        from simpler_setup import TaskArgsBuilder, TensorArg
        rows = 1 << (31 if params["batch"] > 2 else 4)
        return TaskArgsBuilder(TensorArg("x", torch.zeros(rows, 1)))
"""
    )
    if level == 3:
        text = text.replace(
            '"orchestration": {"source": "o.cpp", "signature": [D.IN]}, "incores": []',
            '"orchestration": print, "callables": [{"name": "a",'
            ' "orchestration": {"source": "o.cpp"},'
            ' "incores": []}]',
        )
    file_of(checkout).write_text(text)
    assert main(["graph", "run", str(checkout)]) == 1
    out = capsys.readouterr().out
    assert "skipped  sum/TestSum/Large a5     its tensors have 8,192 MiB" in out
    assert "refused  sum/TestSum/Small a2a3" in out and "there is no file" in out


def test_lines_of_results_are_not_mixed_with_what_a_test_prints(
    checkout: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("torch", reason="needs torch")
    text = (
        TEXT
        + """
    def generate_args(self, params):
        import torch
        from simpler_setup import TaskArgsBuilder, TensorArg
        print("loud")
        return TaskArgsBuilder(TensorArg("x", torch.zeros(4)))
"""
    )
    file_of(checkout).write_text(text)
    assert main(["graph", "run", str(checkout), "--format", "lines"]) == 1
    said = capsys.readouterr()
    assert [json.loads(line)["status"] for line in said.out.splitlines()] == ["refused"] * 2
    assert "loud" in said.err
