"""The result of a case. `report` shows results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal, cast

from pto.core import render
from pto.core.errors import Diagnostic

Status = Literal["passed", "failed", "not run", "skipped"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "not run", "skipped")


@dataclass(frozen=True, slots=True)
class RejectedElement:
    """The first element a judge rejected."""

    index: tuple[int, ...]
    got: str
    expected: str
    differing: int
    size: int
    file: str = ""

    def __str__(self) -> str:
        where = "[" + ", ".join(map(str, self.index)) + "]"
        file = f" of {self.file}" if self.file else ""
        share = f"{self.differing} of {self.size} elements differ"
        return f"element {where}{file} is {self.got}, expected {self.expected}; {share}"


@dataclass(frozen=True, slots=True)
class Result:
    """One result of a case: whether it passed, by which check, or why not."""

    name: str
    case: str
    group: str
    status: Status
    outcome: str = ""  # passed: by which check (golden, exact); otherwise the stage or the failure
    seconds: float = 0.0
    diagnostics: tuple[Diagnostic, ...] = ()
    why: str = ""  # a reason without a code
    target: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # more that was measured
    node: str = ""  # of a cluster

    @property
    def is_good(self) -> bool:
        """False if the suite must fail; a case that skips itself does not fail it."""
        return self.status in ("passed", "skipped")

    def data(self) -> dict[str, Any]:
        """The result, as values that JSON can hold."""
        return {
            "name": self.name,
            "case": self.case,
            "group": self.group,
            "status": self.status,
            "outcome": self.outcome or None,
            "seconds": self.seconds,
            "why": self.why or None,
            "target": self.target,
            **{name: _plain(value) for name, value in self.facts.items()},
            "findings": [render.plain(d) for d in self.diagnostics],
            "node": self.node or None,
        }


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value
