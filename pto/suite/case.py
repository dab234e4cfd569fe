"""The cases of a suite, and what a case may use while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """One program, folder or scene; it gives one result or several."""

    name: str
    group: str  # its row of the table
    body: Any  # what the suite runs; it is sent to another process
    weight: float = 0.0  # run time relative to other cases: the longest start first
    results: int = 1  # an estimate


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases and the function that runs one.

    `function` is "module:name" of a function of this package with the arguments `settings`, the
    body of a case and a `Workspace`. It yields results.
    """

    function: str
    cases: Sequence[Case]
    settings: Any = None
    seconds: float = 600.0  # limit of the time between two results
    keep: Path | None = None  # where work folders are kept


@dataclass(frozen=True, slots=True)
class Workspace:
    """The resources of a case while it runs."""

    folder: Path  # empty
    cache: Path  # for all cases of this process
    skip: frozenset[str] = frozenset()  # results that an earlier process has reported
    started: Callable[[str], None] = lambda name: None  # to be called before each result is made
