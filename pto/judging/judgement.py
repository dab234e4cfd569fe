"""The verdict about a candidate: checks, cases, times and remedies; as JSON and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pto.core.errors import Diagnostic
from pto.core.render import Piece, plain

Status = Literal["passed", "failed", "skipped"]
CHECKS = ("builds", "legal", "right", "safe", "deterministic", "time")
_REMEDIES = 3
_STYLES = {"passed": "value", "failed": "error", "skipped": "dim"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    name: str
    status: Status
    text: str = ""
    findings: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        findings = [plain(d) for d in self.findings]
        return {"name": self.name, "status": self.status, "text": self.text, "findings": findings}


@dataclass(slots=True)
class CaseResult:
    """The result of one case: its values, and its predicted time."""

    name: str
    is_declared: bool  # by the task, not drawn by the judge
    shapes: str = ""
    values_on: str = ""  # the smaller sizes on which values were compared
    right: bool | None = None
    reason: str = ""
    mean_error: float | None = None
    max_error: float | None = None
    us: float | None = None
    band: tuple[float, float] | None = None
    bound_us: float | None = None
    share: float | None = None  # of the bound: 1 is as fast as the hardware can be
    baseline_us: float | None = None
    hap: float | None = None


@dataclass(slots=True)
class Judgement:
    """The verdict about one candidate for one task. It is true if the candidate is accepted."""

    task: str
    candidate: str
    device: str
    checks: list[CheckResult] = field(default_factory=list[CheckResult])
    cases: list[CaseResult] = field(default_factory=list[CaseResult])
    remedies: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    seed: int = 0
    seconds: float = 0.0

    @property
    def accepted(self) -> bool:
        names = {c.name for c in self.checks if c.status == "passed"}
        return names.issuperset(CHECKS[:-1]) and not self.failed

    @property
    def failed(self) -> list[CheckResult]:
        return [c for c in self.checks if c.status == "failed"]

    @property
    def findings(self) -> list[Diagnostic]:
        return [d for c in self.checks for d in c.findings]

    @property
    def score(self) -> float | None:
        """The mean score of speed over the cases with a baseline; a wrong case scores 0."""
        scored = [c for c in self.cases if c.hap is not None]
        if not scored:
            return None
        return sum(c.hap or 0.0 for c in scored if c.right and self.accepted) / len(scored)

    def __bool__(self) -> bool:
        return self.accepted

    def add(self, name: str, text: str, findings: Sequence[Diagnostic] = ()) -> bool:
        """Record a check that ran; True if it has no error."""
        failed = any(d.severity == "error" for d in findings)
        status: Status = "failed" if failed else "passed"
        self.checks.append(CheckResult(name, status, text, tuple(findings)))
        return not failed

    def skip_rest(self) -> None:
        """Record the checks that did not run."""
        done = {c.name for c in self.checks}
        self.checks += [CheckResult(n, "skipped") for n in CHECKS if n not in done]

    def to_json(self) -> dict[str, Any]:
        cases: list[dict[str, Any]] = []
        for case in self.cases:
            fields_of_case = asdict(case)
            cases.append(
                {name: value for name, value in fields_of_case.items() if value not in (None, "")}
            )
        return {
            "task": self.task,
            "candidate": self.candidate,
            "device": self.device,
            "accepted": self.accepted,
            "failed": [c.name for c in self.failed],
            "codes": list(dict.fromkeys(d.code for c in self.failed for d in c.findings)),
            "score": self.score,
            "checks": [c.to_json() for c in self.checks],
            "cases": cases,
            "remedies": self.remedies[:_REMEDIES],
            "notes": self.notes,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
        }

    def pieces(self) -> Iterator[Piece]:
        """The table that a person reads; findings are printed apart."""
        word, style = ("accepted", "value") if self.accepted else ("refused", "error")
        yield style, word
        yield "", f" {self.candidate} for {self.task} on {self.device}\n"
        for check in self.checks:
            yield _STYLES[check.status], f"  {check.status:8}"
            yield "", f"{check.name:14}{check.text}\n"
        timed = [c for c in self.cases if c.us is not None]
        if timed:
            yield "title", f"  {'case':34} {'predicted us':>14} {'interval':>17} {'of bound':>8}"
            yield "title", f" {'score':>6}\n"
        for c in timed:
            low, high = c.band or (0.0, 0.0)
            share = "-" if c.share is None else f"{c.share:.0%}"
            score = "-" if c.hap is None else f"{c.hap:.2f}"
            us = c.us or 0.0
            yield "", f"  {c.name:34} {us:14.1f} {f'{low:.1f} to {high:.1f}':>17} {share:>8}"
            yield "", f" {score:>6}\n"
        for number, remedy in enumerate(self.remedies[:_REMEDIES], 1):
            yield "", f"  {number}. {remedy}\n"
        for note in self.notes:
            yield "dim", f"  {note}\n"

    def __str__(self) -> str:
        from pto.core.findings import rendered

        body = "".join(text for _, text in self.pieces())
        findings = [d for c in self.failed for d in c.findings]
        return f"{body}\n{rendered(findings)}" if findings else body
