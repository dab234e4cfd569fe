"""Judges one candidate, in a process that has the task; `pool.py` runs these processes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from socket import socket
from typing import Any

import numpy as np

from pto.core.errors import Diagnostic, PtoError, fail
from pto.judging.candidate import Candidate
from pto.judging.correct import CaseRun, check_right
from pto.judging.judgement import CaseResult, Judgement
from pto.judging.orders import check_deterministic, check_safe
from pto.judging.precision import TaskError
from pto.judging.programs import Calls, read_calls, read_findings
from pto.judging.speed import check_time
from pto.judging.task import Case, Task
from pto.judging.tracer import ask
from pto.target.profile import choose
from pto.verify import judge as verified

_MOST_ELEMENTS = 1 << 22  # of the arrays of a case, to compare values
_MOST_WATCHED = 1 << 14  # of a case that the sanitizer runs


@dataclass(frozen=True, slots=True)
class Options:
    """How a candidate is judged."""

    device: str | None = None
    seed: int | None = None
    elements: int = _MOST_ELEMENTS
    timed: bool = True


@dataclass(slots=True)
class Judge:
    """Judges candidates for one task."""

    task: Task
    link: socket  # to the process that traces
    options: Options = field(default_factory=Options)

    def judge(self, candidate: Candidate) -> Judgement:
        """The verdict about a candidate."""
        started = time.monotonic()
        seed = self.options.seed
        seed = int.from_bytes(os.urandom(6), "little") if seed is None else seed
        device = self.options.device or self.task.device or "950pr"
        self.task = self.task.on(device)
        judgement = Judgement(self.task.name, candidate.name, device, seed=seed)
        try:
            self._judge(candidate, judgement)
        except TaskError:
            raise
        except PtoError as error:
            name = "right" if any(c.name == "legal" for c in judgement.checks) else "builds"
            judgement.add(name, "", error.diagnostics)
        judgement.skip_rest()
        judgement.seconds = time.monotonic() - started
        return judgement

    def _judge(self, candidate: Candidate, judgement: Judgement) -> None:
        random = np.random.default_rng(judgement.seed)
        target = choose(profile_name=None, device_name=judgement.device)
        declared = [self.task.scaled(c, self.options.elements) for c in self.task.cases]
        cases = [*declared, *self.task.hidden(random)]
        timed = [c.full or c for c in declared]
        shapes = [*cases, *timed]
        calls = self._programs(candidate, shapes, target.profile.name)
        launches = sum(len(c.launches) for c in calls)
        if not judgement.add("builds", f"{launches} launches in {len(calls)} cases", _idle(calls)):
            return
        if not judgement.add("legal", str(target), self._illegal(calls, judgement.device)):
            return
        judgement.cases = [_result(self.task, case) for case in cases]
        for result, case in zip(judgement.cases, cases, strict=True):
            result.values_on = _shown(self.task, case) if case.full else ""
        values = np.random.default_rng([judgement.seed, 1])  # drawn after the candidate has ended
        runs = [
            CaseRun(self.task, case, case_calls, values, judgement.device)
            for case, case_calls in zip(cases, calls, strict=False)
        ]
        is_right = check_right(judgement, runs)
        watched = min(runs, key=_cost_to_watch)
        is_safe = check_safe(judgement, watched)
        if is_right and is_safe and check_deterministic(judgement, watched) and self.options.timed:
            timed_cases = list(zip(judgement.cases, timed, calls[len(cases) :], strict=False))
            check_time(judgement, self.task, timed_cases)

    def _programs(self, candidate: Candidate, cases: Sequence[Case], profile: str) -> list[Calls]:
        """The launches of a candidate for each case."""
        if candidate.kind == "pto":
            return [self._of_text(candidate, case) for case in cases]
        requests: list[dict[str, Any]] = []
        for case in cases:
            shapes = self.task.shapes(case)
            arrays = {name: (shape, kind.name) for name, (shape, kind) in shapes.items()}
            requests.append({"arrays": arrays, "numbers": self.task.numbers(case)})
        request = {
            "text": candidate.text,
            "file": candidate.name,
            "entry": candidate.entry,
            "task": self.task.name,
            "profile": profile,
            "blocks": candidate.blocks or "1",
            "cases": requests,
        }
        answer = ask(self.link, request)
        if "findings" in answer:
            raise PtoError(*read_findings(answer["findings"]))
        calls = read_calls(answer)
        if len(calls) != len(cases):
            raise fail("PTO-J013", f"launches for {len(calls)} of {len(cases)} cases")
        return calls

    def _of_text(self, candidate: Candidate, case: Case) -> Calls:
        arrays = {n: (s, k.name) for n, (s, k) in self.task.shapes(case).items()}
        return candidate.calls(arrays, self.task.numbers(case))

    def _illegal(self, calls: Sequence[Calls], device: str) -> list[Diagnostic]:
        """The errors of the programs on the profile of the device."""
        by_program: dict[str, list[Diagnostic]] = {}
        for launch in (one_launch for call in calls for one_launch in call.launches):
            if launch.program.key not in by_program:
                findings = verified(launch.module, device=device)[1]
                by_program[launch.program.key] = [d for d in findings if d.severity == "error"]
        return list(dict.fromkeys(d for findings in by_program.values() for d in findings))


def _cost_to_watch(run: CaseRun) -> tuple[bool, int]:
    """Least for the case to sanitize: the largest that is small, since one block shows no races."""
    is_large = run.elements > _MOST_WATCHED
    return run.case.fill != "random" or is_large, run.elements if is_large else -run.elements


def _idle(calls: Sequence[Calls]) -> list[Diagnostic]:
    if all(call.launches for call in calls):
        return []
    return [Diagnostic("PTO-J010", "the candidate launches no kernel: the host may not compute")]


def _result(task: Task, case: Case) -> CaseResult:
    full = case.full or case
    return CaseResult(full.name, case.is_declared, _shown(task, full), "", None)


def _shown(task: Task, case: Case) -> str:
    parts = (f"{n} {'x'.join(map(str, s))}x{k}" for n, (s, k) in task.shapes(case).items())
    return ", ".join(parts)
