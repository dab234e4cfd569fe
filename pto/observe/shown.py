"""Watched runs of a kernel, to refute or prove properties of its order.

A fault in one run refutes a property. Runs without a fault prove it only if every run takes the
same path: if nothing depends on arguments, blocks or data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.observe.deep import affordable
from pto.observe.order.fences import NEEDLESS
from pto.observe.sanitize import Verdict, sanitize
from pto.observe.trials import Found, choose, ops_at
from pto.plan.calls import entry_functions
from pto.prove.assume import Stated
from pto.prove.closed import takes_one_way
from pto.prove.order import LINES
from pto.prove.questions import MEANING, Answer, Question
from pto.prove.refute import Counterexample
from pto.run.launch.arguments import parameters
from pto.run.launch.arrays import copied
from pto.run.machine.agents import DEADLOCK

_SECONDS = 2.0  # of one run, and to look for inputs
_ALL_SECONDS = 4.0  # after which no run begins
_ONE_WAY = "nothing depends on arguments, blocks or data, so that one run stands for all"
CODES: dict[Question, tuple[str, ...]] = {
    "order": ("PTO-R00", "PTO-R01", "PTO-R038", "PTO-R039", "PTO-R043", "PTO-R044"),
    "deadlock": (*(f"PTO-D20{n}" for n in (0, 1, 2, 3, 4, 5, 7, 9)), DEADLOCK),
    "reads": ("PTO-V210", "PTO-V212", "PTO-V213", "PTO-V214", "PTO-V215", "PTO-M201"),
}


class Runs:
    """Watched runs of one kernel on generated inputs, made on demand."""

    def __init__(
        self, module: Module, entry: str | None, profile: str | None, stated: Stated
    ) -> None:
        self._module = module
        self._entry = entry
        self._profile = profile
        self._stated = stated
        self._until = time.monotonic() + _ALL_SECONDS
        self._verdicts: list[tuple[Found, Verdict]] = []

    @cached_property
    def functions(self) -> list[Operation]:
        return entry_functions(self._module, self._entry)

    @cached_property
    def takes_one_way(self) -> bool:
        return takes_one_way(self.functions)

    @cached_property
    def _trials(self) -> Iterator[Found]:
        name, seconds = self._profile, _SECONDS
        chosen = choose(self._module, self._entry, profile=name, device=None, seconds=seconds)
        return affordable(chosen)

    def _seen(self) -> Iterator[tuple[Found, Verdict]]:
        """Yield the results of all runs; each runs once."""
        yield from self._verdicts
        for candidate in self._trials:
            example = self._example(candidate)
            values = {**example.names, "blocks": example.blocks}
            if time.monotonic() > self._until or not self._stated.allows(example.numbers, values):
                continue
            args, same = copied(candidate.trial.args), self._stated.same
            args = [args[same.get(n, n)] for n in range(len(args))]
            options: dict[str, Any] = {**candidate.trial.options, "timeout": _SECONDS}
            verdict = sanitize(self._module, args=args, fixes=False, check=False, **options)
            self._verdicts.append((candidate, verdict))
            yield candidate, verdict

    def decided(self, answer: Answer) -> Answer:
        """An answer that is not proved by formulas, where runs decide it. A run of several blocks
        may also refute what is assumed about their cache lines."""
        is_proved = answer.verdict == "proved"
        if is_proved and LINES not in answer.assumes:
            return answer
        try:
            for candidate, verdict in self._seen():
                for finding in verdict.findings:
                    if _is_about(finding, answer.question, candidate):
                        return self._refuted(answer, candidate, finding)
                if self.takes_one_way and not is_proved:
                    return self._proved(answer, verdict)
        except PtoError:
            pass
        return answer

    def _proved(self, answer: Answer, verdict: Verdict) -> Answer:
        if verdict.report is None:
            return answer
        if answer.question == "reads" and verdict.unwritten:
            why = "bytes that were never written are read, but no result depends on them"
            return replace(answer, text=why, reason=why)
        return Answer(answer.question, "proved", MEANING[answer.question], assumes=(_ONE_WAY,))

    def _refuted(self, answer: Answer, candidate: Found, finding: Diagnostic) -> Answer:
        example = replace(self._example(candidate), words=finding.code)
        op = next(ops_at(self.functions, finding), answer.op)
        return Answer(answer.question, "refuted", finding.message, op, None, (example,))

    def _example(self, candidate: Found) -> Counterexample:
        args, params = candidate.trial.args, parameters(*self.functions)
        numbers = {n: a for n, a in enumerate(args) if isinstance(a, int)}
        names = {p.name: numbers[n] for n, p in enumerate(params) if n in numbers}
        return Counterexample(numbers, names, candidate.trial.options["blocks"], "")


def _is_about(finding: Diagnostic, question: Question, candidate: Found) -> bool:
    if finding.code in NEEDLESS or (finding.code == DEADLOCK and candidate.is_alone):
        return False
    return finding.code.startswith(CODES[question])
