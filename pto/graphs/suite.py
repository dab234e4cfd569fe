"""Many scenes: each is built, run and judged by its own golden."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError
from pto.core.render import plain
from pto.cxx import running
from pto.cxx.child import Crash
from pto.graphs import folder
from pto.graphs import scene as scenes
from pto.graphs.chips import Worker
from pto.graphs.process import ArgTensor, Argument, GraphProcess

Case = scenes.Scene | folder.BuildFolder
STATUSES = {
    "passed": "every output matches the golden of the test",
    "ran": "ran to its end; the test has no golden",
    "checked": "the declarations of its tasks hold; no kernel was run",
    "wrong": "an output differs from the golden",
    "differs": "two orders that the edges allow give different bytes",
    "races": "the sanitizer reports an error between tasks",
    "refused": "the machine reports a finding",
    "crashed": "native code crashed or did not end",
    "unbuilt": "a source does not compile",
    "skipped": "the case cannot run here",
}
GOOD = ("passed", "ran", "checked", "skipped")
_CHIP = 2  # the level of tests that run on one chip
_LARGEST = 4 << 30  # bytes of all tensors of a case


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run of all scenes."""

    sanitize: bool = False
    orders: int = 0  # random orders tried besides the order of submission
    seconds: float = 300.0
    dry: bool = False  # the orchestration alone


@dataclass(slots=True)
class SceneResult:
    """The result of one scene."""

    name: str
    profile: str
    status: str
    why: str = ""
    tasks: int = 0
    edges: int = 0
    seconds: float = 0.0
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "findings": [plain(d) for d in self.findings]}


def find(
    paths: Iterable[Path], profile: str | None, wanted: Callable[[str], bool]
) -> Iterator[Case | SceneResult]:
    """Scenes and folders of pypto below these paths; a file that cannot be read is an outcome."""
    for path in paths:
        folders = folder.find(path)
        yield from (f for f in folders if wanted(f.name) and profile in (None, f.profile))
        files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        for file in files:
            try:
                found = [s for s in scenes.find(file, profile) if wanted(s.name)]
            except PtoError as error:
                if wanted(file.parent.name):
                    why = error.diagnostics[0].message
                    yield SceneResult(f"{file.parent.name}/{file.stem}", "", "skipped", why)
                continue
            yield from found


def run_all(
    found: Iterable[Case | SceneResult],
    how: RunOptions,
    jobs: int,
    seen: Callable[[SceneResult], None],
) -> list[SceneResult]:
    """Run scenes, some at a time; results in the order of `found`."""
    lock = threading.Lock()

    def one(each: Case | SceneResult) -> SceneResult:
        outcome = each if isinstance(each, SceneResult) else run(each, how, lock)
        seen(outcome)
        return outcome

    return running.each(one, found, jobs)


def run(scene: Case, how: RunOptions, lock: threading.Lock | None = None) -> SceneResult:
    """Run one scene. Python of the test runs under the lock: it changes what imports mean."""
    began = time.perf_counter()
    outcome = SceneResult(scene.name, scene.profile, "")
    lock = lock or threading.Lock()
    try:
        size = 0 if how.dry else _size(scene, lock)
        if size > _LARGEST:  # before its kernels are compiled
            outcome.status, outcome.why = "skipped", f"its tensors have {size >> 20:,} MiB"
        elif how.dry:
            _check(scene, how, outcome, lock)
        elif isinstance(scene, scenes.Scene) and scene.level != _CHIP:
            _run_chips(scene, how, outcome, lock)
        else:
            _run(scene, how, outcome, lock)
    except PtoError as error:
        is_build = error.diagnostics[0].code == "PTO-U243"
        outcome.status = "unbuilt" if is_build else "refused"
        outcome.findings = list(error.diagnostics)
        outcome.why = error.diagnostics[0].message
    except Crash as crash:
        outcome.status, outcome.findings = "crashed", [crash.finding]
        outcome.why = crash.finding.message
    outcome.seconds = time.perf_counter() - began
    return outcome


def _size(scene: Case, lock: threading.Lock) -> int:
    """Bytes of all tensors of a case; 0 if its test makes them in another way."""
    with lock, suppress(NotImplementedError):
        listed = scene.arguments(with_values=False).listed
        return sum(t.data.size for t in listed if isinstance(t, ArgTensor))
    return 0


def _run(scene: Case, how: RunOptions, outcome: SceneResult, lock: threading.Lock) -> None:
    process = GraphProcess(scene.source())
    with lock:
        arguments = scene.arguments()
    with process:
        given = arguments.copies()
        ran = process.run(given, seconds=how.seconds, watched=how.sanitize)
        outcome.tasks, outcome.edges, outcome.findings = ran.tasks, ran.edges, ran.findings
        _try_orders(process, arguments, given, how, outcome)
    if outcome.status:
        return
    if any(d.severity == "error" for d in ran.findings):
        outcome.status = "races"
        outcome.why = next(d.message for d in ran.findings if d.severity == "error")
        return
    arguments.listed = given
    with lock:
        outcome.why = scene.judge(arguments)
    outcome.status = "wrong" if outcome.why else "passed" if scene.has_golden else "ran"


def _run_chips(
    scene: scenes.Scene, how: RunOptions, outcome: SceneResult, lock: threading.Lock
) -> None:
    """Run the graphs that a scene submits to several chips."""
    programs = scene.programs
    worker = Worker(list(programs.values()), how.seconds)
    try:
        worker.start()
        with lock:
            outcome.why = scene.on_chips(worker, programs)
        outcome.status = "wrong" if outcome.why else "passed"
    except (PtoError, Crash, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # of the test's own Python, as pytest's Skipped
        outcome.status, outcome.why = "skipped", f"its Python needs more than is here: {error!r}"
    finally:
        worker.end()
    outcome.tasks, outcome.edges = worker.tasks, worker.edges


def _check(scene: Case, how: RunOptions, outcome: SceneResult, lock: threading.Lock) -> None:
    """Run the orchestration alone."""
    with lock:
        arguments = scene.arguments(with_values=False)
    with GraphProcess(scene.source(), kernels="none") as process:
        found = process.dry(arguments.listed, how.seconds)
    outcome.tasks, outcome.edges, outcome.findings = found.tasks, found.edges, found.findings
    errors = [d.message for d in found.findings if d.severity == "error"]
    outcome.status = "races" if errors else "checked"
    facts = [f"{found.slots:,} slots and {found.heap / (1 << 20):,.1f} MiB of a ring held at most"]
    facts += [f"{found.undecided:,} pairs need a run with values"] if found.undecided else []
    facts += [f"{found.assumed} values read as 0"] if found.assumed else []
    outcome.why = errors[0] if errors else "; ".join(facts)


def _try_orders(
    process: GraphProcess,
    arguments: scenes.Arguments,
    first: list[Argument],
    how: RunOptions,
    outcome: SceneResult,
) -> None:
    """Run again in other orders that the edges allow; every byte must be the same."""
    for seed in range(how.orders):
        again = arguments.copies()
        process.run(again, seed=seed, seconds=how.seconds)
        for a, b in zip(first, again, strict=True):
            if (
                isinstance(a, ArgTensor)
                and isinstance(b, ArgTensor)
                and not np.array_equal(a.data, b.data)
            ):
                count = int((a.data != b.data).sum())
                outcome.status = "differs"
                outcome.why = f"{a.name}: {count} bytes differ in the order of seed {seed}"
                return
