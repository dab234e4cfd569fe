"""Many programs in processes: order, losses, and what is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pto.core.selection import select
from pto.gym.cases import find_programs
from pto.gym.runner import Options, suite
from pto.suite import pool
from pto.suite.result import Result
from tests.gym.checkout import NAMES

pytestmark = pytest.mark.usefixtures("cxx")

ENGINES = "tests.gym.checkout:"


def run(checkout: Path, engine: str, jobs: int = 2, **options: object) -> list[Result]:
    keep = options.pop("keep", None)
    settings = Options(launch=ENGINES + engine, **options)  # type: ignore[arg-type]
    programs = find_programs(checkout, select(settings.expression))
    return pool.run(suite(programs, settings, keep), jobs)  # type: ignore[arg-type]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made, for looking at what stays."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_results_come_in_the_order_of_the_checkout(checkout: Path, temporary: Path):
    heard: list[str] = []
    programs = find_programs(checkout, select(""))
    options = Options(launch=ENGINES + "launch")
    results = pool.run(suite(programs, options), 2, lambda result: heard.append(result.name))
    assert [(r.name, r.status) for r in results] == [(name, "passed") for name in NAMES]
    assert sorted(heard) == sorted(NAMES)
    assert list(temporary.iterdir()) == []


def test_a_case_that_ends_its_process_costs_only_itself(checkout: Path, temporary: Path):
    results = {r.name: r for r in run(checkout, "launch_dying")}
    bad = results.pop("tileop/sum/f32_4x8")
    assert (bad.status, bad.diagnostics[0].code) == ("failed", "PTO-U069")
    assert "ended its process" in bad.diagnostics[0].message
    assert {r.status for r in results.values()} == {"passed"}
    assert sorted([*results, bad.name]) == sorted(NAMES)
    assert list(temporary.iterdir()) == []


def test_a_case_that_hangs_is_ended(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pto.suite.pool._GRACE", 0.0)
    results = {r.name: r for r in run(checkout, "launch_hanging", seconds=5.0)}
    bad = results.pop("tileop/sum/f32_4x8")
    assert bad.status == "failed"
    assert "longer than 5 seconds" in bad.diagnostics[0].message
    assert {r.status for r in results.values()} == {"passed"}


def test_kept_directories_hold_data_outputs_and_goldens(checkout: Path, tmp_path: Path):
    keep = tmp_path / "kept"
    stale = keep / "tileop__sum" / "of_an_earlier_run"
    stale.mkdir(parents=True)
    results = run(checkout, "launch", jobs=1, expression="sum and not part", keep=keep)
    assert [(r.name, r.status) for r in results] == [("tileop/sum/f32_4x8", "passed")]
    made = {p.name for p in (keep / "tileop__sum" / "f32_4x8").iterdir()}
    assert made == {"a.bin", "b.bin", "golden.bin", "output.bin"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(checkout: Path, temporary: Path, number: int):
    code = (
        "import signal\nfrom tests.gym.test_pool import run\nfrom pathlib import Path\n"
        # a shell that starts tests in the background has them ignore it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"if __name__ == '__main__':\n    run(Path({str(checkout)!r}), 'launch_hanging')\n"
    )
    script = temporary.parent / "interrupted.py"
    script.write_text(code)
    root = Path(__file__).parent.parent.parent
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(temporary.glob("pto-suite-*/tileop__sum/f32_4x8")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    assert process.wait(60) != 0
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.05)
