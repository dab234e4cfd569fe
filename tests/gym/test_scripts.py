"""Scripts of cases: what they see, how they end, and that they leave no trace in a checkout."""

import os
import sys
from pathlib import Path

import pytest

from pto.gym.scripts import TIMED_OUT, Scripts


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(params=["forked", "alone"])
def either(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "forked" and sys.platform != "linux":
        pytest.skip("forks only on Linux")
    made = Scripts(20, tmp_path / "cache", forks=request.param == "forked")
    yield made
    made.close()


def test_a_script_sees_a_fixed_seed_its_arguments_and_its_directory(
    either: Scripts, tmp_path: Path
):
    script = write(
        tmp_path / "a" / "b" / "s.py",
        "import os, sys\nstrict = os.environ['COMPARE_STRICT']\n"
        "print(hash('x'), sys.argv[1:], os.getcwd(), __name__, strict)",
    )
    first = either.run(script, tmp_path, ["one", "two"])
    second = either.run(script, tmp_path, ["one", "two"])
    assert first.code == 0
    assert first.output == second.output
    assert first.output.split(maxsplit=1)[1] == f"['one', 'two'] {tmp_path} __main__ 1\n"


def test_a_script_imports_from_its_folder_and_the_one_above(either: Scripts, tmp_path: Path):
    write(tmp_path / "up" / "above.py", "A = 3")
    write(tmp_path / "up" / "case" / "cases.py", "B = 4")
    script = write(
        tmp_path / "up" / "case" / "s.py", "import cases, above\nprint(above.A * cases.B)"
    )
    assert either.run(script, tmp_path).output == "12\n"
    assert list((tmp_path / "up").rglob("__pycache__")) == []


def test_modules_of_this_package_are_not_in_a_scripts_way(either: Scripts, tmp_path: Path):
    script = write(tmp_path / "case" / "s.py", "import pool")
    outcome = either.run(script, tmp_path)
    assert outcome.code == 1
    assert "No module named 'pool'" in outcome.output


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("import sys; sys.exit(2)", 2, ""),
        ("import sys; sys.exit('no luck')", 1, "no luck"),
        ("raise ValueError('bad')", 1, "ValueError: bad"),
        ("def f(:", 1, "SyntaxError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("import sys; print('to', file=sys.stderr)", 0, "to"),
        ("input()", 1, "EOFError"),
    ],
)
def test_how_a_script_ends(either: Scripts, tmp_path: Path, text: str, code: int, words: str):
    outcome = either.run(write(tmp_path / "c" / "s.py", text), tmp_path)
    assert outcome.code == code
    assert words in outcome.output


def test_a_script_that_does_not_end_is_ended(tmp_path: Path):
    for forks in {True, False} if sys.platform == "linux" else {False}:
        scripts = Scripts(0.5, tmp_path / "cache", forks=forks)
        outcome = scripts.run(
            write(tmp_path / "c" / "s.py", "import time; time.sleep(60)"), tmp_path
        )
        scripts.close()
        assert outcome.code == TIMED_OUT


def test_runs_of_one_script_come_in_order_and_apart(either: Scripts, tmp_path: Path):
    text = "import sys\nprint(sys.argv[1])\nsys.exit(int(sys.argv[1]))"
    script = write(tmp_path / "c" / "s.py", text)
    outcomes = either.run_all(script, tmp_path, [["0"], ["3"], ["0"], ["2"]])
    assert [o.code for o in outcomes] == [0, 3, 0, 2]
    assert [o.output for o in outcomes] == ["0\n", "3\n", "0\n", "2\n"]


def test_a_run_that_ends_its_process_costs_only_itself(either: Scripts, tmp_path: Path):
    text = "import os, sys\nprint(sys.argv[1], flush=True)\nif sys.argv[1] == 'b': os.abort()"
    script = write(tmp_path / "c" / "s.py", text)
    outcomes = either.run_all(script, tmp_path, [["a"], ["b"], ["c"]])
    assert [o.code == 0 for o in outcomes] == [True, False, True]
    assert outcomes[1].output.startswith("b\n")


def test_two_scripts_share_nothing(either: Scripts, tmp_path: Path):
    write(tmp_path / "one" / "cases.py", "N = 1")
    write(tmp_path / "two" / "cases.py", "N = 2")
    said = [
        either.run(write(tmp_path / f / "s.py", "import cases; print(cases.N)"), tmp_path).output
        for f in ("one", "two")
    ]
    assert said == ["1\n", "2\n"]


@pytest.mark.skipif(sys.platform != "linux", reason="the server is used on Linux")
def test_closing_ends_the_server(scripts: Scripts, tmp_path: Path):
    pid = scripts.run(write(tmp_path / "c" / "s.py", "import os; print(os.getppid())"), tmp_path)
    scripts.close()
    assert not Path(f"/proc/{int(pid.output)}").exists()
    assert int(pid.output) != os.getpid()
