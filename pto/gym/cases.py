"""The contents of a checkout: the programs below a path, their files and their names.

A program is a directory with host files, a generator, a judge and a kernel. It is one case, or one
for each row of its host file's table, which `hostfile` reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pto.core.errors import Diagnostic, fail
from pto.core.selection import Selection

_HOST = ("launch.cpp", "main.cpp")
_GENERATORS = ("gen_data.py", "golden.py")  # of a table of cases, of one case
_JUDGE = "compare.py"
_ROW = re.compile(r'\{\s*"([^"]*)"')  # how a row of a table starts
_PASSED_OVER = frozenset(("build", "__pycache__", "node_modules"))
_HIDDEN_PARTS = frozenset(("src", "testcase"))  # say nothing about a case


@dataclass(frozen=True, slots=True)
class GymProgram:
    """One directory of a checkout: its cases share a kernel file, a generator and a judge."""

    name: str
    family: str
    directory: Path
    kernel: Path
    generator: Path
    judge: Path
    host: tuple[Path, ...]
    has_table: bool  # the generator makes a directory for each case of a table
    problem: Diagnostic | None = None  # the reason if it cannot be run

    @property
    def weight(self) -> int:
        """An estimate of its run time, relative to other programs."""
        return self.host[-1].stat().st_size if self.problem is None else 0

    def case_name(self, case: str) -> str:
        return f"{self.name}/{case}" if case else self.name


def find_programs(path: Path, selection: Selection) -> list[GymProgram]:
    """The programs below `path` with a selected case, by name."""
    if not path.is_dir():
        raise fail("PTO-U060", f"{path} is not a directory", help="give the checkout of PTO-Gym")
    programs = sorted(_programs(path.resolve()), key=lambda p: p.name)
    if not programs:
        raise fail(
            "PTO-U060",
            f"there are no cases below {path}",
            help="a case is a directory with main.cpp, launch.cpp, compare.py, a generator and"
            " a .pto file",
        )
    return [p for p in programs if _may_hold(p, selection)]


def expected_cases(program: GymProgram, selection: Selection) -> int:
    """An estimate of the number of cases of a program, before its table is read."""
    if not program.has_table or program.problem is not None:
        return 1
    text = program.host[-1].read_text(encoding="utf-8", errors="replace")
    return sum(selection.holds(program.case_name(name)) for name in _ROW.findall(text))


def _may_hold(program: GymProgram, selection: Selection) -> bool:
    if not program.has_table or program.problem is not None:
        return selection.holds(program.name)
    text = program.host[-1].read_text(encoding="utf-8", errors="replace")
    return selection.may_hold(f"{program.name}/", text)


def _programs(root: Path) -> Iterator[GymProgram]:
    for folder, below, files in os.walk(root):
        below[:] = sorted(d for d in below if d not in _PASSED_OVER and not d.startswith("."))
        marks = [*_HOST, _JUDGE, *_GENERATORS]
        if sum(mark in files for mark in marks) >= 2:
            yield _program(Path(folder), set(files), root)


def _program(folder: Path, files: set[str], root: Path) -> GymProgram:
    name = _name_of(folder, root)
    generator = next((g for g in _GENERATORS if g in files), "")
    has_table = generator == _GENERATORS[0]
    kernels = sorted(f for f in files if f.endswith(".pto"))
    kernel = next((k for k in ("kernel.pto", f"{folder.name}.pto") if k in kernels), "")
    if not kernel and len(kernels) == 1:
        kernel = kernels[0]
    missing = [f for f in (*_HOST, _JUDGE) if f not in files]
    missing += ["gen_data.py or golden.py"] * (not generator) + ["a .pto file"] * (not kernel)
    problem = None
    if missing:
        sentence = f"{folder} is no complete case: {', '.join(missing)} is missing"
        problem = Diagnostic("PTO-U064", sentence)
    return GymProgram(
        name=name,
        family=name if has_table else name.rpartition("/")[0] or name,
        directory=folder,
        kernel=folder / kernel,
        generator=folder / generator,
        judge=folder / _JUDGE,
        host=tuple(folder / f for f in _HOST),
        has_table=has_table,
        problem=problem,
    )


def _name_of(folder: Path, root: Path) -> str:
    """The name of a folder, independent of where below a checkout the search began."""
    parts = folder.parts
    if "examples" in parts:
        last = len(parts) - 1 - parts[::-1].index("examples")
        below = parts[last + 1 :]
    else:
        below = folder.relative_to(root).parts
    return "/".join(p for p in below if p not in _HIDDEN_PARTS) or folder.name
