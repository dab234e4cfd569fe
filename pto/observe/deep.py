"""Sanitized runs on generated inputs, for `pto check --deep`: only the program is needed.

The inputs are those of `trials.py`. A finding about order counts from every run. Undefined data
counts only in runs without loops or tiles that are empty but were not so in the first run. A flag
or barrier is needless only if it was so in every run that executed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module
from pto.observe.looks import OCCUPANCY
from pto.observe.order.fences import NEEDLESS
from pto.observe.replay import TrialRun
from pto.observe.sanitize import Verdict, sanitize
from pto.observe.trials import Chosen, Found, choose, entry_names
from pto.plan.calls import entry_functions
from pto.plan.unread import unread
from pto.run.launch.arguments import parameters
from pto.run.launch.arrays import copied
from pto.run.machine.agents import DEADLOCK

EARLY = "PTO-U233"  # a run on generated inputs that stopped early
_ORDER = ("PTO-R", "PTO-D", "PTO-M201", "PTO-M202")
_DATA = ("PTO-V21",)
_WORK = 30_000  # instructions of watched runs beside the first


@dataclass(frozen=True, slots=True)
class Looked:
    """The findings of watched runs of one kernel, and why a run stopped early."""

    verdict: Verdict
    stopped: Diagnostic | None
    runs: int


def launches(module: Module, *, profile: str | None, device: str | None) -> list[TrialRun]:
    """Every kernel with every trial."""
    return [
        chosen_run.trial
        for entry in entry_names(module)
        for chosen_run in choose(module, entry, profile=profile, device=device).trials
    ]


def deep(module: Module, *, profile: str | None, device: str | None) -> Iterator[Looked]:
    """The findings of the sanitizer, kernel by kernel."""
    for entry in entry_names(module):
        yield _looked(module, choose(module, entry, profile=profile, device=device))


def affordable(chosen: Chosen) -> Iterator[Found]:
    """The first trial, and more while their runs are short."""
    first, *others = chosen.trials
    yield first
    work = 0
    for candidate in others:
        work += candidate.paths.steps
        if work <= _WORK:
            yield candidate


def _looked(module: Module, chosen: Chosen) -> Looked:
    first = chosen.trials[0]
    verdicts = [(candidate, _verdict(module, candidate)) for candidate in affordable(chosen)]
    by_key = dict[tuple[object, ...], Diagnostic]()
    for candidate, verdict in verdicts:
        for d in verdict.findings:
            if _counts(d, candidate) and not _has_a_use(d, verdicts):
                note = (Note(f"inputs: {candidate.words}"),) if candidate.words else ()
                by_key.setdefault(_key(d), replace(d, notes=(*d.notes, *note)))
    verdict = verdicts[0][1]
    stopped = _stopped(module, first, verdict)
    functions = entry_functions(module, first.trial.options["entry"])
    unused = [d for function in functions for d in unread(function)]
    findings = (*by_key.values(), *chosen.negative, *unused)
    return Looked(Verdict(findings, verdict.mode, verdict.report), stopped, len(verdicts))


def _verdict(module: Module, candidate: Found) -> Verdict:
    return sanitize(module, args=copied(candidate.trial.args), **candidate.trial.options)


def _counts(finding: Diagnostic, candidate: Found) -> bool:
    """True if a finding holds for any inputs, not only for the generated ones."""
    if finding.code == OCCUPANCY or (finding.code == DEADLOCK and candidate.is_alone):
        return False  # the number of blocks is generated too, and no other rank runs
    return finding.code.startswith(_ORDER if candidate.is_degenerate else _ORDER + _DATA)


def _has_a_use(finding: Diagnostic, verdicts: list[tuple[Found, Verdict]]) -> bool:
    """True if a fence that was needless in one run was executed and needed in another."""
    if finding.code not in NEEDLESS:
        return False
    return any(
        finding.loc in candidate.paths.fences and all(_key(d) != _key(finding) for d in v.findings)
        for candidate, v in verdicts
    )


def _key(finding: Diagnostic) -> tuple[object, ...]:
    """The key of a finding in several runs: its code and locations, not its counters."""
    return finding.code, finding.loc, *(note.loc for note in finding.notes if note.loc is not None)


def _stopped(module: Module, first: Found, verdict: Verdict) -> Diagnostic | None:
    """A finding for a first run that stopped early, unless its error is about order."""
    other = [d for d in verdict.findings if not _counts(d, first)]
    if verdict.report is not None or not other:
        return None
    functions = entry_functions(module, first.trial.options["entry"])
    numbers = [
        f"{p.name}={int(a)}"
        for p, a in zip(parameters(*functions), first.trial.args, strict=True)
        if isinstance(a, int)
    ]
    blocks = first.trial.options["blocks"]
    numbers += [f"{blocks} blocks"] if blocks > 1 else []
    inputs = f" ({', '.join(numbers)})" if numbers else ""
    return Diagnostic(
        EARLY,
        f"@{functions[0].symbol} was checked only in part: with generated inputs{inputs} it"
        f" stopped at {other[0].code}: {other[0].message}",
        other[0].loc,
        help="pto run FILE --arg NAME=VALUE --sanitize checks it with your inputs",
    )
