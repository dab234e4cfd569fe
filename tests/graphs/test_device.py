"""The machine in place of a card, and folders that pypto builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main
from pto.core.errors import PtoError
from pto.graphs import device, folder
from pto.graphs.chips import Buffer, TaskArgs
from pto.graphs.process import ArgTensor
from pto.graphs.scene_names import ArgDirection, DataType

from . import sources
from .test_orchestration import CHAIN

compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, beside a runtime with the headers of these tests."""
    monkeypatch.setenv("PTO_RUNTIME", str(sources.RUNTIME))
    return tmp_path


def view(array: np.ndarray) -> ArgTensor:
    return Buffer(array.view(np.uint8).reshape(-1)).tensor(array.shape, DataType["FLOAT32"])


@compiler
def test_a_worker_runs_what_was_compiled_and_changes_tensors_in_place(checkout: Path):
    own = sources.kernels(checkout)
    graph = sources.written(checkout, [CHAIN], own)
    made = device.KernelCompiler("a2a3sim")
    kernels = [
        (k.number, device.CoreCallable.build([], made.compile_incore(str(k.path), k.core)))
        for k in own
    ]
    binary = made.compile_orchestration("tensormap_and_ringbuffer", str(graph.path))
    uses = [ArgDirection.IN, ArgDirection.INOUT, ArgDirection.SCALAR]
    chip = device.ChipCallable.build(uses, "entry", binary, kernels)
    x, y = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
    args = TaskArgs()
    args.add_tensor(view(x))
    args.add_tensor(view(y))
    args.add_scalar(0)
    worker = device.Worker(level=2, platform="a2a3sim")
    number = worker.register(chip)
    worker.run(number, args)
    worker.close()
    assert np.array_equal(y, 2 * x + 5)


def test_memory_of_a_worker_keeps_what_is_copied_to_it():
    worker = device.Worker()
    buffer = worker.malloc(8)
    worker.copy_to(buffer, (device.ctypes.c_ubyte * 8)(*range(8)))
    back = (device.ctypes.c_ubyte * 4)()
    worker.copy_from(back, buffer)
    assert list(back) == [0, 1, 2, 3]
    assert buffer.base > 0


def test_a_worker_of_several_chips_and_a_missing_checkout_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(PtoError, match="level 3"):
        device.Worker(level=3)
    monkeypatch.setenv("PTO_RUNTIME", str(tmp_path))
    with pytest.raises(PtoError, match="has no headers of the runtime"):
        device.KernelCompiler()


def test_the_packages_come_before_others_of_their_name(tmp_path: Path):
    (tmp_path / "simpler.py").write_text("raise ImportError('another package')\n")
    text = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pto.graphs.in_place;"
        " from simpler.worker import Worker; from simpler_setup import KernelCompiler;"
        " from simpler.task_interface import DataType; from simpler_setup.log_config import *;"
        " print(Worker.__module__, DataType.FLOAT16.value, parse_level('timing'))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["pto.graphs.device", "1", "25"], done.stderr


CONFIG = """
from pathlib import Path
from simpler.task_interface import ArgDirection as D
HERE = Path(__file__).parent
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer"}
ORCHESTRATION = {
    "source": str(HERE / "orchestration.cpp"), "function_name": "entry",
    "signature": [D.IN, D.INOUT],
}
KERNELS = [
    {"func_id": n, "name": name, "source": str(HERE / f"{name}.cpp"), "core_type": "aiv"}
    for n, name in ((0, "add_number"), (1, "add"))
]
"""
GOLDEN = """
import ctypes
import torch
__outputs__ = ["y"]
RTOL = ATOL = 0.0

def generate_inputs(params):
    x = torch.arange(1024, dtype=torch.float32).reshape(16, 64)
    return [("x", x), ("which", ctypes.c_int64(0)), ("y", torch.zeros(16, 64))]

def compute_golden(tensors, params=None):
    tensors["y"][:] = 2 * tensors["x"] + 5
    tensors["y"][3, 4] = float("nan")
"""


@pytest.fixture
def built(checkout: Path) -> Path:
    home = checkout / "build" / "sum"
    home.mkdir(parents=True)
    sources.written(home, [CHAIN], sources.kernels(home))
    (home / "kernel_config.py").write_text(CONFIG)
    (home / "golden.py").write_text(GOLDEN)
    (home / "compiled_meta.json").write_text('{"platform": "a2a3sim"}')
    return home


def test_a_folder_names_its_sources(built: Path):
    (found,) = folder.find(built.parent)
    source = found.source()
    assert (found.name, found.profile, source.entry) == ("sum", "a2a3", "entry")
    assert [(k.number, k.path.name, k.core) for k in source.kernels] == [
        (0, "add_number.cpp", "aiv"),
        (1, "add.cpp", "aiv"),
    ]
    assert any((path / "pto_orchestration_api.h").is_file() for path in source.include)


@compiler
def test_a_folder_is_judged_by_its_golden(built: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("torch", reason="needs torch")
    assert main(["graph", "run", str(built)]) == 0
    assert "1 passed" in capsys.readouterr().out
    (built / "golden.py").write_text(GOLDEN.replace("+ 5", "+ 6"))
    assert main(["graph", "run", str(built)]) == 1
    assert "y: 1023 of 1024 elements differ" in capsys.readouterr().out


# The second task reads rows 16 to 31 of a created tensor, and adds x in two blocks.
_SLICED = """
    TensorCreateInfo wide{{32, 64}, 2, DataType::FLOAT32, true, 0};
    CoreTaskArgs w; w.add_output(wide);
    const ChipTensor end = rt()->ops->alloc_tensors(rt(), w).get_ref(0).rows(16, 16);
    CoreTaskArgs a; a.add_input(x); a.add_inout(end); a.add_scalar(5); vector_task(0, a);
    CoreTaskArgs b; b.add_input(end); b.add_input(x); b.add_inout(y); b.launch_spec.n = 2;
    vector_task(1, b);
"""


@compiler
def test_the_first_wrong_task_becomes_a_folder_that_runs_alone(
    built: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
):
    """A later version of the second kernel subtracts: y is x + 5 - x where it was x + 5 + x."""
    pytest.importorskip("torch", reason="needs torch")
    sources.written(built, [_SLICED], sources.kernels(built))
    kernel, before, alone = built / "add.cpp", checkout / "before", checkout / "alone"
    assert main(["graph", "diff", str(built), "--record", str(before)]) == 0
    right = kernel.read_text()
    kernel.write_text(right.replace("TADD(a, a, b)", "TSUB(a, a, b)"))
    words = ["graph", "diff", str(built), "--recorded", str(before), "--extract", str(alone)]
    assert main(words) == 1
    assert "task 2 (add) is the first task with different results" in capsys.readouterr().out
    shutil.rmtree(built)  # nothing of it is needed
    assert main(["graph", "run", str(alone)]) == 1
    out = capsys.readouterr().out
    assert "1 tasks" in out and "1023 of 1024 elements differ, by up to 2046" in out
    (alone / "kernels" / "add.cpp").write_text(right)
    assert main(["graph", "run", str(alone)]) == 0
    given = np.fromfile(alone / "data" / "in" / "buffer2.bin", np.float32).reshape(32, 64)
    np.testing.assert_array_equal(given[16:], np.arange(1024).reshape(16, 64) + 5)


def test_a_task_is_extracted_from_two_runs(built: Path, capsys: pytest.CaptureFixture[str]):
    words = ["graph", "diff", str(built), "--record", "r", "--extract", "e"]
    assert main(words) == 2
    assert "--extract needs two runs" in capsys.readouterr().err
