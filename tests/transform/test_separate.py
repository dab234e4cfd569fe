"""A function for both cores is seen as two by everything that speaks of a chip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.graphs.runs import timed
from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.transform.separate import separate_all
from pto.transform.split import SLOTS_ARGUMENT

Capture = pytest.CaptureFixture[str]
NPUS = ("a2a3", "a5")
HALF, FLOAT = pto.Global[pto.f16], pto.Global[pto.f32]


@pto.kernel(profile="a2a3")
def doubled(a: HALF, b: HALF, c: FLOAT) -> None:
    i = pto.block_idx() * 32
    t = pto.dot(pto.load(a[i:, :], 32, 32), pto.load(b, 32, 32))
    pto.store(c[i:, :], t + t)


@pto.kernel(profile="a5")
def numbered(a: HALF, n: pto.Global[pto.i32], c: FLOAT) -> None:
    """The vector core reads the number that says what the cube multiplies: it stays whole."""
    row = isa.tgetval(pto.load(n, 1, 8), 0)
    pto.store(c, pto.exp(pto.dot(pto.load(a[row:, :], 32, 32), pto.load(a[0:32, :], 32, 32))))


def arrays() -> list[np.ndarray]:
    a = np.random.default_rng(3).standard_normal((64, 32)).astype(np.float16)
    return [a, a[:32].copy(), np.zeros((64, 32), np.float32)]


def text(kernel: pto.Kernel[...], folder: Path) -> str:
    """A file with the program of a kernel."""
    kernel[2](*arrays())
    path = folder / "k.pto"
    path.write_text(kernel.ir)
    return str(path)


@pytest.mark.parametrize("name", NPUS)
def test_a_launch_has_one_predicted_time(name: str, tmp_path: Path):
    kernel = doubled.on(name)[2]
    timing = kernel.time(*arrays())
    assert set(timing.busy) == {"cube", "vector"}, "no core has all pipes"
    assert kernel.export(*arrays(), out=str(tmp_path / "out")).us == timing.us
    graph = pto.graph()
    graph.submit(kernel, *arrays())
    slices = timed(graph.on_copies(), None)["slices"]
    cores = {"cube 0", "vector 0", "vector 1", "cube 1", "vector 2", "vector 3"}
    assert {core for _, _, core, _, _ in slices} == cores
    for *_, begin, end in slices:
        assert end - begin == pytest.approx(timing.core_us)  # their differences are rounded


@pytest.mark.parametrize("name", NPUS)
def test_commands_show_the_functions_of_both_cores(name: str, tmp_path: Path, capsys: Capture):
    file = text(doubled.on(name), tmp_path)
    for command in ("sync", "plan"):
        assert main([command, file, "--profile", name]) == 0
        shown = capsys.readouterr().out
        assert "doubled_cube" in shown, command
        assert "doubled_vector" in shown, command
    assert main(["plan", file, "--profile", name, "--entry", "doubled"]) == 0
    assert "doubled_vector" in capsys.readouterr().out


def test_the_cpu_has_one_core_with_all_pipes(tmp_path: Path, capsys: Capture):
    file = text(doubled.on("cpu"), tmp_path)
    assert main(["plan", file, "--profile", "cpu"]) == 0
    assert "doubled_cube" not in capsys.readouterr().out


@pytest.mark.parametrize("name", NPUS)
def test_order_is_proved_for_both_cores(name: str):
    shapes = [array.shape for array in arrays()]
    proofs = doubled.on(name)[2].prove(*shapes)
    assert {a.question: a.verdict for _, a in proofs}["order"] == "proved"
    (order,) = [a for _, a in proofs if a.question == "order"]
    assert not any("all pipes" in assumed for assumed in order.assumes)


def test_a_function_that_stays_whole_says_why(tmp_path: Path, capsys: Capture):
    why = "'pto.tgetval' gives the cube core a number of the other one"
    a, c = np.ones((64, 32), np.float16), np.zeros((32, 32), np.float32)
    n = np.zeros((1, 8), np.int32)
    assert any(why in note for note in numbered.time(a, n, c, data=True).notes)
    numbered(a, n, c)
    file = tmp_path / "k.pto"
    file.write_text(numbered.ir)
    main(["sync", str(file)])
    assert why in capsys.readouterr().err
    (order,) = [x for _, x in numbered.prove(a, n, c) if x.question == "order"]
    assert any(why in assumed for assumed in order.assumes)


def test_slots_in_global_memory_are_an_argument_of_the_launch(tmp_path: Path):
    program = parse(Path(text(doubled.on("a2a3"), tmp_path)).read_text())
    split = separate_all(program, profile("a2a3")).module
    for function in split.functions():
        assert function.regions[0].block.args[-1].name == SLOTS_ARGUMENT
