"""Kernels that are programs in text form, called by C++ as pypto calls the output of `ptoas`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.cxx.program_calls import translate
from pto.graphs.process import ArgTensor, GraphProcess, GraphSource, KernelSource

from . import sources

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
)
PRODUCT = Path(__file__).with_name("product.pto").read_text(encoding="utf-8")
# As pypto wraps it.
_WRAPPER = """
#include "tensor.h"
static float* at(int64_t word)
{
    ChipTensor* t = (ChipTensor*)word;
    return (float*)t->buffer.addr + t->start_offset;
}
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) { %s }
"""
_CALLS = {
    "cube": ("aic", "cube(at(args[0]), at(args[1]));"),
    "vector": ("aiv", "vector(at(args[2]), at(args[1]), 2.5f, 16);"),
}
MIXED = """
    CoreTaskArgs a;
    a.add_input(x); a.add_inout(y); a.add_inout(given.tensor(2).ref());
    MixedKernels k; k.aic_kernel_id = 0; k.aiv0_kernel_id = 1; rt_submit_task(k, a);
"""


def written(folder: Path, text: str) -> GraphSource:
    """A graph with one task of a cube and a vector kernel."""
    program = folder / "ptoas" / "product.pto"
    program.parent.mkdir()
    program.write_text(text)
    own: list[KernelSource] = []
    for number, (name, (core, body)) in enumerate(_CALLS.items()):
        path = folder / f"{name}.cpp"
        path.write_text(translate(program) + _WRAPPER % body)
        own.append(KernelSource(number, name, path, core))
    return sources.written(folder, [MIXED], tuple(own))


def given() -> list[ArgTensor | int]:
    a, slots, y = (np.zeros((n, 16), np.float32) for n in (16, 256, 16))
    a[:] = np.arange(256).reshape(16, 16) % 7
    uses = {"a": (a, "in"), "slots": (slots, "inout"), "y": (y, "inout")}
    return [
        *(
            ArgTensor(n, v.view(np.uint8).ravel(), v.shape, "FLOAT32", u)
            for n, (v, u) in uses.items()
        ),
        0,
    ]


@pytest.mark.parametrize("watched", [False, True])
def test_both_sides_of_a_program_run_as_one_task(tmp_path: Path, watched: bool):
    with GraphProcess(written(tmp_path, PRODUCT)) as process:
        tensors = given()
        found = process.run(tensors, watched=watched).findings
    a, _, y = (t.data.view(np.float32).reshape(-1, 16) for t in tensors if isinstance(t, ArgTensor))
    assert np.array_equal(y, a @ a + 2.5)
    assert [d for d in found if d.severity == "error"] == []


def test_a_finding_names_the_line_of_the_program(tmp_path: Path):
    text = PRODUCT.replace("%add : !vec, f32", "%rows : !vec, index")
    line = 1 + text[: text.index("pto.tadds")].count("\n")
    with GraphProcess(written(tmp_path, text)) as process, pytest.raises(PtoError) as caught:
        process.run(given())
    loc = caught.value.diagnostics[0].loc
    assert loc is not None
    assert (loc.file, loc.line) == ("ptoas/product.pto", line)


def test_the_assembler_of_the_plugin_translates_files_and_reports_mistakes(tmp_path: Path):
    (tmp_path / "good.pto").write_text(PRODUCT)
    (tmp_path / "bad.pto").write_text("module {")
    text = (
        "import os, subprocess, pto.graphs.in_place\n"
        "for name in ('good', 'bad'):\n"
        "    ours = [os.environ['PTOAS_ROOT'] + '/ptoas', f'{name}.pto', '-o', f'{name}.cpp']\n"
        "    print(subprocess.run([*ours, '--pto-level=level3']).returncode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.split() == ["0", "1"], done.stderr
    assert "bad.pto:1" in done.stderr
    assert "machine::program(" in (tmp_path / "good.cpp").read_text()
    assert not (tmp_path / "bad.cpp").exists()
