"""Programs that do not end: timeouts and interrupts stop them, on both engines and on threads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.core.errors import PtoError
from tests import agreement

WHILE = """
module attributes {pto.target_arch = "a5"} {
  func.func @endless(%p: !pto.ptr<i32>, %go: i1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    pto.store_scalar %one, %p[%c0] : !pto.ptr<i32>, i32
    scf.while (%c = %go) : (i1) -> i1 {
      scf.condition(%c) %c : i1
    } do {
    ^bb0(%d: i1):
      scf.yield %d : i1
    }
    return
  }
}
"""
FOR = """
module attributes {pto.target_arch = "a5"} {
  func.func @endless(%p: !pto.ptr<i32>, %go: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = arith.constant 1000000000000000000 : index
    %one = arith.constant 1 : i32
    scf.for %i = %c0 to %end step %c1 {
      pto.store_scalar %one, %p[%c0] : !pto.ptr<i32>, i32
    }
    return
  }
}
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement.STATE, "here", False)  # not on both engines, one after the other


def timed_out(run: Any) -> PtoError:
    began = time.monotonic()
    with pytest.raises(PtoError) as caught:
        run()
    assert caught.value.code == "PTO-D114"
    assert time.monotonic() - began < 30
    return caught.value


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("text", [WHILE, FOR], ids=["while", "for"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_launch_that_takes_longer_than_its_timeout_ends(
    text: str, engine: str, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", "2")
    array = np.zeros(1, np.int32)
    options: dict[str, Any] = {"engine": engine, "blocks": blocks, "timeout": 0.3}
    error = timed_out(lambda: pto.launch(pto.parse(text), args=[array, True], **options))
    assert re.search("longer than its 0.3 s: block [01] still runs", str(error))


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_launch_within_its_timeout_is_as_without(engine: str) -> None:
    array = np.zeros(1, np.int32)
    pto.launch(pto.parse(WHILE), args=[array, False], engine=engine, timeout=60)
    assert array[0] == 1


def test_a_launch_of_a_stream_has_its_own_time() -> None:
    device = pto.Device("a5", engine="jit")
    device.stream().launch(WHILE, np.zeros(1, np.int32), True, timeout=0.2)
    timed_out(device.synchronize)


@pto.kernel(profile="a5")
def endless(x: pto.Global[pto.f32], n: pto.Scalar[pto.i64]) -> None:
    t = pto.tile(8, 64, pto.f32)
    for _ in pto.range(n):
        isa.tload(t, x)
        isa.tstore(x, t)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_kernel_of_python_has_a_timeout(engine: str) -> None:
    x = np.zeros((8, 64), np.float32)
    timed_out(lambda: endless(x, 1 << 40, engine=engine, timeout=0.2))
    endless(x, 3, engine=engine, timeout=60)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_a_time(timeout: float) -> None:
    with pytest.raises(PtoError, match="PTO-U094"):
        pto.launch(pto.parse(WHILE), args=[np.zeros(1, np.int32), False], timeout=timeout)


def test_the_command_has_a_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "endless.pto"
    path.write_text(WHILE)
    words = ["run", str(path), "--arg", "p=zeros:1xi32", "--arg", "go=1", "--timeout", "0.2"]
    assert main(words) == 1
    assert "error[PTO-D114]" in capsys.readouterr().err


_SCRIPT = """
import sys, numpy as np, pto
print("ready", flush=True)
try:
    args = [np.zeros(1, np.int32), True]
    module, args, blocks = pto.parse({text!r}), args, {blocks}
    {act}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


_ACTS = {
    "reference": "pto.launch(module, args=args, engine='reference', blocks=blocks)",
    "jit": "pto.launch(module, args=args, engine='jit', blocks=blocks)",
    "sanitizer": "pto.sanitize(module, args=args, blocks=blocks)",
    "timing": "from pto.observe import timing; timing.time(module, args=args, data=True)",
}


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("who", list(_ACTS))
def test_an_interrupt_ends_a_launch(who: str, blocks: int) -> None:
    script = _SCRIPT.format(text=WHILE, act=_ACTS[who], blocks=blocks)
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PTO_THREADS": "2"}
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    time.sleep(0.5)  # it compiles, and turns
    try:
        said = _interrupted(run)
    finally:
        run.kill()
    assert said == "interrupted\n"


def _interrupted(run: subprocess.Popen[str]) -> str:
    """What a process says after an interrupt. Python drops one that falls into a finaliser, so
    that a second one may be needed."""
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return run.communicate(timeout=30)[0]
    return "not interrupted"
