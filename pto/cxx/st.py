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
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.render import plain
from pto.core.selection import select
from pto.cxx import compiler, provided, running
from pto.cxx.child import RANKS, Child, Crash
from pto.run.launch.engine import cluster_target

STATUSES = {
    "exact": "passes, every output equal to its golden file, bit for bit",
    "near": "passes by its own judge, which allows a difference",
    "judged": "passes by its own judge; it has no files to compare",
    "wrong": "its own judge says no",
    "refused": "the machine reports a finding",
    "crashed": "native code crashed or did not end",
    "unbuilt": "does not compile against our header",
    "no data": "it reads a file that its generator does not make",
    "skipped": "the test skips itself",
}
PASSED = ("exact", "near", "judged")
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


@dataclass(slots=True)
class CaseResult:
    """The result of one case."""

    folder: str
    name: str
    status: str
    seconds: float = 0.0
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    node: str = ""  # of a cluster

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "findings": [plain(d) for d in self.findings]}


def find(paths: Sequence[Path], how: TestOptions | None = None) -> list[TestFolder]:
    """Every folder with a main.cpp below these."""
    found: list[TestFolder] = []
    for path in paths:
        if not path.is_dir():
            raise fail("PTO-U246", f"{path} is not a folder")
        for main in sorted(path.rglob(compiler.HOST)):
            found.append(_folder(main.parent.resolve(), how or TestOptions()))
    if not found:
        raise fail("PTO-U246", "no system test here: a system test is a folder with a main.cpp")
    return found


def _folder(path: Path, how: TestOptions) -> TestFolder:
    parts = [p for p in path.parts if p in provided.profiles()]
    shared = [p / "common" for p in path.parents if (p / "common" / "test_common.h").exists()]
    lists = path / "CMakeLists.txt"
    text = lists.read_text(encoding="utf-8", errors="replace") if lists.exists() else ""
    built = next((p for p, core in provided.CORES.items() if core in text), "a2a3")
    chosen = how.profile or (parts[-1] if parts else built)
    kind = re.search(r"pto_(vec|cube|mix)_st|aicore-arch=dav-\w+?-(vec|cube)", text)
    own = _own_sides(text)
    sides = _KINDS[kind[1] or kind[2]] if kind and chosen != "cpu" else ("both",)
    if len({side for _, side in own}) > 1:
        sides = ("both",)
    include = (*how.include, path, *_included(path, text), path.parent, *shared)
    return TestFolder(path, chosen, sides, include, own, how)


def _included(path: Path, text: str) -> list[Path]:
    """Include folders of a CMakeLists.txt relative to it, without those of the library."""
    found = (path / each.strip("/") for each in _FOLDERS.findall(text))
    return [f.resolve() for f in found if f.is_dir() and not (f / "pto" / "pto-inst.hpp").exists()]


def _own_sides(text: str) -> tuple[tuple[str, str], ...]:
    """Sources that a CMakeLists.txt compiles for one side: (name, side)."""
    sources = dict(_LIBRARY.findall(text))
    found = ((sources.get(name, ""), _KINDS[kind][0]) for name, kind in _COMPILED.findall(text))
    return tuple((source, side) for source, side in found if source)


def run(
    folders: Sequence[TestFolder],
    expression: str,
    jobs: int,
    seconds: float,
    report: Callable[[CaseResult], bool | None],
) -> list[CaseResult]:
    """Run the matching cases, `jobs` folders at a time; `report` is called with each result and
    stops everything by returning True."""
    shared = (expression, seconds)
    if cluster_target() is not None:  # its machines have the folders under the same paths
        from pto.cluster import tasks

        answers = tasks.cases("pto.cxx.st:work_for", folders, shared, _lost, streams=True)
        if answers is not None:
            found: list[tuple[int, CaseResult]] = []
            with closing(answers):
                for each in answers:
                    found.append(each)
                    if report(each[1]):
                        break
            return [case for _, case in sorted(found, key=lambda each: each[0])]
    stop = threading.Event()

    def work(folder: TestFolder) -> list[CaseResult]:
        out: list[CaseResult] = []
        for case in () if stop.is_set() else work_for(shared, folder):
            out.append(case)
            if report(case):
                stop.set()
            if stop.is_set():
                break
        return out

    return [case for cases in running.each(work, folders, jobs) for case in cases]


def _lost(folder: TestFolder, why: str) -> CaseResult:
    found = [Diagnostic("PTO-U306", f"{folder.name}: {why}")]
    return CaseResult(folder.name, "", "crashed", findings=found)


def work_for(shared: tuple[str, float], folder: TestFolder) -> Iterator[CaseResult]:
    """The results of one folder, also if it cannot be built."""
    expression, seconds = shared
    wanted, done = select(expression).holds, set[str]()
    try:
        for case in _cases(folder, wanted, seconds):
            done.add(case.name)
            yield case
    except PtoError as error:
        status = "crashed" if isinstance(error, Crash) else "unbuilt"
        for name in folder.cases:
            if name not in done and wanted(f"{folder.name}/{name}"):
                yield CaseResult(folder.name, name, status, findings=list(error.diagnostics))


def _cases(
    folder: TestFolder, wanted: Callable[[str], bool], seconds: float
) -> Iterator[CaseResult]:
    if folder.cases and not any(wanted(f"{folder.name}/{name}") for name in folder.cases):
        return
    builds: dict[str, Path] = {}
    for side in folder.sides:
        given = (folder.sources, folder.profile, side, folder.include, folder.how.defines)
        own = folder.own if side == "both" else ()
        builds[side] = compiler.Build(*given, own=own).made()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / folder.name
        trouble = generate(folder, work, seconds)
        (work / "build").mkdir(exist_ok=True)
        child = Child(builds, folder.profile)
        try:
            for number, name in enumerate(child.ask("names", seconds)):
                if not wanted(f"{folder.name}/{name}"):
                    continue
                case = _case(folder, child, work, number, name, seconds)
                if trouble and case.status == "no data":
                    case.findings = [trouble]
                yield case
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
        ran = running.run(
            [sys.executable, "-c", _GENERATOR, script],
            seconds,
            cwd=work,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except subprocess.TimeoutExpired:
        return Diagnostic("PTO-U247", f"{script} did not end within {seconds:g} s")
    if ran.returncode == 0:
        return None
    last = (ran.stderr.strip().splitlines() or ["it says nothing"])[-1]
    return Diagnostic("PTO-U247", f"{script} failed: {last}")


def _case(
    folder: TestFolder, child: Child, work: Path, number: int, name: str, seconds: float
) -> CaseResult:
    start = time.perf_counter()
    place = work if name == "main" else work / name
    before = _files(place)
    status, findings = "", list[Diagnostic]()
    try:
        given = {"number": number, "folder": str(work / "build"), "ranks": folder.how.ranks}
        answer = child.ask("test", seconds, **given)
        failures = answer["failures"]
        status = "skipped" if failures < 0 else "wrong" if failures else ""
        if answer["missing"] and status != "skipped":
            status = "no data"  # without files a check would pass on zeros
            lacks = f"no generator makes {answer['missing'].removeprefix('../')}, which it reads"
            findings = [Diagnostic("PTO-U247", lacks)]
    except PtoError as error:
        status = "crashed" if isinstance(error, Crash) else "refused"
        findings = list(error.diagnostics)
    if not status:
        status = _compared(place, before)
    return CaseResult(folder.name, name, status, time.perf_counter() - start, findings)


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
    own = output.stem.lower().replace("output", "").replace("out", "")
    for golden in goldens:
        if golden.stem.lower().replace("golden", "").replace("output", "") == own:
            return golden
    return None
