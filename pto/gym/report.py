"""Results as people and programs read them: a table by family, failures, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pto.core import render
from pto.core.errors import Diagnostic
from pto.core.render import Piece, Sources
from pto.gym.result import GymResult

_STYLES = {"passed": "value", "failed": "error", "not run": "warning"}
_MOST_NAMES = 12


def _by_family(results: Sequence[GymResult]) -> dict[str, list[GymResult]]:
    """Results by family, in order of appearance."""
    found: dict[str, list[GymResult]] = {}
    for result in results:
        found.setdefault(result.family, []).append(result)
    return found


def _counts(results: Sequence[GymResult]) -> dict[str, int]:
    return {status: sum(r.status == status for r in results) for status in _STYLES}


def table(results: Sequence[GymResult]) -> list[Piece]:
    """A row a family, and the sum of them."""
    families = _by_family(results)
    width = max([len("family"), *map(len, families)])
    head = f"{'family':<{width}}" + "".join(f"{c:>9}" for c in _STYLES) + f"{'time':>11}\n"
    out: list[Piece] = [("title", head)]
    for name, own in families.items():
        out += _row(name, own, width)
    out.append(("dim", "-" * (len(head) - 1) + "\n"))
    return out + _row("all", results, width)


def _row(name: str, results: Sequence[GymResult], width: int) -> list[Piece]:
    out: list[Piece] = [("", f"{name:<{width}}")]
    for status, count in _counts(results).items():
        out.append((_STYLES[status] if count else "dim", f"{count or '.':>9}"))
    return [*out, ("dim", f"{sum(r.seconds for r in results):>9.2f} s\n")]


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
    out: list[Piece] = [("", "\n"), (_STYLES[status], status.upper()), ("dim", f" ({stage}) ")]
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
    counts = _counts(results)
    bad = len(results) - counts["passed"]
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    targets = sorted({r.target for r in results if r.target})
    where = "; ".join([*targets, f"engine {engine}"])
    verdict = ", ".join(parts)
    return [
        ("", "\n"),
        ("error" if bad else "value", verdict),
        ("dim", f" of {len(results)} cases in {wall:.1f} s ({where})\n"),
    ]


def as_json(results: Sequence[GymResult], wall: float, **header: Any) -> str:
    """Everything, as one object."""
    families = {
        name: {**_counts(own), "seconds": sum(r.seconds for r in own)}
        for name, own in _by_family(results).items()
    }
    body = {
        **header,
        "seconds": wall,
        "totals": _counts(results),
        "families": families,
        "cases": [as_data(r) for r in results],
    }
    return json.dumps(body, indent=2)


def as_data(result: GymResult) -> Mapping[str, Any]:
    """One case, as values that JSON can hold."""
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
        "difference": None if result.difference is None else asdict(result.difference),
        "findings": findings,
        "node": result.node or None,
    }
