"""Runs one kernel of a model: rules, data, both engines, judge. `pto.suite` runs many at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, PtoError
from pto.gym.models.compare import bits_differ, differs
from pto.gym.models.data import Data, choose, draw, generate, prepare
from pto.gym.models.kernels import ModelKernel
from pto.gym.models.peers import launch_on_ranks, reaches_others
from pto.gym.models.rules import Rules, ask
from pto.gym.models.tries import Try, may_fit_otherwise, tries
from pto.gym.runner import LaunchKernel, Options, Stage, defect, rejected, scheduled
from pto.gym.scripts import Scripts
from pto.ir.graph import Module, Operation
from pto.ir.text.parser import parse_file
from pto.isa.row.attributes import Str
from pto.observe.sanitize import launch_sanitized
from pto.plan.calls import entry_functions
from pto.plan.sync import ordered
from pto.run.launch.engine import ENGINES
from pto.run.launch.host import launch
from pto.suite.case import Case, Suite, Workspace
from pto.suite.result import RejectedElement, Result
from pto.suite.worker import named
from pto.target.profile import Target
from pto.verify.program import judge

Array = npt.NDArray[Any]
BOTH = "both"


def suite(kernels: Sequence[ModelKernel], options: Options, keep: Path | None = None) -> Suite:
    """The kernels of models as cases."""
    cases = [Case(k.name, k.family, k, k.weight) for k in kernels]
    return Suite("pto.gym.models.runner:run_kernel", cases, options, options.seconds, keep)


def run_kernel(options: Options, kernel: ModelKernel, work: Workspace) -> Iterator[Result]:
    """The one result of a kernel, in a worker."""
    runner = _runner(options, work.cache)
    return runner.run(kernel, work.folder, started=work.started)


@cache
def _runner(options: Options, folder: Path) -> ModelRunner:
    return ModelRunner(Scripts(options.seconds, folder), named(options.launch), options)


class _Ended(Exception):
    """A case that did not pass: where it ended, and why."""

    def __init__(
        self, stage: Stage, *diagnostics: Diagnostic, difference: RejectedElement | None = None
    ):
        super().__init__(stage)
        self.stage: Stage = stage
        self.found = diagnostics
        self.difference = difference


class ModelRunner:
    """Runs kernels one after the other; `engine` is one of them, or both."""

    def __init__(self, scripts: Scripts, launch: LaunchKernel, options: Options) -> None:
        self.scripts = scripts
        self.launch = launch
        self.options = options
        self.watched = launch is launch_sanitized
        both = options.engine == BOTH and not self.watched
        one = options.engine.replace(BOTH, "reference")
        self.engines = ENGINES[::-1] if both else (one,)

    def run(
        self,
        program: ModelKernel,
        work: Path,
        *,
        started: Callable[[str], None] = lambda name: None,
    ) -> Iterator[Result]:
        """The one result of a kernel."""
        started(program.name)
        blank = Result(program.name, program.name, program.family, "failed")
        began = time.perf_counter()
        try:
            result = self._case(program, work, blank)
        except _Ended as end:
            status = "not run" if end.stage == "generate" else "failed"
            result = replace(
                blank,
                status=status,
                outcome=end.stage,
                diagnostics=end.found,
                facts=rejected(end.difference),
            )
        except PtoError as error:
            result = replace(blank, outcome="run", diagnostics=error.diagnostics)
        except Exception as error:  # a defect of ours: this case's, not the run's
            result = replace(blank, outcome="run", diagnostics=(defect(error),))
        yield replace(result, seconds=time.perf_counter() - began)

    def _case(self, program: ModelKernel, work: Path, blank: Result) -> Result:
        try:
            rules = ask(program, self.scripts, work)
        except PtoError as error:
            raise _Ended("generate", *error.diagnostics) from None
        target, data, golden, runs = self._runs(program, rules, work)
        _judge(data, runs, golden, rules)
        how = "golden" if golden else "engines" if len(runs) > 1 else "ran"
        return replace(blank, status="passed", target=str(target), outcome=how)

    def _runs(
        self, program: ModelKernel, rules: Rules, work: Path
    ) -> tuple[Target, Data, Mapping[int, Array], dict[str, list[Any]]]:
        """Arguments, golden and results of the first try that fits; raises the first error
        otherwise."""
        first_error: PtoError | None = None
        read: dict[str, tuple[Module, Target]] = {}
        drawn: dict[Any, Array] = {}
        for attempt in tries(rules):
            if attempt.edition not in read:
                read[attempt.edition] = self._program(program, attempt.edition)
            module, target = read[attempt.edition]
            functions = entry_functions(module, None)
            data, golden = self._data(program, functions, attempt, work, drawn)
            try:
                if first_error is not None and self.watched:  # watching costs more than one run
                    self._launch(module, functions, target, data, self.engines[0], watched=False)
                return target, data, golden, self._engines(module, functions, target, data)
            except PtoError as error:
                if not may_fit_otherwise(error):
                    raise
                first_error = first_error or error
        assert first_error is not None
        raise first_error

    def _engines(
        self, module: Module, functions: list[Operation], target: Target, data: Data
    ) -> dict[str, list[Any]]:
        return {
            e: self._launch(module, functions, target, data, e, watched=self.watched)
            for e in self.engines
        }

    def _data(
        self,
        program: ModelKernel,
        functions: list[Operation],
        attempt: Try,
        work: Path,
        drawn: dict[Any, Array],
    ) -> tuple[Data, Mapping[int, Array]]:
        """Arguments of a launch, and the results a golden expects, by position."""
        try:
            data = prepare(
                functions, attempt.rules, attempt.extent, exact=program.golden is not None
            )
            golden: Mapping[int, Array] = {}
            if program.golden is not None:
                golden = generate(program.golden, data, self.scripts, work)
            else:
                draw(data, drawn)
            if not golden:
                choose(data, attempt.integers)
            return data, golden
        except PtoError as error:
            raise _Ended("generate", *error.diagnostics) from None

    def _program(self, program: ModelKernel, edition: str) -> tuple[Module, Target]:
        """The kernel, ordered, and what it is for; where it names no edition, in this one."""
        try:
            module = parse_file(program.kernel)
        except PtoError as error:
            raise _Ended("parse", *error.diagnostics) from None
        module.op.attrs.setdefault("pto.edition", Str(edition))
        target, findings = judge(module, profile=self.options.profile)
        errors = [d for d in findings if d.severity == "error"]
        if errors:
            raise _Ended("check", *errors)
        return (ordered(module, target.profile) if self.options.sync else module), target

    def _launch(
        self,
        module: Module,
        functions: list[Operation],
        target: Target,
        data: Data,
        engine: str,
        *,
        watched: bool,
    ) -> list[Any]:
        """The arrays after a run, those of all ranks one after the other."""
        if reaches_others(functions):
            ranks = launch_on_ranks(
                module, functions, data, target.profile, engine, watched=watched
            )
            return [value for rank in ranks for value in rank]
        values = data.copied()
        start: LaunchKernel = self.launch if watched or not self.watched else launch
        start(
            module,
            args=[_elements(v, p.dtype) for v, p in zip(values, data.params, strict=True)],
            profile=target.profile.name,
            engine=engine,
            check=False,  # done already
            **scheduled(self.options),
        )
        return values


def _elements(value: Any, kind: Any) -> Any:
    return value.view(kind.numpy) if isinstance(value, np.ndarray) and kind is not None else value


def _judge(
    data: Data, runs: Mapping[str, list[Any]], golden: Mapping[int, Array], rules: Rules
) -> None:
    (first, results), *others = runs.items()
    for n, expected in golden.items():
        name, kind = data.outputs[n], data.params[n].dtype
        rejected_element = differs(name, kind, results[n], expected, rules)
        if rejected_element is not None:
            raise _Ended(
                "compare",
                Diagnostic("PTO-U067", str(rejected_element)),
                difference=rejected_element,
            )
    for engine, other_results in others:
        for n, (a, b) in enumerate(zip(results, other_results, strict=True)):
            rejected_element = bits_differ(f"v{n + 1}", b, a) if isinstance(a, np.ndarray) else None
            if rejected_element is not None:
                message = f"{engine} is not {first}: {rejected_element}"
                raise _Ended(
                    "compare", Diagnostic("PTO-U067", message), difference=rejected_element
                )
