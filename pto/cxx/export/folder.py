"""A launch as a folder for a board: a kernel, a host program, data, and a build file.

The folder is a system test in the form of pto-isa: it builds and runs by itself with `run.sh`,
inside `tests/npu/<arch>/src/st/testcase` with `run_st.py`, and here with `pto cxx st`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.dtypes import DType
from pto.core.errors import PtoError, fail
from pto.core.output import write_whole
from pto.cxx.export import cpp
from pto.cxx.export.function import identifier
from pto.cxx.export.host import build_file, data_script, host_program, launcher, readme, script
from pto.cxx.export.places import parameter_type
from pto.cxx.export.tolerance import Tolerance, tolerance
from pto.ir.graph import Module
from pto.isa.row.order import Open
from pto.isa.row.pipe_of import pipe_of
from pto.isa.row.types import Ptr, Scalar, Type
from pto.isa.rules.rule import LIBRARY, Case
from pto.observe import timing
from pto.run.launch.arguments import parameters
from pto.run.launch.call import Blocks, extents_of
from pto.run.launch.entry import entry_functions
from pto.run.launch.host import launch
from pto.target.choose import Target
from pto.verify.operation import constant
from pto.verify.target import judge

_SIDES = {"M": "cube", "MTE1": "cube", "FIX": "cube", "V": "vector"}
_KINDS: dict[tuple[str, ...], str] = {
    ("vector",): "vec",
    ("cube",): "cube",
    ("cube", "vector"): "mix",
    (): "vec",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the kernel: an array by its files, or a number."""

    name: str
    type: str  # as the kernel of C++ declares it
    value: Any
    expected: Any = None  # an array after the run, where the kernel writes it
    tolerance: Tolerance | None = None

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
        compared = ", ".join(
            f"{a.name} ({a.tolerance})" for a in self.arguments if a.tolerance is not None
        )
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
    target, found = judge(module, profile=profile, device=device)
    errors = [d for d in found if d.severity == "error" or d.code == LIBRARY]
    if errors:
        raise PtoError(*errors)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise fail("PTO-U330", f"{out} exists and is not empty", help="name a new folder")
    kernel, kind = cpp(module, target.profile, name), _kind(module, target)
    arguments = _arguments(module, values, blocks, target)
    count = int(np.prod(extents_of(blocks)))
    shown: dict[str, Any] = {"profile": target.profile.name, "device": device}
    us = timing.time(module, args=list(values), blocks=blocks, data=True, **shown).us
    label = device or target.profile.name
    made = Exported(
        out, identifier(name), kind, count, target.profile.name, label, us, tuple(arguments)
    )
    entry = (
        next(line for line in reversed(kernel.splitlines()) if line.startswith("__global__"))
        .partition("void ")[2]
        .partition("(")[0]
    )
    _write(made, kernel + launcher(made, entry))
    return made


def _kind(module: Module, target: Target) -> str:
    """The cores that run the program. One function cannot order pipes of two cores by flags."""
    sides: set[str] = set()
    for function in entry_functions(module, None):
        here: dict[str, Any] = {}
        for op in function.walk():
            if op.row is None or op.control is not None:
                continue
            side = _SIDES.get(pipe_of(Case(op, op.row, target.profile, constant)))
            if side is not None:
                here.setdefault(op.side() or "", {}).setdefault(side, op)
        for said, used in here.items():
            other = next(
                (op for side, op in used.items() if len(used) > 1 and side != "cube"), None
            )
            if other is not None and not said:
                first = used["cube"]
                raise fail(
                    "PTO-U249",
                    f"'{first.name}' runs on the cube core and '{other.name}' on the vector core:"
                    " one function cannot order them by flags",
                    loc=other.loc,
                    help="write a function for each side and pass tiles by a queue: pto.pair",
                )
            sides |= set(used)
    return _KINDS[tuple(sorted(sides))]


def _arguments(
    module: Module, values: Sequence[Any], blocks: Blocks, target: Target
) -> list[Argument]:
    entries = entry_functions(module, None)
    params = parameters(*entries)
    before = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
    after = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
    launch(module, args=after, blocks=blocks, profile=target.profile.name)
    rooms = _queue_memory(module)
    found: list[Argument] = []
    for param, old, new in zip(params, before, after, strict=True):
        type = _declared(param.type)
        if not isinstance(old, np.ndarray):
            found.append(Argument(param.name, type, old))
            continue
        written = old.tobytes() != new.tobytes() and param.name not in rooms
        how = tolerance(module, _element(param.type)) if written else None
        found.append(Argument(param.name, type, old, new if written else None, how))
    if not any(a.tolerance is not None for a in found):
        raise fail("PTO-U249", "the launch changes no array: a board has nothing to compare")
    return found


def _element(type: Type) -> DType | None:
    return type.elem.dtype if isinstance(type, Ptr) and isinstance(type.elem, Scalar) else None


def _declared(type: Type) -> str:
    return parameter_type(type).replace("__gm__ ", "")


def _queue_memory(module: Module) -> set[str]:
    """Arrays that hold the slots of queues: their bytes are the library's own."""
    found: set[str] = set()
    for op in module.walk():
        if op.row is not None and isinstance(op.row.order, Open):
            found |= {v.name for v in op.operands if isinstance(v.type, Ptr)}
    return found


def _write(made: Exported, kernel: str) -> None:
    made.path.mkdir(parents=True, exist_ok=True)
    data = made.path / "data"
    data.mkdir()
    for a in made.arguments:
        if a.is_array:
            write_whole(data / f"{a.name}.bin", np.ascontiguousarray(a.value).tobytes())
        if a.expected is not None:
            write_whole(data / f"golden_{a.name}.bin", np.ascontiguousarray(a.expected).tobytes())
    texts = {
        f"{made.name}_kernel.cpp": kernel,
        "main.cpp": host_program(made),
        "gen_data.py": data_script(made),
        "CMakeLists.txt": build_file(made),
        "run.sh": script(made),
        "README.md": readme(made),
    }
    for name, text in texts.items():
        write_whole(made.path / name, text)
