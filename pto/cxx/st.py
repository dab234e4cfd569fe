"""System tests of C++ PTO projects: a folder with a kernel, a host (`main.cpp`) and a generator.

The sources are built unchanged, against our header. The generator runs in a copy of the folder,
since some write into it. A case passes by its own check; in addition its outputs are compared with
the golden files bit by bit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pto.core import process
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.selection import select
from pto.cxx import compiler, provided
from pto.cxx.child import RANKS, Child, Crash
from pto.suite.case import Case, Suite, Workspace
from pto.suite.result import Result, Status

# The outcomes of a test. An output is compared with a golden file bit by bit.
STATUS: dict[str, Status] = {
    "exact": "passed",  # every output is equal to its golden file
    "near": "passed",  # by its own judge, which allows a difference
    "judged": "passed",  # by its own judge; it has no files to compare
    "wrong": "failed",  # by its own check
    "refused": "failed",  # the machine reports a finding
    "crashed": "failed",  # native code crashed or did not end
    "unbuilt": "failed",  # does not compile against our header
    "no data": "not run",  # it reads a file that its generator does not make
    "skipped": "skipped",  # by the test itself
}
# Runs a generator without our source tree on its path: our `tests` would hide its project's.
_GENERATOR = """
import os, runpy, sys
marks = "pyproject.toml", "pto/cxx/st.py"
ours = lambda p: all(os.path.exists(os.path.join(p, m)) for m in marks)
sys.argv, sys.path[:] = sys.argv[1:], [p for p in sys.path if not ours(p)]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_KINDS = {"vec": ("vector",), "cube": ("cube",), "mix": ("vector", "cube")}
_FOLDERS = re.compile(r"\$\{(?:PROJECT|CMAKE|CMAKE_CURRENT)_SOURCE_DIR\}(/[\w./-]*)")
_SCRIPTS = ("gen_data.py", "scripts/gen_data.py")
_LIBRARY = re.compile(r"add_library\(\s*(\w+)\s+SHARED\s+([\w.]+)\s*\)")
_COMPILED = re.compile(r"target_compile_options\(\s*(\w+)\b[^)]*?dav-\w+?-(vec|cube)\b")
_TEST = re.compile(r"^\s*TEST(?:_F)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestOptions:
    """Options of the command line for all folders."""

    profile: str | None = None
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    ranks: tuple[int, ...] = RANKS


@dataclass(frozen=True, slots=True)
class TestFolder:
    """One system test."""

    path: Path
    profile: str
    sides: tuple[str, ...]
    include: tuple[Path, ...]
    own: tuple[tuple[str, str], ...] = ()  # sources for a single side: (name, side)
    how: TestOptions = TestOptions()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def sources(self) -> list[Path]:
        """The sources, the kernel first: findings refer to it."""
        return sorted(self.path.glob("*.cpp"), key=lambda p: (p.name == compiler.HOST, p.name))

    @property
    def cases(self) -> list[str]:
        """Test names in the source text; tests from macros are known only after the build."""
        text = (self.path / compiler.HOST).read_text(encoding="utf-8", errors="replace")
        return [f"{suite}.{name}" for suite, name in _TEST.findall(text)] or ["main"]


def find(paths: Sequence[Path], how: TestOptions | None = None) -> list[TestFolder]:
    """Every folder with a main.cpp below these."""
    folders: list[TestFolder] = []
    for path in paths:
        if not path.is_dir():
            raise fail("PTO-U246", f"{path} is not a folder")
        for main in sorted(path.rglob(compiler.HOST)):
            folders.append(_folder(main.parent.resolve(), how or TestOptions()))
    if not folders:
        raise fail("PTO-U246", "no system test here: a system test is a folder with a main.cpp")
    return folders


def _folder(path: Path, how: TestOptions) -> TestFolder:
    parts = [p for p in path.parts if p in provided.profiles()]
    shared = [p / "common" for p in path.parents if (p / "common" / "test_common.h").exists()]
    lists = path / "CMakeLists.txt"
    text = lists.read_text(encoding="utf-8", errors="replace") if lists.exists() else ""
    built = next((p for p, core in provided.CORES.items() if core in text), "a2a3")
    chosen = how.profile or (parts[-1] if parts else built)
    kind = re.search(r"pto_(vec|cube|mix)_st|aicore-arch=dav-\w+?-(vec|cube)", text)
    sides_of_sources = _own_sides(text)
    sides = _KINDS[kind[1] or kind[2]] if kind and chosen != "cpu" else ("both",)
    if len({side for _, side in sides_of_sources}) > 1:
        sides = ("both",)
    include = (*how.include, path, *_included(path, text), path.parent, *shared)
    return TestFolder(path, chosen, sides, include, sides_of_sources, how)


def _included(path: Path, text: str) -> list[Path]:
    """Include folders of a CMakeLists.txt relative to it, without those of the library."""
    folders = (path / relative.strip("/") for relative in _FOLDERS.findall(text))
    return [
        f.resolve() for f in folders if f.is_dir() and not (f / "pto" / "pto-inst.hpp").exists()
    ]


def _own_sides(text: str) -> tuple[tuple[str, str], ...]:
    """Sources that a CMakeLists.txt compiles for one side: (name, side)."""
    sources = dict(_LIBRARY.findall(text))
    pairs = ((sources.get(name, ""), _KINDS[kind][0]) for name, kind in _COMPILED.findall(text))
    return tuple((source, side) for source, side in pairs if source)


def suite(
    folders: Sequence[TestFolder], expression: str, seconds: float, keep: Path | None = None
) -> Suite:
    """The folders as cases; each gives the results of its tests that match."""
    cases = [Case(str(f.path), f.name, f, results=len(f.cases)) for f in folders]
    return Suite("pto.cxx.st:run_folder", cases, (expression, seconds), seconds, keep)


def run_folder(
    settings: tuple[str, float], folder: TestFolder, work: Workspace
) -> Iterator[Result]:
    """The results of one folder, also if it cannot be built."""
    expression, seconds = settings
    selection = select(expression)

    def is_wanted(name: str) -> bool:
        full = f"{folder.name}/{name}"
        return selection.holds(full) and full not in work.skip

    done = set[str]()
    try:
        for result in _results(folder, is_wanted, seconds, work):
            done.add(result.name)
            yield result
    except PtoError as error:
        outcome = "crashed" if isinstance(error, Crash) else "unbuilt"
        for name in folder.cases:
            if is_wanted(name) and f"{folder.name}/{name}" not in done:
                yield _result(folder, name, outcome, error.diagnostics)


def _result(
    folder: TestFolder, name: str, outcome: str, findings: Sequence[Diagnostic], seconds: float = 0
) -> Result:
    full = f"{folder.name}/{name}"
    status = STATUS[outcome]
    return Result(full, str(folder.path), folder.name, status, outcome, seconds, tuple(findings))


def _results(
    folder: TestFolder, is_wanted: Callable[[str], bool], seconds: float, work: Workspace
) -> Iterator[Result]:
    if folder.cases and not any(map(is_wanted, folder.cases)):
        return
    builds: dict[str, Path] = {}
    for side in folder.sides:
        single_side = folder.own if side == "both" else ()
        build = compiler.Build(
            folder.sources,
            folder.profile,
            side,
            folder.include,
            folder.how.defines,
            own=single_side,
        )
        builds[side] = build.made()
    copy = work.folder / folder.name
    shutil.rmtree(copy, ignore_errors=True)  # of a process that crashed
    trouble = generate(folder, copy, seconds)
    (copy / "build").mkdir(exist_ok=True)
    child = Child(builds, folder.profile)
    try:
        for number, name in enumerate(child.ask("names", seconds)):
            if is_wanted(name):
                work.started(f"{folder.name}/{name}")
                result = _test(folder, child, copy, number, name, seconds)
                if trouble and result.outcome == "no data":
                    result = replace(result, diagnostics=(trouble,))
                yield result
    finally:
        child.end()


def generate(folder: TestFolder, work: Path, seconds: float) -> Diagnostic | None:
    """Run the generator in a copy of the folder; returns a finding if it fails."""
    shutil.copytree(folder.path, work)
    script = next((p for p in _SCRIPTS if (work / p).exists()), None)
    if script is None:
        return None
    above = [str(p) for p in list(folder.path.parents)[:6]]  # for modules shared by tests
    paths = os.pathsep.join([*above, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        ran = process.run(
            [sys.executable, "-c", _GENERATOR, script],
            seconds,
            cwd=work,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except subprocess.TimeoutExpired:
        return Diagnostic("PTO-U247", f"{script} did not end within {seconds:g} s")
    if ran.returncode == 0:
        return None
    last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
    return Diagnostic("PTO-U247", f"{script} failed: {last}")


def _test(
    folder: TestFolder, child: Child, work: Path, number: int, name: str, seconds: float
) -> Result:
    start = time.perf_counter()
    data = work if name == "main" else work / name
    before = _files(data)
    outcome = ""
    findings: tuple[Diagnostic, ...] = ()
    try:
        answer = child.ask(
            "test",
            seconds,
            number=number,
            folder=str(work / "build"),
            ranks=folder.how.ranks,
        )
        failures = answer["failures"]
        outcome = "skipped" if failures < 0 else "wrong" if failures else ""
        if answer["missing"] and outcome != "skipped":
            outcome = "no data"  # without files a check would pass on zeros
            lacks = f"no generator makes {answer['missing'].removeprefix('../')}, which it reads"
            findings = (Diagnostic("PTO-U247", lacks),)
    except PtoError as error:
        outcome = "crashed" if isinstance(error, Crash) else "refused"
        findings = error.diagnostics
    seconds_taken = time.perf_counter() - start
    return _result(folder, name, outcome or _compared(data, before), findings, seconds_taken)


def _files(folder: Path) -> dict[Path, float]:
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*.bin")} if folder.is_dir() else {}


def _compared(folder: Path, before: dict[Path, float]) -> str:
    """Compare outputs with golden files of similar names, or of equal size if there is one each."""
    now = _files(folder)
    outputs = [p for p, stamp in now.items() if before.get(p) != stamp]
    goldens = [p for p in now if "golden" in p.name.lower() and p not in outputs]
    if not outputs or not goldens:
        return "judged"
    same = True
    for output in outputs:
        twin = _golden_of(output, goldens, len(outputs))
        if twin is None:
            continue
        same &= output.read_bytes() == twin.read_bytes()
    return "exact" if same else "near"


def _golden_of(output: Path, goldens: Sequence[Path], outputs: int) -> Path | None:
    if len(goldens) == 1 and outputs == 1:
        return goldens[0]
    stem = output.stem.lower().replace("output", "").replace("out", "")
    for golden in goldens:
        if golden.stem.lower().replace("golden", "").replace("output", "") == stem:
            return golden
    return None
