"""The change of a pass at one location of a program, as a line of its report."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.errors import Loc


@dataclass(frozen=True, slots=True)
class PassResult:
    """One change of a pass; `is_done` is false if the pass reports why it changed nothing."""

    words: str
    loc: Loc | None = None
    is_done: bool = True

    def __str__(self) -> str:
        line = "" if self.loc is None else f"line {self.loc.line}: "
        return f"{line}{self.words}"
