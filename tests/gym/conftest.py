"""The miniature checkout, made anew for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.cxx import compiler
from pto.gym.host import HostProgram, HostRun, KernelCall
from pto.gym.scripts import Scripts
from tests.gym import checkout as miniature


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return miniature.make(tmp_path / "gym")


@pytest.fixture
def cxx() -> None:
    """Skips aloud without a C++ compiler, which builds host programs."""
    try:
        compiler.find()
    except PtoError as error:
        pytest.skip(f"no C++ compiler: {error}")


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(30, tmp_path / "cache")
    yield made
    made.close()


RunHost = Callable[..., tuple[HostRun, list[KernelCall]]]


HOST = "#include <acl/acl.h>\n#include <test_common.h>\nusing namespace PtoTestCommon;\n"


@pytest.fixture
def host(tmp_path: Path, cxx: None) -> RunHost:
    """Run a program given as text; the files it reads and writes are in `tmp_path / "data"`."""

    def run(text: str, case: str = "") -> tuple[HostRun, list[KernelCall]]:
        path = tmp_path / "main.cpp"
        path.write_text(f"{HOST}#line 1\n{text}")
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        launches: list[KernelCall] = []
        return HostProgram([path]).run(data, launches.append, case), launches

    return run
