"""Results as people and programs read them: a table by family, failures, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pto.core import render
from pto.core.errors import Diagnostic
from pto.core.render import Piece, Sources
from pto.gym.result import GymResult

_COLUMNS = ("passed", "failed", "not run")
_MOST_NAMES = 12


@dataclass(slots=True)
class StatusCounts:
    """Counts of a family or of everything."""

    counts: dict[str, int]
    seconds: float = 0.0

    def add(self, result: GymResult) -> None:
        self.counts[result.status] += 1
        self.seconds += result.seconds

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _tally() -> StatusCounts:
    return StatusCounts(dict.fromkeys(_COLUMNS, 0))


def tallies(results: Sequence[GymResult]) -> dict[str, StatusCounts]:
    """Counts by family, in order of appearance."""
    found: dict[str, StatusCounts] = {}
    for result in results:
        found.setdefault(result.family, _tally()).add(result)
    return found


def total(results: Sequence[GymResult]) -> StatusCounts:
    everything = _tally()
    for result in results:
        everything.add(result)
    return everything


def table(results: Sequence[GymResult]) -> list[Piece]:
    """A row a family, and the sum of them."""
    families = tallies(results)
    width = max([len("family"), *map(len, families)])
    head = f"{'family':<{width}}" + "".join(f"{c:>9}" for c in _COLUMNS) + f"{'time':>11}\n"
    out: list[Piece] = [("title", head)]
    for name, tally in families.items():
        out += _row(name, tally, width)
    out.append(("dim", "-" * (len(head) - 1) + "\n"))
    return out + _row("all", total(results), width)


def _row(name: str, tally: StatusCounts, width: int) -> list[Piece]:
    styles = {"passed": "value", "failed": "error", "not run": "warning"}
    out: list[Piece] = [("", f"{name:<{width}}")]
    for column in _COLUMNS:
        count = tally.counts[column]
        out.append((styles[column] if count else "dim", f"{count or '.':>9}"))
    return [*out, ("dim", f"{tally.seconds:>9.2f} s\n")]


def failures(results: Sequence[GymResult], sources: Sources) -> Iterator[list[Piece]]:
    """One block for each reason: cases of a family that fail alike are reported together."""
    groups: dict[tuple[str, str, tuple[Diagnostic, ...]], list[GymResult]] = {}
    for result in results:
        if result.status != "passed":
            key = (result.family, result.stage or "", result.diagnostics)
            groups.setdefault(key, []).append(result)
    for (_, stage, diagnostics), cases in groups.items():
        yield _failure(stage, diagnostics, cases, sources)


def _failure(
    stage: str, diagnostics: Sequence[Diagnostic], cases: Sequence[GymResult], sources: Sources
) -> list[Piece]:
    status = cases[0].status
    style = "error" if status == "failed" else "warning"
    out: list[Piece] = [("", "\n"), (style, status.upper()), ("dim", f" ({stage}) ")]
    out.append(("title", cases[0].name + "\n"))
    for other in cases[1:_MOST_NAMES]:
        out.append(("", f"  and {other.name}\n"))
    if len(cases) > _MOST_NAMES:
        out.append(("dim", f"  and {len(cases) - _MOST_NAMES} more\n"))
    for diagnostic in diagnostics:
        out += render.pieces(diagnostic, sources)
    return out


def summary(results: Sequence[GymResult], engine: str, wall: float) -> list[Piece]:
    """The last line: counts, and under which profile and engine."""
    tally = total(results)
    bad = tally.total - tally.counts["passed"]
    parts = [f"{count} {name}" for name, count in tally.counts.items() if count]
    targets = sorted({r.target for r in results if r.target})
    where = "; ".join([*targets, f"engine {engine}"])
    verdict = ", ".join(parts)
    return [
        ("", "\n"),
        ("error" if bad else "value", verdict),
        ("dim", f" of {tally.total} cases in {wall:.1f} s ({where})\n"),
    ]


def as_json(results: Sequence[GymResult], wall: float, **header: Any) -> str:
    """Everything, as one object."""
    families = {n: {**t.counts, "seconds": t.seconds} for n, t in tallies(results).items()}
    body = {
        **header,
        "seconds": wall,
        "totals": total(results).counts,
        "families": families,
        "cases": [as_data(r) for r in results],
    }
    return json.dumps(body, indent=2)


def as_data(result: GymResult) -> Mapping[str, Any]:
    """One case, as values that JSON can hold."""
    difference = result.difference
    findings: Any = json.loads(render.as_json(result.diagnostics))["findings"]
    return {
        "name": result.name,
        "program": result.program,
        "family": result.family,
        "status": result.status,
        "stage": result.stage,
        "seconds": result.seconds,
        "us": result.us or None,
        "judged": result.judged or None,
        **({"mutants": [asdict(m) for m in result.mutants]} if result.mutants else {}),
        "target": result.target,
        "difference": None
        if difference is None
        else {
            "index": list(difference.index),
            "got": difference.got,
            "expected": difference.expected,
            "differing": difference.differing,
            "size": difference.size,
            "file": difference.file,
        },
        "findings": findings,
        "node": result.node or None,
    }
