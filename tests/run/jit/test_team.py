"""Threads that wait in compiled code: errors, Python inside blocks, interrupts, forks, exits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

import pto
from pto.core.errors import PtoError
from pto.run.jit.runtime import team, threads
from tests import agreement

pytestmark = pytest.mark.skipif(not team.IS_SUPPORTED, reason="needs semaphores in memory")

# y[block] = x[block] ^ 0 ^ 1 ^ .. ^ turns[block] - 1; division by zero where x[block] is negative
WORK = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%x: !pto.ptr<i32>, %turns: !pto.ptr<i64>, %y: !pto.ptr<i32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %raw = pto.get_block_idx
    %k = arith.index_cast %raw : i64 to index
    %v = pto.load_scalar %x[%k] : !pto.ptr<i32> -> i32
    %bad = arith.cmpi slt, %v, %zero : i32
    scf.if %bad {
      %q = arith.divsi %v, %zero : i32
      pto.store_scalar %q, %y[%k] : !pto.ptr<i32>, i32
    }
    %n = pto.load_scalar %turns[%k] : !pto.ptr<i64> -> i64
    %m = arith.index_cast %n : i64 to index
    %all = scf.for %i = %c0 to %m step %c1 iter_args(%a = %v) -> (i32) {
      %j = arith.index_cast %i : index to i32
      %b = arith.xori %a, %j : i32
      scf.yield %b : i32
    }
    pto.store_scalar %all, %y[%k] : !pto.ptr<i32>, i32
    return
  }
}
"""
BLOCKS, ENDLESS = 400, 1 << 60


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the launches of teams. The smallest launch uses threads, in short chunks."""
    monkeypatch.setattr(agreement.STATE, "here", False)
    monkeypatch.setenv("PTO_THREADS", "5")
    for name in ("_LAUNCH", "_TRIAL", "_SHORT"):
        monkeypatch.setattr(threads, name, 0.0)
    found, run = Counter[str](), team.Team.run

    def noted(*given: Any) -> Any:
        found["team"] += 1
        return run(*given)

    monkeypatch.setattr(team.Team, "run", noted)
    return found


def arrays() -> tuple[Any, Any, Any]:
    x = np.arange(BLOCKS, dtype=np.int32)
    return x, np.full(BLOCKS, 4, np.int64), np.full(BLOCKS, -1, np.int32)


def launch(*args: Any, **options: Any) -> None:
    pto.launch(pto.parse(WORK), args=list(args), engine="jit", blocks=BLOCKS, **options)


def test_a_team_runs_every_block_once(counted: Counter[str]):
    x, turns, y = arrays()
    for _ in range(20):
        y[:] = -1
        launch(x, turns, y)
        assert np.array_equal(y, x)  # 0 ^ 1 ^ 2 ^ 3 is 0
    assert counted == {"team": 20}


@pytest.mark.parametrize("number", ["2", "3", "16", "61"])
def test_the_bits_do_not_depend_on_the_number_of_threads(
    number: str, monkeypatch: pytest.MonkeyPatch
):
    @pto.kernel(profile="a5")
    def softmax(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        i = pto.block_idx() * 4
        t = pto.load(x[i:, :], 4, 64)
        e = pto.exp(t - t.max(axis=1))
        pto.store(y[i:, :], e / e.sum(axis=1))

    x = np.random.default_rng(3).standard_normal((802, 64)).astype(np.float32)
    found: list[Any] = []
    for count in ("1", number):
        monkeypatch.setenv("PTO_THREADS", count)
        found.append(np.zeros_like(x))
        softmax[201](x, found[-1], engine="jit")
    assert np.array_equal(found[0], found[1])


def test_the_error_of_a_block_is_raised_and_the_team_works_again(counted: Counter[str]):
    x, turns, y = arrays()
    x[380] = -1
    for _ in range(3):
        with pytest.raises(PtoError, match="PTO-S132"):
            launch(x, turns, y)
    x[380] = 380
    launch(x, turns, y)
    assert np.array_equal(y, x)
    assert counted == {"team": 4}


@pytest.mark.parametrize("endless", [20, 200])
def test_an_error_ends_blocks_that_would_not_end(endless: int, counted: Counter[str]):
    x, turns, y = arrays()
    x[399], turns[endless] = -1, ENDLESS
    with pytest.raises(PtoError, match="PTO-S132"):
        launch(x, turns, y)
    assert counted == {"team": 1}


def test_a_timeout_ends_a_team(counted: Counter[str]):
    x, turns, y = arrays()
    turns[100:110] = ENDLESS
    with pytest.raises(PtoError, match="PTO-D114"):
        launch(x, turns, y, timeout=0.3)
    turns[:] = 4
    launch(x, turns, y, timeout=60)
    assert np.array_equal(y, x)
    assert counted == {"team": 2}


def test_blocks_may_call_python(counted: Counter[str]):
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%x: !pto.ptr<i32>) {
    %raw = pto.get_block_idx
    %k = arith.index_cast %raw : i64 to index
    %v = arith.trunci %raw : i64 to i32
    pto.print ins("block %d\\n", %v : i32)
    pto.store_scalar %v, %x[%k] : !pto.ptr<i32>, i32
    return
  }
}
"""
    x = np.zeros(50, np.int32)
    report = pto.launch(pto.parse(text), args=[x], engine="jit", blocks=50)
    assert np.array_equal(x, np.arange(50))
    assert "".join(map(str, report.printed)).count("block") == 50
    assert counted == {"team": 1}


def test_launches_of_several_threads_have_teams_of_their_own(counted: Counter[str]):
    wrong = list[int]()

    def go(n: int) -> None:
        x, turns, y = arrays()
        x += n
        for _ in range(10):
            launch(x, turns, y)
            if not np.array_equal(y, x):
                wrong.append(n)

    hosts = [threading.Thread(target=go, args=(n,)) for n in range(4)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join()
    assert not wrong
    assert counted == {"team": 40}


def test_a_child_has_a_team_of_its_own():
    x, turns, y = arrays()
    launch(x, turns, y)
    child = os.fork()
    if not child:
        y[:] = -1
        launch(x, turns, y)
        os._exit(0 if np.array_equal(y, x) else 1)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert status == 0


_SCRIPT = f"""
import numpy as np, pto
from pto.run.jit.runtime import threads
for name in ("_LAUNCH", "_TRIAL", "_SHORT"):
    setattr(threads, name, 0.0)
x, turns = np.arange({BLOCKS}, dtype=np.int32), np.full({BLOCKS}, 4, np.int64)
y, module = np.zeros({BLOCKS}, np.int32), pto.parse({WORK!r})
for turn in range(3):
    pto.launch(module, args=[x, turns, y], engine="jit", blocks={BLOCKS})
assert (x == y).all()
print("ready", flush=True)
try:
    turns[ENDLESS] = {ENDLESS}
    pto.launch(module, args=[x, turns, y], engine="jit", blocks={BLOCKS})
except KeyboardInterrupt:
    turns[:] = 4
    pto.launch(module, args=[x, turns, y], engine="jit", blocks={BLOCKS})
    assert (x == y).all()
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("endless", ["20:21", "100:300", "0:0"])
def test_an_interrupt_ends_a_team_and_python_ends_after_it(endless: str):
    """Of `0:0`, no block is endless: Python just ends, while threads wait."""
    script = _SCRIPT.replace("ENDLESS", endless)
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PTO_THREADS": "3"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    try:
        if endless != "0:0":
            time.sleep(0.5)
            run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)[0]
    finally:
        run.kill()
    assert said == ("" if endless == "0:0" else "interrupted\n")
    assert run.returncode == 0
