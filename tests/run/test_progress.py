"""Progress: every finished block is told; a bar is shown on a terminal, and only of a long run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.ir.text.parser import parse_file
from pto.observe import sanitize
from pto.run.launch import progress
from pto.run.launch.host import launch


@pto.kernel
def count(x: pto.Global[pto.i32]) -> None:
    isa.store_scalar(x, pto.block_idx(), pto.scalar(1, pto.i32))


def test_each_block_is_told_once():
    x = np.zeros(5, np.int32)
    told: list[tuple[int, int]] = []
    launch(count.module(x), args=[x], blocks=5, progress=lambda *n: told.append(n))
    assert told == [(n, 5) for n in range(1, 6)]
    assert x.tolist() == [1] * 5


def test_a_kernel_tells_too():
    x = np.zeros(3, np.int32)
    told: list[tuple[int, int]] = []
    count.run(x, blocks=3, progress=lambda *n: told.append(n))
    assert told == [(1, 3), (2, 3), (3, 3)]


class Drawn:
    """Takes the place of the bar."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def add_task(self, what: str, total: int, completed: int) -> int:
        self.calls.append((what, (completed, total)))
        return 0

    def start(self) -> None:
        self.calls.append(("start", None))

    def stop(self) -> None:
        self.calls.append(("stop", None))

    def update(self, task: int, completed: int, total: int, description: str) -> None:
        self.calls.append(("update", (completed, total)))


def test_a_long_run_draws_and_cleans_up(monkeypatch: pytest.MonkeyPatch):
    drawn = Drawn()
    monkeypatch.setattr(progress, "_bar", lambda counts: drawn)
    with progress.ProgressBar(patience=0.0, first="compiling") as seen:
        deadline = time.monotonic() + 10
        while ("start", None) not in drawn.calls and time.monotonic() < deadline:
            time.sleep(0.001)
        while ("update", (2, 4)) not in drawn.calls and time.monotonic() < deadline:
            seen(2, 4)
    assert drawn.calls[0] == ("compiling", (0, 1))
    assert drawn.calls[1] == ("start", None)
    assert drawn.calls[-2:] == [("update", (2, 4)), ("stop", None)]


def test_the_command_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[int, int]] = []

    class Told(progress.ProgressBar):
        def _seen(self, done: int, total: int) -> None:
            told.append((done, total))

    monkeypatch.setattr("pto.cli.progress.ProgressBar", Told)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    add = Path(pto.__file__).parent.parent / "examples" / "add.pto"
    arrays = [word for n in "abc" for word in ("--arg", f"{n}=ones:48x64xf32")]
    assert main(["run", str(add), *arrays, "--arg", "rows=48", "--blocks", "3"]) == 0
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_short_run_draws_nothing(monkeypatch: pytest.MonkeyPatch):
    drawn = Drawn()
    monkeypatch.setattr(progress, "_bar", lambda counts: drawn)
    with progress.ProgressBar(patience=60.0) as seen:
        seen(1, 1)
    assert drawn.calls == []


K = """
import pto
@pto.kernel
def k(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    pto.store(y, pto.load(x, 8, 64) + 1.0)
"""


@pytest.mark.parametrize(
    ("command", "stages"),
    [
        (["prove"], ["tracing k", "proving"]),
        (["opt", "--device", "910b1"], ["searching"]),
        (["run"], ["tracing k", "blocks"]),
        (["run", "--quiet"], []),
    ],
)
def test_commands_show_their_stages_on_a_terminal(
    command: list[str], stages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text(K)
    shown: list[str] = []

    class Shown(progress.ProgressBar):
        def __enter__(self) -> progress.Progress:
            shown.append(self._noun)
            return super().__enter__()

    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("pto.cli.progress.ProgressBar", Shown)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    verb, *options = command
    arrays = ["--arg", "x=zeros:8x64", "--arg", "y=zeros:8x64"]
    assert main([verb, str(tmp_path / "k.py"), *arrays, *options]) == 0
    assert shown == stages


def test_a_stage_has_a_text_and_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn()
    counts: list[bool] = []
    monkeypatch.setattr(progress, "_bar", lambda counted: counts.append(counted) or drawn)
    with progress.ProgressBar("proving", 0.0, counts=False):
        deadline = time.monotonic() + 10
        while ("start", None) not in drawn.calls and time.monotonic() < deadline:
            time.sleep(0.001)
    assert drawn.calls == [("proving", (0, None)), ("start", None), ("stop", None)]
    assert counts == [False]


def test_a_pipe_sees_no_bar(capsys: pytest.CaptureFixture[str]):
    assert progress._bar() is None


def test_a_watched_run_tells_too() -> None:
    seen: list[tuple[int, int]] = []
    path = Path(__file__).parents[2] / "examples" / "add.pto"
    args = [*(np.ones((40, 64), np.float32) for _ in range(3)), 40]
    sanitize(parse_file(path), args=args, blocks=3, progress=lambda *done: seen.append(done))
    assert seen == [(1, 3), (2, 3), (3, 3)]
