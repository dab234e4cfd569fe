"""Runs the cases of one program: data, host program, kernel, judge.

Every case ends in exactly one result. `pto.suite` runs many programs at once.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pto.core.errors import Diagnostic, Note, PtoError
from pto.core.selection import Selection, select
from pto.gym.arguments import arguments_of, functions_of
from pto.gym.cases import GymProgram, expected_cases
from pto.gym.host import HostProgram, HostRun, KernelCall
from pto.gym.scripts import TIMED_OUT, ScriptOutcome, Scripts
from pto.ir.graph import Module, Operation
from pto.ir.text.parser import parse_file
from pto.observe.fixes.mutants import Mutant
from pto.plan.sync import ordered
from pto.suite.case import Case, Suite, Workspace
from pto.suite.result import RejectedElement, Result, Status
from pto.suite.worker import named
from pto.verify.functions import entries
from pto.verify.program import judge

ENGINE = "pto.run.launch.host:launch"
SANITIZED = "pto.observe.sanitize:launch_sanitized"  # a finding makes a case fail
TIMED = "pto.gym.timed:launch_timed"  # also reports the time of every launch on a chip
MUTATED = "pto.gym.mutate:launch_mutated"  # every mutant of a program is judged too
Stage = Literal["read", "generate", "parse", "check", "run", "compare"]
LaunchKernel = Callable[..., object]  # `pto.run.host.launch`, or a replacement
_SHOWN_LINES = 6
_JUDGED_TOGETHER = 32  # cases of a program for one start of its judge
_TRACEBACK = "Traceback (most recent call last)"
_Verdict = tuple[Status, Stage | None, tuple[Diagnostic, ...], RejectedElement | None]


@dataclass(frozen=True, slots=True)
class Options:
    """How cases are run; sent to workers, so it has names instead of objects."""

    engine: str = "reference"
    profile: str | None = None
    expression: str = ""  # selects cases
    seconds: float = 600.0  # for one case or script
    launch: str = ENGINE  # module:function
    sync: bool = False  # insert flags if a compiler is to do it
    schedule: str = ""  # order of effects that synchronisation leaves open


def suite(programs: Sequence[GymProgram], options: Options, keep: Path | None = None) -> Suite:
    """The programs of a checkout as cases, with the results expected of each."""
    selection = select(options.expression)
    cases = [Case(p.name, p.family, p, p.weight, expected_cases(p, selection)) for p in programs]
    return Suite("pto.gym.runner:run_program", cases, options, options.seconds, keep)


def run_program(options: Options, program: GymProgram, work: Workspace) -> Iterator[Result]:
    """The results of one program, in a worker."""
    runner = _runner(options, work.cache)
    selection = select(options.expression)
    return runner.run(program, selection, work.folder, skip=work.skip, started=work.started)


@cache
def _runner(options: Options, folder: Path) -> Runner:
    return Runner(Scripts(options.seconds, folder), named(options.launch), options)


@dataclass(frozen=True, slots=True)
class Checked:
    """A program read and checked once for all its cases."""

    module: Module
    functions: Mapping[str, Operation]
    profile: str
    target: str
    errors: tuple[Diagnostic, ...]

    def errors_for(self, kernel: str) -> tuple[Diagnostic, ...]:
        """Errors that concern one function: its own, and those outside every other entry."""
        if not self.errors:
            return ()
        functions = self.functions.items()
        starts = sorted((f.loc.line, name) for name, f in functions if f.loc)
        others = {f.symbol for f in entries(list(self.functions.values()))} - {kernel}

        def owner(d: Diagnostic) -> str:
            line = d.loc.line if d.loc else 0
            return next((name for at, name in reversed(starts) if at <= line), "")

        return tuple(d for d in self.errors if owner(d) not in others)


class Runner:
    """Runs programs one after the other with one engine."""

    def __init__(self, scripts: Scripts, launch: LaunchKernel, options: Options) -> None:
        self.scripts = scripts
        self.launch = launch
        self.options = options

    def run(
        self,
        program: GymProgram,
        selection: Selection,
        work: Path,
        *,
        skip: frozenset[str] = frozenset(),
        started: Callable[[str], None] = lambda name: None,
    ) -> Iterator[Result]:
        """The results of the selected cases, in the order of the program's table.

        `work` is an empty directory; `started` is called with each case before it runs.
        """
        blank = Result(program.name, program.name, program.family, "not run", "read")
        if program.problem is not None:
            yield replace(blank, diagnostics=(program.problem,))
            return
        started(program.name)
        try:
            host = HostProgram(program.host)
            cases = _cases_of(program, host)
        except PtoError as error:
            yield replace(blank, diagnostics=error.diagnostics)
            return
        wanted = [c for c in cases if selection.holds(program.case_name(c))]
        wanted = [c for c in wanted if program.case_name(c) not in skip]
        wanted = getattr(self.launch, "worth", _all)(program, wanted)
        if wanted:
            yield from self._run_cases(program, host, wanted, work, started)
        yield from _orphans(program, cases, selection, work, skip)

    def _run_cases(
        self,
        program: GymProgram,
        host: HostProgram,
        cases: Sequence[str],
        work: Path,
        started: Callable[[str], None],
    ) -> Iterator[Result]:
        began = time.perf_counter()
        problem = self._generate(program, work)
        kernel: Checked | None = None
        stage: Stage = "generate"
        if not problem:
            stage = "parse"
            try:
                kernel = self._kernel(program)
            except PtoError as error:
                problem = error.diagnostics
        share = (time.perf_counter() - began) / len(cases)
        if kernel is None:
            status = "not run" if stage == "generate" else "failed"
            for case in cases:
                name = program.case_name(case)
                yield Result(name, program.name, program.family, status, stage, share, problem)
            return
        for first in range(0, len(cases), _JUDGED_TOGETHER):
            ran: list[tuple[str, Result]] = []
            for case in cases[first : first + _JUDGED_TOGETHER]:
                started(program.case_name(case))
                began = time.perf_counter()
                result = self._run_case(program, host, kernel, case, work)
                seconds = share + time.perf_counter() - began
                ran.append((case, replace(result, seconds=seconds)))
            yield from self._judge(program, ran, work)

    def _generate(self, program: GymProgram, work: Path) -> tuple[Diagnostic, ...]:
        outcome = self.scripts.run(program.generator, work)
        if outcome.code == 0:
            return ()
        return (_script_failed("PTO-U065", "the generator", program.generator, outcome),)

    def _kernel(self, program: GymProgram) -> Checked:
        module = parse_file(program.kernel)
        target, findings = judge(module, profile=self.options.profile)
        errors = tuple(d for d in findings if d.severity == "error")
        if self.options.sync and not errors:
            module = ordered(module, target.profile)
        return Checked(module, functions_of(module), target.profile.name, str(target), errors)

    def _run_case(
        self, program: GymProgram, host: HostProgram, kernel: Checked, case: str, work: Path
    ) -> Result:
        name = program.case_name(case)
        blank = Result(name, program.name, program.family, "failed", target=kernel.target)
        if case and not (work / case).is_dir():
            message = f"{program.generator.name} makes no data for case {case}"
            missing = Diagnostic("PTO-U065", message)
            return replace(blank, status="not run", outcome="generate", diagnostics=(missing,))
        launches: list[KernelCall] = []
        mutants: list[Mutant] = []
        times: list[float] = []
        stage: list[Stage] = ["run"]

        def submit(launch: KernelCall) -> None:
            launches.append(launch)
            arguments = arguments_of(kernel.functions, launch)
            errors = kernel.errors_for(launch.kernel)
            if errors:
                stage[0] = "check"
                raise PtoError(*errors)
            done = self._submit(kernel, launch, arguments)
            mutants.extend(getattr(done, "mutants", ()))
            times.append(getattr(done, "us", 0.0))

        try:
            done = host.run(work, submit, case)
        except PtoError as error:
            is_host = error.code in ("PTO-U062", "PTO-U063", "PTO-U068")
            status = "not run" if is_host else "failed"
            where: Stage = "read" if is_host else stage[0]
            return replace(blank, status=status, outcome=where, diagnostics=error.diagnostics)
        except Exception as error:  # a defect of the engine fails this case only
            return replace(blank, outcome="run", diagnostics=(defect(error),))
        problem = _host_problem(host, done, launches)
        if problem is not None:
            return replace(blank, status="not run", outcome="read", diagnostics=(problem,))
        # the judge decides about a partial run
        facts: dict[str, Any] = {"mutants": tuple(mutants)} if mutants else {}
        if any(times):
            facts["us"] = sum(times)
        return replace(blank, status="passed", facts=facts)

    def _submit(self, kernel: Checked, launch: KernelCall, arguments: Sequence[Any]) -> object:
        return self.launch(
            kernel.module,
            entry=launch.kernel,
            args=arguments,
            blocks=launch.blocks,
            profile=kernel.profile,
            engine=self.options.engine,
            check=False,  # done once for all cases
            **({"asked": launch.owned} if hasattr(self.launch, "worth") else {}),
            **scheduled(self.options),
        )

    def _judge(
        self, program: GymProgram, ran: Sequence[tuple[str, Result]], work: Path
    ) -> Iterator[Result]:
        """Let the program's judge decide about the cases that ran to the end."""
        began = time.perf_counter()
        waiting = [case for case, result in ran if result.status == "passed"]
        outcomes = self._ask_judge(program, waiting, work)
        share = (time.perf_counter() - began) / max(1, len(waiting))
        for case, result in ran:
            if case not in outcomes:
                yield result
                continue
            verdict, stage, findings, difference = outcomes[case]
            yield replace(
                result,
                status=verdict,
                outcome=stage or "",
                diagnostics=findings,
                facts={**result.facts, **rejected(difference)},
                seconds=result.seconds + share,
            )

    def _ask_judge(
        self, program: GymProgram, cases: Sequence[str], work: Path
    ) -> dict[str, _Verdict]:
        words = {case: [case] if case else [] for case in cases}
        answers = self.scripts.run_all(program.judge, work, [words[c] for c in cases])
        verdicts: dict[str, _Verdict] = {}
        rejected: dict[str, ScriptOutcome] = {}
        for case, outcome in zip(cases, answers, strict=True):
            if outcome.code == 0:
                verdicts[case] = ("passed", None, (), None)
            elif outcome.code < 0 or _TRACEBACK in outcome.output:
                finding = _script_failed("PTO-U066", "the judge", program.judge, outcome)
                verdicts[case] = ("not run", "compare", (finding,), None)
            else:
                rejected[case] = outcome
        again = [words[c] for c in rejected]
        looked = self.scripts.run_all(program.judge, work, again, spy=True)
        for (case, outcome), second in zip(rejected.items(), looked, strict=True):
            verdicts[case] = _rejection(program, outcome, _difference(second.difference))
        return verdicts


def rejected(difference: RejectedElement | None) -> dict[str, Any]:
    """The element that a judge rejected, as a fact of a result."""
    return {} if difference is None else {"difference": difference}


def scheduled(options: Options) -> dict[str, Any]:
    """The schedule for a launch, if there is one."""
    return {"schedule": options.schedule} if options.schedule else {}


def _rejection(
    program: GymProgram, outcome: ScriptOutcome, difference: RejectedElement | None
) -> _Verdict:
    message = str(difference) if difference else "the judge rejects the output"
    lines = (f"{program.judge.name}: {line}" for line in _last_lines(outcome.output))
    finding = Diagnostic("PTO-U067", message, notes=tuple(Note(line) for line in lines))
    return "failed", "compare", (finding,), difference


def _all(program: GymProgram, cases: list[str]) -> list[str]:
    return cases


def _cases_of(program: GymProgram, host: HostProgram) -> list[str]:
    if not program.has_table:
        return [""]
    names = host.case_names()
    if not names:
        message = f"{program.host[-1]} has no table of cases: no array of rows with a name"
        raise PtoError(Diagnostic("PTO-U063", message))
    return names


def _orphans(
    program: GymProgram,
    cases: Sequence[str],
    selection: Selection,
    work: Path,
    skip: frozenset[str],
) -> Iterator[Result]:
    """Report cases that the generator knows and the host program does not."""
    if not program.has_table:
        return
    folders = sorted(p.name for p in work.iterdir() if p.is_dir())
    for case in folders:
        name = program.case_name(case)
        if case in cases or name in skip or not selection.holds(name):
            continue
        message = f"{program.generator.name} makes data for {case}, which main.cpp never runs"
        finding = Diagnostic("PTO-U064", message)
        yield Result(name, program.name, program.family, "not run", "read", diagnostics=(finding,))


def _host_problem(
    host: HostProgram, done: HostRun, launches: Sequence[KernelCall]
) -> Diagnostic | None:
    if done.code != 0:
        output = " ".join(done.messages.split()) or "no output"
        return Diagnostic("PTO-U063", f"the host program failed with code {done.code}: {output}")
    if not launches:
        return Diagnostic("PTO-U063", f"{host.file} launches no kernel for this case")
    if not done.writes:
        return Diagnostic("PTO-U063", f"{host.file} writes no output file for this case")
    return None


def defect(error: Exception) -> Diagnostic:
    frames = traceback.extract_tb(error.__traceback__)[-_SHOWN_LINES:]
    notes = tuple(Note(f"{Path(f.filename).name}:{f.lineno} in {f.name}") for f in frames)
    message = f"the engine broke with {type(error).__name__}: {error}"
    return Diagnostic("PTO-U069", message, notes=notes)


def _script_failed(code: str, subject: str, script: Path, outcome: ScriptOutcome) -> Diagnostic:
    if outcome.code == TIMED_OUT:
        return Diagnostic("PTO-U069", f"{subject} {script} did not end in time")
    notes = tuple(Note(line) for line in _last_lines(outcome.output))
    return Diagnostic(code, f"{subject} {script} ended with code {outcome.code}", notes=notes)


def _last_lines(output: str) -> list[str]:
    return [line.strip() for line in output.splitlines() if line.strip()][-_SHOWN_LINES:]


def _difference(data: dict[str, Any] | None) -> RejectedElement | None:
    if data is None:
        return None
    return RejectedElement(
        tuple(data["index"]),
        str(data["got"]),
        str(data["expected"]),
        data["differing"],
        data["size"],
        data.get("file", ""),
    )
