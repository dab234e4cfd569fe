"""Child processes end with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pto.core import process

# A process that starts another, writes down both numbers and waits for ever.
_TREE = """
import os, subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1] + ".part", "w") as file: file.write(f"{os.getpid()} {inner.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds, seconds: float = 60.0) -> bool:
    waiting = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if holds():
            return True
        waiting.wait(0.05)
    return False


def pids_of(file: Path) -> list[int]:
    assert wait_until(file.exists)
    return [int(pid) for pid in file.read_text().split()]


def test_a_command_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "tree"
    with pytest.raises(subprocess.TimeoutExpired):
        process.run([sys.executable, "-c", _TREE, str(file)], 5.0)
    assert wait_until(lambda: not any(map(is_alive, pids_of(file))))


def test_a_process_that_waits_ends_when_all_end(tmp_path: Path) -> None:
    file = tmp_path / "tree"
    running = process.start([sys.executable, "-c", _TREE, str(file)])
    pids = pids_of(file)
    assert all(map(is_alive, pids))
    process.end_all()
    assert running.wait(60) == -signal.SIGKILL
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_status_and_text_of_a_command() -> None:
    code = "import sys; print(3); print(4, file=sys.stderr); sys.exit(5)"
    ended = process.run([sys.executable, "-c", code], 60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (5, "3\n", "4\n")


# A peer that starts another process and then stays in native code, which holds the interpreter.
_PEER = """
import os, re, subprocess, sys
from pto.core import process
process.parent_pipe()
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("pids.part", "w") as file: file.write(f"{os.getpid()} {inner.pid}")
os.rename("pids.part", "pids")
re.match("(a+)+$", "a" * 60 + "b")
"""
_PARENT = """
import subprocess, time
from pto.core.process import Peer, python_path
Peer("busy", env=python_path(), stdout=subprocess.DEVNULL, stderr=None)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe sends a signal of choice on Linux")
def test_a_peer_that_is_busy_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(_PEER)
    path = process.python_path()["PYTHONPATH"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), path])}
    parent = process.start([sys.executable, "-c", _PARENT], cwd=tmp_path, env=env)
    pids = pids_of(tmp_path / "pids")
    assert all(map(is_alive, pids))
    parent.kill()
    assert wait_until(lambda: not any(map(is_alive, pids)))
