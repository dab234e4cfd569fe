"""`kernel.optimize`, `@pto.kernel(optimize=True)` and `pto opt FILE --device D`."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli.main import main
from pto.optimize import outcome
from pto.optimize.accept import Comparison, RejectedError, accepted
from pto.optimize.search import Search
from pto.target.profile import profile
from pto.transform.schedule import ProgramLaunch, scheduled, step
from tests.transform.launches import gemm, matrices

SHAPES = ((512, 512), (512, 512), (512, 512))


@pto.kernel(profile="a2a3")
def product(
    a: pto.Global[pto.f16, "m", "k"],
    b: pto.Global[pto.f16, "k", "n"],
    c: pto.Global[pto.f32, "m", "n"],
    rows: int = 32,
) -> None:
    i, j = pto.block_idx(0) * rows, pto.block_idx(1) * 64
    acc = pto.zeros(rows, 64, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], 32):
        acc += pto.load(a[i:, k:], rows, 32) @ pto.load(b[k:, j:], 32, 64)
    pto.store(c[i:, j:], acc)


@pytest.fixture(scope="module")
def fast() -> pto.OptimizedKernel[Any]:
    return product.optimize(*SHAPES, device="910b1")


def test_the_launch_is_faster_and_its_report_adds_up(fast: pto.OptimizedKernel[Any]):
    report = fast.report
    written = product.time(*SHAPES, blocks=(16, 8), device="910b1").us
    assert report.before.us == pytest.approx(written)
    assert report.after.us == pytest.approx(fast.time(*SHAPES).us)
    assert report.factor > 1.5
    assert [each.name for each in report.steps][1:] == [str(each) for each in report.schedule]
    assert report.steps[-1].us == report.after.us
    assert "order and absence of deadlock proved" in str(report)
    assert "equal bits on both engines" in str(report)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_bits_are_those_of_the_kernel_as_written(fast: pto.OptimizedKernel[Any], engine: str):
    a, b, c = matrices(512, 512, 512)
    wanted = c.copy()
    product[16, 8](a, b, wanted)
    fast(a, b, c, engine=engine)
    assert c.tobytes() == wanted.tobytes()
    again = np.zeros_like(c)
    fast[16, 8](a, b, again)  # the grid of the kernel as written means the same launch
    assert again.tobytes() == wanted.tobytes()


def test_constants_with_defaults_are_chosen_and_others_stay(fast: pto.OptimizedKernel[Any]):
    assert fast.report.constants["rows"] > 32
    assert fast.report.steps[0].name == f"rows={fast.report.constants['rows']}"
    stated = product.optimize(*SHAPES, 32, device="910b1")
    assert stated.report.constants == {}
    assert fast.report.after.us < stated.report.after.us < stated.report.before.us


@pto.kernel(profile="a2a3")
def summed(
    a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32], step: int = 16
) -> None:
    """The step along k is the order of the sum, so no other one has the same bits."""
    i = pto.block_idx() * 64
    acc = pto.zeros(64, 64, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], step):
        acc += pto.load(a[i:, k:], 64, step) @ pto.load(b[k:, :], step, 64)
    pto.store(c[i:, :], acc)


def test_a_constant_that_changes_bits_stays():
    shapes = (640, 256), (256, 64), (640, 64)
    fast = summed.optimize(*shapes, device="910b1", again=True)
    assert fast.report.constants == {"step": 16}
    assert fast.report.factor > 1.2


def test_a_cached_result_is_used_and_again_searches(monkeypatch: pytest.MonkeyPatch):
    first = product.optimize(*SHAPES, device="910b1")
    searched: list[Search] = []
    best = Search.best
    monkeypatch.setattr(Search, "best", lambda self: searched.append(self) or best(self))  # pyright: ignore
    assert product.optimize(*SHAPES, device="910b1").report == first.report
    assert not searched
    product.optimize(*SHAPES, device="910b1", again=True)
    product.optimize((512, 256), (256, 512), (512, 512), device="910b1", again=True)
    assert len(searched) == 2


def test_other_shapes_constants_and_grids_are_refused(fast: pto.OptimizedKernel[Any]):
    with pytest.raises(pto.PtoError, match="PTO-U275"):
        fast.time((512, 256), (256, 512), (512, 512))
    with pytest.raises(pto.PtoError, match="PTO-U275"):
        fast.time(*SHAPES, rows=64)
    with pytest.raises(pto.PtoError, match="PTO-U275"):
        fast[5](*matrices(512, 512, 512))


def test_a_decorated_kernel_is_timed_with_its_fastest_schedule(fast: pto.OptimizedKernel[Any]):
    marked = pto.kernel(profile="a2a3", optimize=True)(product.function)
    us = marked.time(*SHAPES, blocks=(16, 8), device="910b1").us
    assert fast.report.after.us <= us < 0.8 * fast.report.before.us  # a given grid keeps constants
    a, b, c = matrices(64, 64, 64)
    wanted = c.copy()
    product[2, 1](a, b, wanted)
    marked[2, 1](a, b, c)
    assert c.tobytes() == wanted.tobytes()


def test_a_rejected_program_leaves_the_kernel_as_it_is(monkeypatch: pytest.MonkeyPatch):
    def reject(*given: object) -> tuple[str, ...]:
        raise RejectedError("other bits")

    monkeypatch.setattr(outcome, "accepted", reject)
    kept = product.optimize((256, 256), (256, 256), (256, 256), device="910b1", again=True)
    assert kept.report.schedule == ()
    assert kept.report.after == kept.report.before
    assert "other bits; the program stays as it is" in str(kept.report)


def test_other_bits_are_rejected():
    args = matrices(64, 32, 96)
    before = ProgramLaunch(gemm.module(*args), 4)
    other = gemm.module(*args[:2], args[2], 32, 48, 32)  # another order of sums
    after = ProgramLaunch(other, 4)
    with pytest.raises(RejectedError, match="other bits"):
        accepted(before, after, profile("a2a3"), [Comparison(before, after, args)])
    kept, _ = scheduled(before, [step("slots=2")])
    checked = accepted(before, kept, profile("a2a3"), [Comparison(before, kept, args)])
    assert any("64x32" in words for words in checked)


def test_too_large_programs_are_not_chosen():
    """256x256 accumulators fill L0C: further slots of anything in L0 do not fit."""
    found = product.optimize((2048, 64), (64, 64), (2048, 64), device="910b1", rows=256, again=True)
    assert found.report.after.us <= found.report.before.us


def test_the_command_prints_the_program_and_its_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made = "import pto\n\n" + KERNEL
    (tmp_path / "k.py").write_text(made)
    call = ["opt", str(tmp_path / "k.py"), "--device", "910b1", "--explain"]
    for name in "abc":
        call += ["--arg", f"{name}=zeros:512x512"]
    assert main(call) == 0
    shown = capsys.readouterr()
    assert "func.func @product" in shown.out
    assert "910b1: " in shown.err
    assert "slots for each of" in shown.err
    out = tmp_path / "fast.pto"
    assert main([*call, "--format", "json", "-o", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    text = report["program"]
    assert out.read_text() == text
    blocks = str(report["blocks"])
    given = [each for each in call[4:] if each != "--explain"]
    time = ["time", str(out), *given, "--blocks", blocks, "--device", "910b1", "--format", "json"]
    assert main(time) == 0
    timed = json.loads(capsys.readouterr().out)["times"][0]
    assert timed["us"] == pytest.approx(report["after"]["us"], rel=1e-6)


KERNEL = """
@pto.kernel(profile="a2a3")
def product(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
    i, j = pto.block_idx(0) * 32, pto.block_idx(1) * 64
    acc = pto.zeros(32, 64, pto.f32, role="acc")
    for k in pto.range(0, a.shape[1], 32):
        acc += pto.load(a[i:, k:], 32, 32) @ pto.load(b[k:, j:], 32, 64)
    pto.store(c[i:, j:], acc)
"""


def test_the_command_takes_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    args = matrices(96, 128, 96)
    module = gemm.module(*args)
    file = tmp_path / "gemm.pto"
    file.write_text(pto.print_module(module))
    call = ["opt", str(file), "--device", "910b1", "--explain", "--format", "json"]
    call += ["--arg", "a=rand:96x128", "--arg", "b=rand:128x96", "--arg", "c=zeros:96x96"]
    assert main([*call, "--blocks", "6"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["after"]["us"] < report["before"]["us"]
    assert any("equal bits" in words for words in report["checked"])
