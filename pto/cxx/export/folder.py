"""A launch as a folder for a board: a kernel, a host program, data, and a build file.

The folder is a system test in the form of pto-isa: it builds and runs by itself with `run.sh`,
inside `tests/npu/<arch>/src/st/testcase` with `run_st.py`, and here with `pto suite cxx`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.output import write_whole
from pto.cxx.export import SIGNALS, cpp
from pto.cxx.export.arguments import Argument, arguments
from pto.cxx.export.function import identifier
from pto.cxx.export.host import FILES, filled, free_name, launcher
from pto.cxx.provided import CORES
from pto.ir.graph import Module, Operation
from pto.isa.rules.rule import ASSERTED
from pto.observe import timing
from pto.plan.calls import FunctionNames, callees_first, entry_functions, sides
from pto.run.launch.call import Blocks, extents_of
from pto.run.machine.world import World
from pto.target.facts import Profile
from pto.target.profile import Target
from pto.transform.cores import CUBE, VECTOR, cores
from pto.transform.separate import separate
from pto.verify.program import judge


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder that was written."""

    path: Path
    name: str
    kind: str  # vec, cube or mix
    blocks: int
    profile: str
    device: str
    us: float | None  # the predicted time; of ranks none is
    ranks: tuple[tuple[Argument, ...], ...]  # the arguments of each

    @property
    def suite(self) -> str:
        return f"{self.name.upper()}Test"

    @property
    def on_ranks(self) -> bool:
        return len(self.ranks) > 1

    @property
    def takes_signals(self) -> bool:
        return self.arguments[0].name == SIGNALS

    @property
    def case(self) -> str:
        return f"case1_{len(self.ranks)}Ranks" if self.on_ranks else "case1"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the kernel, of the first rank."""
        return self.ranks[0]

    @property
    def arrays(self) -> list[Argument]:
        """Every array of the launch once."""
        return list({a.file: a for rank in self.ranks for a in rank if a.is_array}.values())

    @property
    def compared(self) -> str:
        """The arrays that are compared, and how closely."""
        files: dict[str, list[str]] = {}
        for a in self.arrays:
            if a.tolerance is not None:
                files.setdefault(str(a.tolerance), []).append(a.file)
        return "; ".join(f"{', '.join(group)} ({how})" for how, group in files.items())

    @property
    def predicted(self) -> str:
        return "no time predicted" if self.us is None else f"{self.us:.2f} us predicted"

    def __str__(self) -> str:
        many = "s" * (self.blocks != 1) + f" on {len(self.ranks)} ranks" * self.on_ranks
        return (
            f"{self.path}: {self.name} for {self.device}, {self.blocks} block{many},"
            f" {self.predicted}; compares {self.compared}"
        )


def export(
    modules: Sequence[Module],
    lists: Sequence[Sequence[Any]],
    out: Path,
    name: str,
    blocks: Blocks = 1,
    profile: str | None = None,
    device: str | None = None,
    world: World | None = None,
) -> Exported:
    """Write the folder of one launch. Nothing is written where something cannot be exported.

    `modules` and `lists` are the program and the arguments of each rank of a `world`; without one
    there is one of each.
    """
    module, *others = modules
    if any(other is not module for other in others):
        raise fail("PTO-U249", f"{name}: constants make the programs of ranks differ")
    if len(lists) != (many := 1 if world is None else len(world)):
        raise fail("PTO-U192", f"{len(lists)} lists of arguments for {many} ranks")
    target = _judged(module, profile, device)
    if target.profile.name not in CORES:
        why = f"profile {target.profile.name} is not a chip, so no board runs it"
        raise fail("PTO-C002", why, help="name a device, such as 910b1")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise fail("PTO-U330", f"{out} exists and is not empty", help="name a new folder")
    name = identifier(name)
    used = target.profile.name
    count = int(np.prod(extents_of(blocks)))
    split = separate(module, target.profile, entry_functions(module, None)).required()
    original, module = module, split.module
    lists = [split.arguments(rank, blocks) for rank in lists]
    if module is not original:
        _judged(module, profile, device)
    kind = _kind(entry_functions(module, None), target.profile)
    signals = kind == "mix" and used == "a2a3"  # cores signal each other through memory of the host
    kernel = cpp(module, target.profile, name, signals)
    ranks = arguments(original, module, lists, blocks, target.profile, world)
    how: dict[str, Any] = {"profile": used, "device": device, "data": True}
    us = None if world else timing.time(module, args=lists[0], blocks=blocks, **how).us
    memory = (Argument(SIGNALS, "uint64_t*", SIGNALS),) * signals
    entry = re.findall(r"^__global__ AICORE void (\w+)", kernel, re.MULTILINE)[-1]
    named = [
        [replace(a, name=free_name(a.name, ("stream", entry))) for a in rank] for rank in ranks
    ]
    all_arguments = tuple((*memory, *rank) for rank in named)
    folder = Exported(out, name, kind, count, used, device or used, us, all_arguments)
    _write(folder, kernel + launcher(folder, entry))
    return folder


def _kind(entries: Sequence[Operation], profile: Profile) -> str:
    """The cores of a kernel: those that a launch runs, or those of its instructions."""
    names = {s.name for s in sides(entries, profile)}
    if not names & {CUBE, VECTOR}:  # nothing declares a side
        names = {side for f, _ in callees_first(entries, FunctionNames()) for side in cores(f)}
    return "vec" if CUBE not in names else "mix" if VECTOR in names else "cube"


def _refused(finding: Diagnostic) -> Diagnostic:
    """A warning about what the library asserts as the error that its compiler gives."""
    if finding.severity == "error":
        return finding
    help_text = finding.help or "the headers assert it: an exported kernel would not compile"
    return replace(finding, severity="error", help=help_text)


def _judged(module: Module, profile: str | None, device: str | None) -> Target:
    """The target of a program without errors, and without what the library does not take."""
    target, findings = judge(module, profile=profile, device=device)
    serious = [d for d in findings if d.severity == "error" or d.code in ASSERTED]
    if errors := {
        (d.code, d.message, d.loc): _refused(d) for d in serious
    }:  # a line unrolled: once
        raise PtoError(*errors.values())
    return target


def _write(exported: Exported, kernel: str) -> None:
    files: dict[str, str | bytes] = {
        f"{exported.name}_kernel.cpp": kernel,
        **{file: filled(file, exported) for file in FILES},
    }
    for a in exported.arrays:
        for prefix, array in (("", a.value), ("golden_", a.expected)):
            if isinstance(array, np.ndarray):
                files[f"data/{prefix}{a.file}.bin"] = array.tobytes()
    (exported.path / "data").mkdir(parents=True)
    for name, content in files.items():
        write_whole(exported.path / name, content)
