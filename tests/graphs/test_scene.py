"""Scene tests: how their files are read. Only their inputs and goldens need torch."""

import json
from pathlib import Path
from typing import Any

import pytest

from pto.cli.main import main
from pto.core.errors import PtoError
from pto.graphs import scene
from pto.graphs.scene_names import Scalar, SceneTestCase, TaskArgsBuilder

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
    with pytest.raises(PtoError, match="the module no_such is not installed; ") as error:
        list(scene.find(file_of(checkout)))
    assert error.value.code == "PTO-U322"


def test_a_number_that_only_the_project_knows_is_a_finding(checkout: Path):
    text = "from simpler.worker import SIZE, FRAME\nCALLABLE = SIZE // FRAME\n"
    file_of(checkout).write_text(text)
    with pytest.raises(PtoError, match="SIZE of the runtime's project has no value") as error:
        list(scene.find(file_of(checkout)))
    assert error.value.code == "PTO-U322"


def result_of(checkout: Path, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The result of the only case of a file with a mistake, beside a file without cases."""
    beside = checkout / "tests" / "st" / "other"
    beside.mkdir()
    (beside / "test_other.py").write_text("CALLABLE = {}\n")
    file_of(checkout).write_text(text)
    assert main(["graph", "run", str(checkout / "tests"), "-k", "not Large", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["cases"]
    return found


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("CALLABLE = {\n", "this is not Python: '{' was never closed", 1),
        ("CALLABLE = {}\nx = 1 / 0\n", "the file raises ZeroDivisionError: division by zero", 2),
    ],
)
def test_a_mistake_in_a_file_of_a_folder_is_a_finding_at_its_line(
    checkout: Path, text: str, message: str, line: int, capsys: pytest.CaptureFixture[str]
):
    found = result_of(checkout, text, capsys)
    assert (found["outcome"], found["why"]) == ("refused", message)
    assert found["findings"][0]["loc"]["line"] == line


GOLDEN = """
    def generate_args(self, params):
        import torch
        from simpler_setup import TaskArgsBuilder, TensorArg
        return TaskArgsBuilder(TensorArg("x", torch.zeros(%s)))
"""


@pytest.mark.parametrize(
    ("given", "changed", "message"),
    [
        ("int('a')", ("", ""), "generate_args raises ValueError: invalid literal for int()"),
        ("4", ('"incores": []', '"incores": [{"source": "k.cpp", "core_type": "aix"}]'), "aix"),
        ("4", ('"incores": []', '"incores": [{"source": "k.cpp"}]'), "k has no 'core_type'"),
        ("4", ('"source": "o.cpp", ', ""), "the orchestration has no 'source'"),
    ],
)
def test_a_mistake_of_one_case_is_its_result(
    checkout: Path,
    given: str,
    changed: tuple[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
):
    pytest.importorskip("torch", reason="needs torch")
    found = result_of(checkout, TEXT.replace(*changed) + GOLDEN % given, capsys)
    assert found["outcome"] == "refused" and message in found["why"]


def test_an_argument_that_a_test_does_not_have_is_a_finding_at_its_line():
    args = TaskArgsBuilder(Scalar("rows", 4))
    assert getattr(args, "cols", 5) == 5
    with pytest.raises(PtoError, match="there is no argument 'cols'; there are rows") as error:
        print(args.cols)
    loc = error.value.diagnostics[0].loc
    assert loc is not None and Path(loc.file).name == "test_scene.py"


def test_a_golden_of_another_shape_is_wrong():
    torch = pytest.importorskip("torch", reason="needs torch")
    with pytest.raises(AssertionError, match=r"y has shape \[4\], and the golden has \[2\]"):
        SceneTestCase().compare_tensor("y", torch.zeros(4), torch.zeros(2))


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
    (row,) = [line for line in out.splitlines() if line.startswith("sum/TestSum/Large")]
    assert row.split()[1:5] == [".", ".", ".", "1"] and "its tensors have 8,192 MiB" in row
    assert "FAILED (refused) sum/TestSum/Small" in out and "there is no file" in out


def test_lines_of_results_are_not_mixed_with_what_a_test_prints(
    checkout: Path, capfd: pytest.CaptureFixture[str]
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
    said = capfd.readouterr()
    assert [json.loads(line)["outcome"] for line in said.out.splitlines()] == ["refused"] * 2
    assert "loud" in said.err
