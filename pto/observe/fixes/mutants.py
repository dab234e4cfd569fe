"""Mutation tests: is every synchronising operation needed, and does the sanitizer report a wrong
one?

Each change of `mutations.py` is made alone. A mutant is found if the sanitizer reports something
new, or the run ends in a deadlock. It is harmless if very different schedules all give the bits of
the original program, and missed if one does not and the sanitizer was silent. Bytes that the
original program leaves undefined do not count, nor bytes past the end of the host's memory. If the
original program itself has findings, schedules in which its result differs are ignored. A mutant is
also missed if the formulas of `pto prove` prove a property that a finding refutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pto.core.errors import Diagnostic, PtoError
from pto.ir.graph import Module, Operation
from pto.ir.text.printer import print_operation
from pto.observe.claims import contradicted
from pto.observe.fixes.mutations import PLACES, changes
from pto.observe.mode import mode_of
from pto.observe.order.fences import NEEDLESS
from pto.observe.replay import TrialRun
from pto.observe.sanitize import Sanitizer, sanitize
from pto.plan.calls import FunctionNames, entry_functions, with_peers
from pto.plan.sync import ordered
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.machine.core import Core
from pto.run.watch.events import Observer
from pto.run.watch.memory import WatchedMemory
from pto.target.facts import Profile

Judgement = Literal["found", "harmless", "missed"]
SCHEDULES = ("program", "early", "late", *(f"random:{seed}" for seed in range(1, 5)))
_SEED = 30
_JUDGED = ("PTO-R", "PTO-D", "PTO-M201", "PTO-V21")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one change."""

    op: str  # the removed operation, else the kind of change
    text: str
    line: int
    judgement: Judgement
    why: str  # the code of the finding, the schedules that agree, or the difference


class _Filled(Observer):
    """Fills local buffers at the start of a run."""

    def memory(self, memory: WatchedMemory, core: Core | None) -> None:
        if core is not None:
            memory.raw[:] = np.random.default_rng(_SEED).integers(1, 256, memory.size, np.uint8)


@dataclass(slots=True)
class Subject:
    """The launch with which a mutant is compared."""

    module: Module
    args: Sequence[Any]
    options: dict[str, Any]  # of `launch`
    asked: Sequence[int] = ()  # bytes of each argument that the host owns; empty: all
    undefined: Any = None  # bytes of all arrays that depend on the initial content of buffers

    def functions(self) -> list[Operation]:
        return entry_functions(self.module, self.options.get("entry"))

    def outcome(self, **how: Any) -> bytes | str:
        """The bits of all arrays, or the reason why there are none."""
        args = copied(self.args)
        try:
            launch(self.module, args=args, check=False, **how, **self.options)
        except PtoError as error:
            return error.diagnostics[0].message
        sizes = self.asked or [None] * len(args)
        arrays = [(a, n) for a, n in zip(args, sizes, strict=True) if isinstance(a, np.ndarray)]
        contents = b"".join(a.tobytes()[:n] for a, n in arrays)
        if self.undefined is None:
            return contents
        return np.where(self.undefined, 0, np.frombuffer(contents, np.uint8)).tobytes()

    def outcomes(self, schedules: Sequence[str]) -> dict[str, bytes | str]:
        """The outcome by schedule; first finds out which bytes are undefined."""
        if not schedules:
            return {}
        plain, other = self.outcome(), self.outcome(observer=_Filled())
        if isinstance(plain, bytes) and isinstance(other, bytes) and plain != other:
            self.undefined = np.frombuffer(plain, np.uint8) != np.frombuffer(other, np.uint8)
        return {schedule: self.outcome(schedule=schedule) for schedule in schedules}

    def findings(self, mode: Any, *, closer: bool = False) -> tuple[list[Diagnostic], bool]:
        """The findings of the sanitizer, and whether the run ended normally. `closer`: also check
        tiles and undefined data, which do not depend on order."""
        if closer:
            how: dict[str, Any] = {**self.options, "check": False, "fixes": False}
            verdict = sanitize(self.module, args=copied(self.args), **how)
            return list(verdict.findings), verdict.report is not None
        run = TrialRun(self.args, self.options)
        watcher = Sanitizer(run.profile(self.module), mode)
        ended = run.attempt(self.module, check=False, observer=watcher)
        return [*watcher.findings(), *ended], not ended


def mutants(
    module: Module,
    *,
    args: Sequence[Any],
    sizes: Sequence[int] = (),
    schedules: Sequence[str] = SCHEDULES,
    **options: Any,
) -> Iterator[Mutant]:
    """Judge every mutant of one launch; `args` are unchanged.

    A program that a compiler is to order is first ordered as by `pto sync`. Without schedules, only
    the sanitizer and the proofs judge.
    """
    profile = TrialRun(args, options).profile(module)
    # only the reference engine has schedules and observers
    run_options: dict[str, Any] = {**options, "engine": "reference"}
    subject = Subject(ordered(module, profile), args, run_options, sizes)
    functions = subject.functions()
    mode = mode_of(functions)
    plain = subject.findings(mode)[0]
    keys_before = {False: {_key(d) for d in plain}}
    outcomes = subject.outcomes(schedules)
    right = set(outcomes.values())
    if any(d.severity == "error" for d in plain):
        schedules = [s for s in schedules if outcomes[s] == outcomes[schedules[0]]]
    for change in changes(with_peers(functions, FunctionNames())):
        closer = change.kind == PLACES
        if closer not in keys_before:
            keys_before[closer] = {_key(d) for d in subject.findings(mode, closer=closer)[0]}
        text = print_operation(change.op).strip()
        with change.edit():
            judged = _judged(subject, profile, mode, keys_before[closer], closer, schedules, right)
        judgement, why = judged
        line = change.op.loc.line if change.op.loc else 0
        yield Mutant(change.kind, text, line, judgement, why)


def _judged(
    subject: Subject,
    profile: Profile,
    mode: Any,
    keys_before: set[tuple[Any, ...]],
    closer: bool,
    schedules: Sequence[str],
    right: set[bytes | str],
) -> tuple[Judgement, str]:
    findings, is_ended = subject.findings(mode, closer=closer)
    for question, code in contradicted(subject.functions(), profile, findings):
        return "missed", f"{question} is proved, and a run shows {code}"
    fresh = [d for d in findings if d.code.startswith(_JUDGED) and _key(d) not in keys_before]
    # superfluous order is no error, and the rest of a pair may become superfluous
    serious = [d for d in fresh if d.code not in NEEDLESS]
    if serious or not is_ended:
        return "found", (serious or findings)[0].code
    for schedule in schedules:
        outcome = subject.outcome(schedule=schedule)
        if outcome not in right:
            difference = outcome if isinstance(outcome, str) else "other values"
            return "missed", f"{schedule}: {difference}"
    return "harmless", f"{len(schedules)} schedules give the same bits"


def _key(d: Diagnostic) -> tuple[Any, ...]:
    return d.code, d.severity, d.loc, d.notes[0].loc if d.notes else None
