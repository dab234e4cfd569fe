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
from pto.graphs.chips import Buffer, TaskArgs, View
from pto.graphs.scene_names import ArgDirection

from . import sources
from .test_orchestration import CHAIN

compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of the runtime, with the headers of these tests."""
    (tmp_path / "src" / "common" / "task_interface").mkdir(parents=True)
    home = tmp_path / "src" / "a2a3" / "runtime" / "tensormap_and_ringbuffer" / "orchestration"
    shutil.copytree(sources.RUNTIME, home)
    monkeypatch.setenv("PTO_RUNTIME", str(tmp_path))
    return tmp_path


def view(array: np.ndarray) -> View:
    return View(Buffer(array.view(np.uint8).reshape(-1)), array.shape, "FLOAT32")


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
