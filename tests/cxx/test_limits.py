"""Builds and loads of C++ kernels that are cut off, and kernels that a condition leaves out."""

from __future__ import annotations

import tempfile
import time

import numpy as np
import pytest

from pto.cli.main import main
from pto.core.errors import PtoError
from pto.cxx import compiler

_ENDLESS = """
static int endless() { for (volatile int i = 0;; ++i) {} }
static int value = endless();
__global__ AICORE void k(__gm__ float* x) { x[0] = value; }
"""


def test_a_static_initialiser_that_loops_ends_in_time(kernel):
    """It runs when the process loads the kernel, before any request."""
    for call in ("run", "sanitize", "time"):
        start = time.monotonic()
        with pytest.raises(PtoError, match="did not end within 1 s"):
            getattr(kernel(_ENDLESS), call)(np.zeros(8, np.float32), timeout=1)
        assert time.monotonic() - start < 200  # the default limit is 600 s


@pytest.mark.parametrize("command", [["run"], ["run", "--time"], ["sanitize"]], ids=" ".join)
def test_a_command_limits_the_loading_too(command, tmp_path, capsys):
    """The names of parameters are asked for before the launch."""
    file = tmp_path / "endless.cpp"
    file.write_text(_ENDLESS)
    start = time.monotonic()
    verb, *options = command
    assert main([verb, str(file), *options, "--arg", "x=zeros", "--timeout", "1"]) == 1
    assert "did not end within 1 s" in capsys.readouterr().err
    assert time.monotonic() - start < 200


def test_a_compiler_that_is_cut_off_leaves_no_file(kernel, monkeypatch, tmp_path):
    text = """
constexpr long slow() {  // seconds of a compiler on any machine
  long sum = 0;
  for (long i = 0; i < 100; ++i)
    for (long j = 0; j < 25000; ++j) sum += i ^ j;
  return sum;
}
__global__ AICORE void k(__gm__ float* x) { constexpr long sum = slow(); x[0] = sum; }
"""
    fresh = kernel(text)  # the compiler's own files are in the folder of the kernel
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    monkeypatch.setenv("TMPDIR", str(room))
    monkeypatch.setattr(compiler, "_SECONDS", 0.3)
    with pytest.raises(PtoError, match=r"did not end within 0\.3 s"):
        fresh.run(np.zeros(8, np.float32))
    assert list(room.iterdir()) == []


def test_a_kernel_that_a_condition_leaves_out_is_told_with_the_condition(kernel):
    text = """
#ifdef __CCE__
#else
#if defined(FAST) && __SLOW__  // both
template <typename T> __global__ AICORE void k(__gm__ T* x) {}
#endif
#endif
"""
    with pytest.raises(PtoError, match="does not mention it") as caught:
        kernel(text)(np.zeros(8, np.float32))
    notes = [(note.message, note.loc.line) for note in caught.value.diagnostics[0].notes]
    assert notes == [
        ("the kernel stands under `#else` of `#ifdef __CCE__`", 5),
        ("the kernel stands under `#if defined(FAST) && __SLOW__`", 6),
    ]
