"""`pto tune`: a table of configurations, the choice kept, mistakes told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto.cli.main import main
from pto.lang.file import find_tunable

KERNELS = """
import pto
from pto import isa

@pto.kernel(profile="a2a3")
def scale(rows: int, x: pto.Global[pto.f32], y: pto.Global[pto.f32], factor: pto.Scalar[pto.f32]):
    i = pto.block_idx() * rows
    t = pto.tile(rows, 128, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tmuls(t, t, factor)
    isa.tstore(y[i:, :], t)

@pto.autotune({"rows": [16, 64]}, blocks=lambda config: 512 // config["rows"])
@pto.kernel(profile="a2a3")
def tuned(x: pto.Global[pto.f32], y: pto.Global[pto.f32], rows: int):
    i = pto.block_idx() * rows
    t = pto.tile(rows, 128, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tadd(t, t, t)
    isa.tstore(y[i:, :], t)
"""
ARRAYS = ["--arg", "x=rand:512x128", "--arg", "y=zeros:512x128"]
SCALE = [*ARRAYS, "--arg", "factor=2", "--blocks", "cdiv(x.shape[0], rows)"]
Tune = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "k.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture
def tune(file: Path, capsys: pytest.CaptureFixture[str]) -> Tune:
    def run(kernel: str, *words: str) -> tuple[int, str, str]:
        code = main(["tune", f"{file}:{kernel}", "-j", "1", *words])
        return code, *capsys.readouterr()

    return run


def test_a_table_with_the_fastest_first_and_reasons(tune: Tune) -> None:
    code, out, _ = tune("scale", *SCALE, "--space", "rows=4096,8,128")
    head, *lines, choice = out.splitlines()
    assert code == 0
    assert head.split() == ["configuration", "us", "bound"]
    assert {line.split()[0] for line in lines[:2]} == {"rows=128", "rows=8"}
    assert float(lines[0].split()[1]) < float(lines[1].split()[1])
    assert "larger than ub" in lines[2] and "PTO-M105" in lines[2]
    assert choice == f"scale: {lines[0].split()[0]}"


def test_what_was_found_is_kept_until_the_kernel_changes(tune: Tune, file: Path) -> None:
    words = ("scale", *SCALE, "--space", "rows=8,128")
    first, second, anew = tune(*words)[1], tune(*words)[1], tune(*words, "--again")[1]
    assert "as found before" in second
    assert second.splitlines()[:-1] == first.splitlines()[:-1]
    assert anew == first
    assert "as found before" not in tune(*words, "--rtol", "1e-3")[1]
    file.write_text(KERNELS.replace("tmuls(t, t, factor)", "tadds(t, t, factor)"))
    assert "as found before" not in tune(*words)[1]


def test_a_kernel_that_says_what_to_try_finds_the_choice_when_called(
    tune: Tune, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = tune("tuned", *ARRAYS, "--json")
    found = json.loads(out)
    assert code == 0
    assert {t["config"]["rows"] for t in found["trials"]} == {16, 64}
    assert found["us"] == min(t["us"] for t in found["trials"])
    monkeypatch.setattr("pto.lang.tune._all_tried", None)  # nothing is tried again
    x, y = np.ones((512, 128), np.float32), np.zeros((512, 128), np.float32)
    kernel = find_tunable(f"{file}:tuned")
    kernel(x, y)
    assert (y == 2).all()
    assert kernel.tuning(x, y).best == found["best"]  # type: ignore[union-attr]


def test_lines_as_they_come_and_shapes_alone(tune: Tune) -> None:
    code, out, _ = tune("tuned", *ARRAYS, "--space", "rows=32,16", "--shapes", "--format", "lines")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["config"] for line in lines] == [{"rows": 32}, {"rows": 16}]
    assert all(line["us"] > 0 for line in lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--space", "factor=1,2"], "factor cannot be tuned: it is an array or a number"),
        (["--space", "columns=1,2"], "columns cannot be tuned: it is no parameter of scale"),
        (["--space", "rows"], "`--space rows` is not a list of values"),
        (["--space", "rows=8", "--blocks", "cdiv(z, rows)"], "there is no z; there are"),
        (["--space", "rows=8", "--blocks", "open('f')"], "`open('f')` is more than + - * // %"),
        (
            ["--space", "rows=8", "--blocks", "x.shape[9]"],
            "x has 2 dimensions, not one of number 9",
        ),
        (["--space", "rows=8", "--blocks", "rows // 0"], "division"),
        (["--space", "rows=8", "--blocks", "8 *"], "it is not an expression"),
        ([], "there is nothing to try: scale has no @pto.autotune"),
    ],
)
def test_mistakes(words: list[str], said: str, tune: Tune) -> None:
    code, _, err = tune("scale", *SCALE, *words)
    assert code == 2
    assert said in err


def test_a_program_has_nothing_to_choose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "examples/add.pto"]) == 2
    assert "PTO-U272" in capsys.readouterr().err
