"""The miniature checkout, made anew for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pto.gym.host.evaluator import KernelCall
from pto.gym.host.runtime import Directory
from pto.gym.hostfile import HostProgram, HostRun
from pto.gym.scripts import Scripts
from tests.gym import checkout as miniature


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return miniature.make(tmp_path / "gym")


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(30, tmp_path / "cache")
    yield made
    made.close()


Follow = Callable[..., tuple[HostRun, list[KernelCall]]]


@pytest.fixture
def follow(tmp_path: Path) -> Follow:
    """Follow a program given as text; the files it reads and writes are in `tmp_path / "data"`."""

    def run(text: str, case: str = "") -> tuple[HostRun, list[KernelCall]]:
        path = tmp_path / "main.cpp"
        path.write_text(text)
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        launches: list[KernelCall] = []
        return HostProgram([path]).run(Directory(data), launches.append, case), launches

    return run
