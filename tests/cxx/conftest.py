"""C++ kernels in tests: written to a folder, compiled where there is a compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.cxx import compiler
from pto.cxx.kernel import CppKernel, cpp

HEAD = "#include <pto/pto-inst.hpp>\nusing namespace pto;\n"


@pytest.fixture
def a_compiler() -> None:
    """Skips aloud without a C++ compiler."""
    try:
        compiler.find()
    except PtoError as error:
        pytest.skip(f"no C++ compiler: {error}")


@pytest.fixture
def kernel(tmp_path: Path, a_compiler: None) -> Callable[..., CppKernel]:
    """`kernel(text, entry)`, where there is a C++ compiler."""

    def make(text: str, entry: str = "k", profile: str = "a2a3", **options: object) -> CppKernel:
        path = tmp_path / "kernel.cpp"
        path.write_text(HEAD + text, encoding="utf-8")
        return cpp(path, profile=profile, **options)[entry]

    return make
