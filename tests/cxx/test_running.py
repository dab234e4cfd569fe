"""An interrupt ends compilers and kernels at once, with all that they have started."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from pto.cxx import running

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


def test_an_interrupt_ends_everything_and_nothing_begins(tmp_path: Path) -> None:
    files = [tmp_path / str(n) for n in range(5)]
    over = threading.Event()

    def interrupt() -> None:
        wait_until(lambda: files[0].exists() and files[1].exists())
        while not over.wait(0.5):  # Python drops one that falls into a finaliser
            os.kill(os.getpid(), signal.SIGINT)

    def work(file: Path) -> None:
        running.run([sys.executable, "-c", _TREE, str(file)], 600.0)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
    sender = threading.Thread(target=interrupt)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                running.each(work, files, jobs=2)
            finally:
                over.set()
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)
    assert [file.exists() for file in files] == [True, True, False, False, False]
    pids = [int(pid) for file in files[:2] for pid in file.read_text().split()]
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert running.run([sys.executable, "-c", "print(3)"], 60.0).stdout == "3\n", "not for ever"


def test_results_are_in_order() -> None:
    assert running.each(lambda n: n * n, range(5), jobs=3) == [0, 1, 4, 9, 16]
