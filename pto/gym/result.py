"""The result of a case. `report` shows results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pto.core.errors import Diagnostic
from pto.observe.fixes.mutants import Mutant

Status = Literal["passed", "failed", "not run"]
Stage = Literal["read", "generate", "parse", "check", "run", "compare"]


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
class GymResult:
    """One case: whether it passed, and if not, at which stage and why."""

    name: str
    program: str
    family: str
    status: Status
    stage: Stage | None = None  # None: it passed
    seconds: float = 0.0
    diagnostics: tuple[Diagnostic, ...] = ()
    difference: RejectedElement | None = None
    target: str = ""
    mutants: tuple[Mutant, ...] = ()  # of a run with mutants
    judged: str = ""  # other means than a judge: golden, engines, ran
    us: float = 0.0  # on the chip, of a timed run
    node: str = ""  # of a cluster
