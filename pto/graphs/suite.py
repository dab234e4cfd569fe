"""Many graphs: each is built, run and judged by its own golden."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.selection import select
from pto.cxx.child import Crash
from pto.graphs import folder
from pto.graphs import scene as scenes
from pto.graphs.chips import Worker
from pto.graphs.process import ArgTensor, Argument, GraphProcess, Kernels, Submission
from pto.graphs.program import PythonGraph
from pto.graphs.program import find as find_graphs
from pto.graphs.runs import Ran
from pto.lang.file import users_code
from pto.suite.case import Case, Suite, Workspace
from pto.suite.result import Result, Status

CppCase = scenes.Scene | folder.BuildFolder
Graph = CppCase | PythonGraph
# The outcomes of a graph.
STATUS: dict[str, Status] = {
    "golden": "passed",  # every output matches the golden of the test
    "ran": "passed",  # to its end; the test has no golden
    "checked": "passed",  # the declarations of its tasks hold; no kernel was run
    "wrong": "failed",  # an output differs from the golden
    "differs": "failed",  # two orders that the edges allow give different bytes
    "races": "failed",  # the sanitizer reports an error in a task or between tasks
    "refused": "failed",  # the machine reports a finding
    "crashed": "failed",  # native code crashed or did not end
    "unbuilt": "failed",  # a source does not compile
    "skipped": "skipped",  # the case cannot run here
}
_CHIP = 2  # the level of tests that run on one chip
_LARGEST = 4 << 30  # bytes of all tensors of a case


@contextmanager
def _python() -> Generator[None]:
    """While Python of a test runs; what it prints goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run of all graphs."""

    sanitize: bool = False
    orders: int = 0  # random orders tried besides the order of submission
    seconds: float = 300.0
    dry: bool = False  # the orchestration alone


@dataclass(slots=True)
class Outcome:
    """What happened to one graph."""

    name: str
    profile: str
    word: str  # of STATUS
    why: str = ""
    tasks: int = 0
    edges: int = 0
    seconds: float = 0.0
    findings: Sequence[Diagnostic] = ()

    def result(self, case: str) -> Result:
        """The outcome as the result of a case of a suite."""
        facts = {"tasks": self.tasks, "edges": self.edges} if self.tasks else {}
        return Result(
            self.name,
            case,
            self.name,
            STATUS[self.word],
            self.word,
            self.seconds,
            tuple(self.findings),
            self.why,
            f"profile {self.profile}" if self.profile else "",
            facts,
        )


@dataclass(frozen=True)
class CaseSelection:
    """The cases of files and folders that an expression and a profile choose."""

    paths: tuple[Path, ...]
    profile: str | None = None
    expression: str = ""
    most: tuple[tuple[str, int], ...] = ()  # limits of parameters

    def find(self) -> Iterator[Graph | Outcome]:
        """Scenes, folders of pypto and graphs of Python files; one that cannot be read is a
        result."""
        profile, wanted = self.profile, select(self.expression).holds
        for path in self.paths:
            sources: list[tuple[Path, Iterable[Graph]]] = [(path, folder.find(path))]
            for file in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
                if scenes.is_scene(file):
                    sources.append((file, scenes.find(file, profile)))
                elif path.is_file():
                    sources.append((file, find_graphs(file)))
            for file, cases in sources:
                try:
                    mine = [c for c in cases if wanted(c.name) and profile in (None, c.profile)]
                    yield from [case.limited(dict(self.most)) for case in mine]
                except PtoError as error:
                    if path.is_file():
                        raise
                    if wanted(file.parent.name):
                        yield _unread(f"{file.parent.name}/{file.stem}", error)


def _unread(name: str, error: PtoError) -> Outcome:
    """The result of a file if its cases cannot be listed: a module is missing, or it has a
    mistake."""
    why = error.diagnostics[0].message
    if error.code == "PTO-U322":
        return Outcome(name, "", "skipped", why)
    return Outcome(name, "", "refused", why, findings=error.diagnostics)


def suite(graphs: Sequence[Graph | Outcome], chosen: CaseSelection, options: RunOptions) -> Suite:
    """The graphs of a selection as cases; a worker lists the same ones, and runs one by number."""
    cases: list[Case] = []
    for number, graph in enumerate(graphs):
        is_first = all(graph.name != case.name for case in cases)
        name = graph.name if is_first else f"{graph.name} ({number})"
        cases.append(Case(name, graph.name, (name, number)))
    seconds = options.seconds * (options.orders + 2)
    return Suite("pto.graphs.suite:run_case", cases, (chosen, options), seconds)


@cache
def _listed(chosen: CaseSelection) -> list[Graph | Outcome]:
    return list(chosen.find())


def run_case(
    settings: tuple[CaseSelection, RunOptions], body: tuple[str, int], work: Workspace
) -> Iterator[Result]:
    """The result of one case of a selection, in a worker."""
    (chosen, options), (name, number) = settings, body
    graph = _listed(chosen)[number]
    work.started(name)
    outcome = graph if isinstance(graph, Outcome) else run(graph, options)
    yield outcome.result(name)


def run(case: Graph, how: RunOptions) -> Outcome:
    """Run one graph, or the graphs of one scene of several chips."""
    began = time.perf_counter()
    outcome = Outcome(case.name, case.profile, "")
    try:
        with users_code():
            _judged(case, how, outcome)
    except PtoError as error:
        other = "unbuilt" if error.code == "PTO-U243" else "refused"
        outcome.word = "crashed" if isinstance(error, Crash) else other
        outcome.findings = error.diagnostics
        outcome.why = error.diagnostics[0].message
    outcome.seconds = time.perf_counter() - began
    return outcome


def _judged(case: Graph, how: RunOptions, outcome: Outcome) -> None:
    size = 0 if how.dry else _size(case)
    if size > _LARGEST:  # before its kernels are compiled
        outcome.word, outcome.why = "skipped", f"its tensors have {size >> 20:,} MiB"
    elif not how.dry and isinstance(case, scenes.Scene) and case.level != _CHIP:
        if how.sanitize:
            raise fail("PTO-U320", "races are only checked between the tasks of one chip")
        _run_chips(case, how, outcome)
    else:
        with opened(case, how.seconds, "none" if how.dry else "all", not how.dry) as ready:
            (_check if how.dry else _run)(ready, how, outcome)


def _size(case: Graph) -> int:
    """Bytes of all tensors of a case; 0 if its test makes them in another way."""
    if not isinstance(case, PythonGraph):
        with _python(), suppress(NotImplementedError):
            listed = case.arguments(with_values=False).listed
            return sum(t.data.size for t in listed if isinstance(t, ArgTensor))
    return 0


# ---- one case


@dataclass(slots=True)
class OpenScene:
    """A case in C++ with its child process."""

    case: CppCase
    process: GraphProcess
    arguments: scenes.Arguments
    seconds: float
    given: list[Argument] = field(default_factory=list[Argument])  # of the last run

    @property
    def has_golden(self) -> bool:
        return self.case.has_golden

    def run(self, watched: bool = False) -> Ran:
        self.given = self.arguments.copies()
        return self.process.run(self.given, self.seconds, watched=watched)

    def orders(self, count: int) -> Ran:
        """Each order has the time of a run."""
        submissions = [Submission(self.arguments.listed)]
        return self.process.act("orders", submissions, self.seconds * (count + 1), count=count)

    def judge(self) -> str:
        with _python():
            return self.case.judge(self.arguments, self.given)

    def dry(self) -> Ran:
        return self._ask("dry")

    def record(self, folder: str, kept: int | None, inputs: bool) -> Ran:
        return self._ask("record", folder=folder, kept=kept, inputs=inputs)

    def time(self, device: str | None, edges: bool) -> dict[str, Any]:
        return self._ask("time", device=device, edges=edges)

    def _ask(self, action: str, **options: Any) -> Any:
        submissions = [Submission(self.arguments.listed)]
        return self.process.act(action, submissions, self.seconds, **options)


@contextmanager
def opened(
    case: Graph, seconds: float, kernels: Kernels = "all", values: bool = True
) -> Generator[OpenScene | PythonGraph]:
    """A case that is ready to run."""
    if isinstance(case, PythonGraph):
        with _python():
            yield case
        return
    if isinstance(case, scenes.Scene) and case.level != _CHIP:
        raise fail("PTO-U320", f"{case.name} is a scene of several chips: it can only be run")
    process = GraphProcess(case.source(), kernels=kernels)
    with _python():
        arguments = case.arguments(values)
    with process:
        yield OpenScene(case, process, arguments, seconds)


def _run(ready: OpenScene | PythonGraph, how: RunOptions, outcome: Outcome) -> None:
    ran = ready.run(watched=how.sanitize)
    outcome.tasks = ran.tasks
    outcome.edges = ran.edges
    outcome.findings = ran.findings
    wrong = ready.judge()
    status = "wrong" if wrong else "golden" if ready.has_golden else "ran"
    outcome.word, outcome.why = status, wrong
    if ran.errors:
        outcome.word, outcome.why = "races", ran.errors[0]
    if how.orders and (differs := ready.orders(how.orders).differs):
        outcome.word, outcome.why = "differs", differs


def _check(ready: OpenScene | PythonGraph, how: RunOptions, outcome: Outcome) -> None:
    """Run the orchestration alone."""
    report = ready.dry()
    outcome.tasks = report.tasks
    outcome.edges = report.edges
    outcome.findings = report.findings
    outcome.word = "races" if report.errors else "checked"
    facts = [
        f"{report.slots:,} slots and {report.heap / (1 << 20):,.1f} MiB of a ring held at most"
    ]
    facts += [f"{report.undecided:,} pairs need a run with values"] if report.undecided else []
    facts += [f"{report.assumed} values read as 0"] if report.assumed else []
    outcome.why = report.errors[0] if report.errors else "; ".join(facts)


def _run_chips(scene: scenes.Scene, how: RunOptions, outcome: Outcome) -> None:
    """Run the graphs that a scene submits to several chips, in each order from the same inputs."""
    programs = scene.programs
    worker = Worker(list(programs.values()), how.seconds)
    first: list[tuple[bytes, bytes]] = []
    try:
        worker.start()
        for seed in (None, *range(how.orders)):
            worker.begin(seed)
            with _python():
                outcome.why = scene.on_chips(worker, programs)
            if seed is None:
                first = worker.results
                outcome.tasks = worker.tasks
                outcome.edges = worker.edges
            if outcome.why:
                break
            if worker.results != first:
                same = worker.results[0][0] == first[0][0]
                outcome.word = "differs" if same else "ran"
                why = "results differ in the order of seed {}" if same else "its inputs are random"
                outcome.why = why.format(seed)
                return
        outcome.word = "wrong" if outcome.why else "golden"
    except (PtoError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # of the test's own Python, as pytest's Skipped
        outcome.word, outcome.why = "skipped", f"its Python needs more than is here: {error!r}"
    finally:
        worker.end()
