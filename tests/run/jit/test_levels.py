"""Every level of processor gives the bits of the reference engine; ARM code can be emitted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from pto.core.errors import PtoError
from pto.run.jit.llvm import native
from tests.run.jit.levels import EXAMPLES

ROOT = Path(__file__).parents[3]
# "native" is what every other test runs on.
NEEDS = {"avx512": ("avx512f", "avx512vl"), "avx2": ("avx2", "fma"), "baseline": ()}


def run(level: str, *options: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.run.jit.levels", *options],
        cwd=ROOT,
        env={**os.environ, "PTO_JIT_CPU": level},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("level", list(NEEDS))
def test_programs_give_the_same_bits_on_every_level(level: str) -> None:
    host = llvm.get_host_cpu_features()
    if not all(host.get(name) for name in NEEDS[level]):
        pytest.skip(f"this processor has no {level}")
    # text for a processor without masked instructions is what an ARM processor gets
    options = ["--emit"] if level == "baseline" else []
    launches, texts, cpu = run(level, *options)
    assert int(launches) >= len(EXAMPLES)
    assert int(texts) > len(EXAMPLES)
    assert cpu == {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "baseline": "x86-64"}[level]


def test_a_level_that_is_none() -> None:
    with pytest.raises(PtoError, match="PTO_JIT_CPU=fast names no target; there is native"):
        native.Target("fast")
