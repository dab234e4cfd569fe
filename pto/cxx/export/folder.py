"""A launch as a folder for a board: a kernel, a host program, data, and a build file.

The folder is a system test in the form of pto-isa: it builds and runs by itself with `run.sh`,
inside `tests/npu/<arch>/src/st/testcase` with `run_st.py`, and here with `pto cxx st`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import PtoError, fail
from pto.core.output import write_whole
from pto.cxx.export import SIGNALS, cpp
from pto.cxx.export.function import identifier
from pto.cxx.export.host import build_file, data_script, host_program, launcher, readme, script
from pto.cxx.export.places import parameter_type
from pto.cxx.export.tolerance import ExportTolerance, tolerance
from pto.ir.graph import Module
from pto.isa.row.order import OpenQueue
from pto.isa.row.types import Ptr, Scalar
from pto.isa.rules.rule import LIBRARY
from pto.observe import timing
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import parameters
from pto.run.launch.call import Blocks, extents_of
from pto.run.launch.host import launch
from pto.target.profile import Target
from pto.transform.cores import CUBE, VECTOR, cores, uses_both
from pto.transform.split import split
from pto.verify.functions import name_of
from pto.verify.program import judge


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the kernel: an array by its files, or a number."""

    name: str
    type: str  # as the kernel of C++ declares it
    value: Any
    expected: Any = None  # an array after the run, where the kernel writes it
    tolerance: ExportTolerance | None = None

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, np.ndarray)


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder that was written."""

    path: Path
    name: str
    kind: str  # vec, cube or mix
    blocks: int
    profile: str
    device: str
    us: float  # the predicted time
    arguments: tuple[Argument, ...]

    @property
    def suite(self) -> str:
        return f"{self.name.upper()}Test"

    def __str__(self) -> str:
        compared = ", ".join(f"{a.name} ({a.tolerance})" for a in self.arguments if a.tolerance)
        return (
            f"{self.path}: {self.name} for {self.device}, {self.blocks} blocks,"
            f" {self.us:.1f} us predicted; compares {compared}"
        )


def export(
    module: Module,
    values: Sequence[Any],
    out: Path,
    *,
    name: str,
    blocks: Blocks = 1,
    profile: str | None = None,
    device: str | None = None,
) -> Exported:
    """Write the folder of one launch. Nothing is written where something cannot be exported."""
    target = _judged(module, profile, device)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise fail("PTO-U330", f"{out} exists and is not empty", help="name a new folder")
    name, used, count = identifier(name), target.profile.name, int(np.prod(extents_of(blocks)))
    whole, given, (first, *others) = module, list(values), entry_functions(module, None)
    if not others and uses_both(first):
        module, room = split(module, name_of(first), target.profile)
        given += [np.zeros(room // 4 * count, np.float32)] * bool(room)
        _judged(module, profile, device)
    sides = {side for f in entry_functions(module, None) for side in cores(f)}
    kind = "vec" if CUBE not in sides else "mix" if VECTOR in sides else "cube"
    signals = kind == "mix" and used == "a2a3"  # cores signal each other through memory of the host
    kernel = cpp(module, target.profile, name, signals)
    arguments = _arguments(whole, module, given, blocks, target)
    how: dict[str, Any] = {"profile": used, "device": device, "data": True}
    us = timing.time(module, args=given, blocks=blocks, **how).us
    arguments[:0] = [Argument(SIGNALS, "uint64_t*", SIGNALS)] * signals
    made = Exported(out, name, kind, count, used, device or used, us, tuple(arguments))
    entry = re.findall(r"^__global__ AICORE void (\w+)", kernel, re.MULTILINE)[-1]
    _write(made, kernel + launcher(made, entry))
    return made


def _judged(module: Module, profile: str | None, device: str | None) -> Target:
    """The target of a program without errors, and without what the library does not take."""
    target, found = judge(module, profile=profile, device=device)
    if errors := [d for d in found if d.severity == "error" or d.code == LIBRARY]:
        raise PtoError(*errors)
    for op in module.walk():
        if op.row is not None and op.row.family.section == "comm":
            message = f"'{op.name}' communicates between ranks, which is not exported"
            raise fail("PTO-U249", message, loc=op.loc)
    return target


def _arguments(
    whole: Module, module: Module, values: Sequence[Any], blocks: Blocks, target: Target
) -> list[Argument]:
    """The arguments of `module`, with what a launch of `whole`, as written, makes of each array.

    The bytes of arrays that hold the slots of queues are the library's own: they are not compared.
    """
    opened = [op for op in module.walk() if op.row and isinstance(op.row.order, OpenQueue)]
    used = [v for op in opened for v in op.operands if isinstance(v.type, Ptr)]
    slots = {v.origin(lambda op: op.traits.names_only).name for v in used}
    after = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
    count = len(parameters(*entry_functions(whole, None)))
    launch(whole, args=after[:count], blocks=blocks, profile=target.profile.name)
    found: list[Argument] = []
    params = parameters(*entry_functions(module, None))
    for param, old, new in zip(params, values, after, strict=True):
        made = Argument(param.name, parameter_type(param.type).replace("__gm__ ", ""), old)
        if made.is_array and old.tobytes() != new.tobytes() and param.name not in slots:
            element = getattr(param.type, "elem", None)
            how = tolerance(module, element.dtype if isinstance(element, Scalar) else None)
            made = replace(made, expected=new, tolerance=how)
        found.append(made)
    if not any(a.tolerance for a in found):
        raise fail("PTO-U249", "the launch changes no array: a board has nothing to compare")
    return found


def _write(made: Exported, kernel: str) -> None:
    files: dict[str, str | bytes] = {
        f"{made.name}_kernel.cpp": kernel,
        "main.cpp": host_program(made),
        "gen_data.py": data_script(made),
        "CMakeLists.txt": build_file(made),
        "run.sh": script(made),
        "README.md": readme(made),
    }
    for a in made.arguments:
        for prefix, array in (("", a.value), ("golden_", a.expected)):
            if isinstance(array, np.ndarray):
                files[f"data/{prefix}{a.name}.bin"] = array.tobytes()
    (made.path / "data").mkdir(parents=True)
    for name, content in files.items():
        write_whole(made.path / name, content)
