"""One task of a graph as a folder that runs alone: its kernels, arguments, inputs and results.

The folder has the form that pypto builds, so that `pto graph` and a board run it. Its inputs are
the buffers as they were before the task; its golden is what another run of the task gave.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pto.core.output import write_whole
from pto.cxx.source import read_included
from pto.graphs.diff import TASK, Recording, strided
from pto.graphs.model import Task, Use
from pto.graphs.process import GraphSource, KernelSource, included
from pto.graphs.scene_names import ELEMENTS

_ADDED = {
    Use.IN: "input",
    Use.OUT: "output",
    Use.INOUT: "inout",
    Use.OVERWRITE: "output",
    Use.UNTRACKED: "no_dep",
}
_CONFIG = """\
from pathlib import Path

from simpler.task_interface import ArgDirection as D

HERE = Path(__file__).parent
RUNTIME_CONFIG = {{"runtime": {runtime!r}}}
ORCHESTRATION = {{
    "source": str(HERE / "orchestration" / "task.cpp"),
    "function_name": "task",
    "signature": [{signature}],
}}
KERNELS = [
{kernels}]
"""
_GOLDEN = """\
from pathlib import Path

import numpy as np
import torch

DATA = Path(__file__).parent / "data"
TENSORS = {tensors!r}  # name, element type
__outputs__ = {outputs!r}
RTOL, ATOL = {rtol!r}, {atol!r}


def read(folder, name, element):
    raw = torch.from_numpy(np.fromfile(DATA / folder / f"{{name}}.bin", np.uint8))
    return raw.view(getattr(torch, element))


def generate_inputs(params):
    return [(name, read("in", name, element)) for name, element in TENSORS]


def compute_golden(tensors, params=None):
    for name, element in TENSORS:
        if name in __outputs__:
            tensors[name][:] = read("out", name, element)
"""


def write(
    folder: Path, source: GraphSource, ours: Path, theirs: Path, rtol: float, atol: float
) -> None:
    """Write the task that recording `ours` keeps; recording `theirs` has its golden."""
    task: Task = pickle.loads((ours / TASK).read_bytes())  # from our own child
    for name in ("orchestration", "data/in", "data/out"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    buffers = {a.region.buffer: a.region.element for a in reversed(task.arguments)}
    written = {a.region.buffer for a in task.arguments if a.use is not Use.IN}
    names = {number: f"buffer{number}" for number in sorted(buffers)}
    arrays = {n: np.fromfile(ours / f"{n}.bin", np.uint8) for n in names}
    for n, name in names.items():
        arrays[n].tofile(folder / "data" / "in" / f"{name}.bin")
    for region, values in Recording(theirs).results(task):
        view = strided(region, arrays[region.buffer])
        view[...] = values.reshape(view.shape)
    for n in written:
        arrays[n].tofile(folder / "data" / "out" / f"{names[n]}.bin")
    torch = {runtime: name for name, runtime in ELEMENTS.items()}
    golden = _GOLDEN.format(
        tensors=[(name, torch[buffers[n]]) for n, name in names.items()],
        outputs=[name for n, name in names.items() if n in written],
        rtol=rtol,
        atol=atol,
    )
    signature = ", ".join("D.INOUT" if n in written else "D.IN" for n in names)
    kernels = [k for k in source.kernels if k.number in task.kernels]
    meta = {"platform": source.profile, "runtime_root": str(source.root)}
    texts = {
        "orchestration/task.cpp": _orchestration(task, list(names)),
        "kernel_config.py": _CONFIG.format(
            runtime=source.runtime, signature=signature, kernels=_copied(kernels, folder)
        ),
        "golden.py": golden,
        "compiled_meta.json": json.dumps(meta, indent=1),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)


def _orchestration(task: Task, buffers: Sequence[int]) -> str:
    lines: list[str] = []
    for n, argument in enumerate(task.arguments):
        region = argument.region
        shape, strides = (", ".join(map(str, v)) for v in (region.extents, region.strides))
        reference = f"given.tensor({buffers.index(region.buffer)}).ref()"
        facts = f"DataType::{region.element}, {region.start}, {{{shape}}}, {{{strides}}}"
        lines.append(f"    const ChipTensor t{n} = region({reference}, {facts});\n")
        lines.append(f"    args.add_{_ADDED[argument.use]}(t{n});\n")
    lines += [f"    args.add_scalar(uint64_t({w & (2**64 - 1)}u));\n" for w in task.scalars]
    cube, first, second = (-1 if k is None else k for k in task.kernels)
    lines.append(f"    blocks(args.launch_spec, {task.blocks}, 0);\n")
    lines.append(f"    rt_submit_task(MixedKernels{{{cube}, {first}, {second}}}, args);\n")
    entry = 'extern "C" __attribute__((visibility("default"))) void task(const ChipTaskArgs& given)'
    body = f"{entry}\n{{\n    CoreTaskArgs args;\n{''.join(lines)}}}\n"
    return f"// {task.title}, alone.\n{included('alone.inc')}{body}"


def _copied(kernels: Sequence[KernelSource], folder: Path) -> str:
    """Copy kernels with the files that they include by quotes; returns their list for Python."""
    texts = {path: text for k in kernels for path, text in read_included(k.path).items()}
    top = os.path.commonpath([path.parent for path in texts])
    for path, text in texts.items():
        target = folder / "kernels" / path.relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    lines: list[str] = []
    for k in kernels:
        facts_of_kernel = {"func_id": k.number, "name": k.name, "core_type": k.core}
        include = [str(path.resolve()) for path in k.include]
        path = f'str(HERE / "kernels" / {str(k.path.resolve().relative_to(top))!r})'
        more = f'"extra_include_dirs": {include}, "source": {path}'
        lines.append(f"    {{**{facts_of_kernel}, {more}}},\n")
    return "".join(lines)
